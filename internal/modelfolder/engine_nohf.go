//go:build !turnpack_hf || !cgo

package modelfolder

func addHF(map[string]Engine) {}

// Notices are the licences of the engines that come from elsewhere.
func Notices() string { return "" }
