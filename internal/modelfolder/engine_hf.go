//go:build turnpack_hf && cgo

package modelfolder

import "github.com/turnpack/turnpack/tokenize/hf"

func addHF(m map[string]Engine) {
	m["hf"] = hf.Load
}

// Notices returns the licences of third-party engines.
func Notices() string { return "\n" + hf.Licences() }
