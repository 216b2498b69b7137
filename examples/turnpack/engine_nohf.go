//go:build !turnpack_hf || !cgo

package main

import "github.com/turnpack/turnpack/tokenize"

func addHF(map[string]func(string, []byte) (tokenize.Tokenizer, error)) {}
