//go:build turnpack_hf && cgo

package modelfolder

import "github.com/turnpack/turnpack/tokenize/hf"

func hfEngine() Engine { return hf.Load }

// Notices returns the licences of third-party engines.
func Notices() string { return "\n" + hf.Licences() }
