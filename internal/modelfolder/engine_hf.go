//go:build turnpack_hf && cgo

package modelfolder

import (
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/hf"
)

func addHF(m map[string]Engine) {
	m["hf"] = func(name string, data []byte) (engine.Tokenizer, error) { return hf.Load(name, data) }
}

// Notices are the licences of the engines that come from elsewhere.
func Notices() string { return "\n" + hf.Licences() }
