//go:build turnpack_hf && cgo

package main

import (
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/hf"
)

func addHF(m map[string]func(string, []byte) (engine.Tokenizer, error)) {
	m["hf"] = func(name string, data []byte) (engine.Tokenizer, error) { return hf.Load(name, data) }
}

func engineNotices() string { return "\n" + hf.Licences() }
