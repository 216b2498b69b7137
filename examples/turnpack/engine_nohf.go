//go:build !turnpack_hf || !cgo

package main

import "github.com/turnpack/turnpack/tokenize/engine"

func addHF(map[string]func(string, []byte) (engine.Tokenizer, error)) {}

func engineNotices() string { return "" }
