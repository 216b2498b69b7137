//go:build turnpack_hf && cgo

package main

import (
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/hf"
)

func addHF(m map[string]func(string, []byte) (tokenize.Tokenizer, error)) {
	m["hf"] = func(name string, data []byte) (tokenize.Tokenizer, error) { return hf.Load(name, data) }
}
