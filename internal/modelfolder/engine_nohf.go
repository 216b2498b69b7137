//go:build !turnpack_hf || !cgo

package modelfolder

func hfEngine() Engine { return nil }

// Notices returns the licences of third-party engines.
func Notices() string { return "" }
