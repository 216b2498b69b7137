//go:build !turnpack_hf || !cgo

package modelfolder

func addHF(map[string]Engine) {}

// Notices returns the licences of third-party engines.
func Notices() string { return "" }
