//go:build !(cgo && turnpack_hf)

package verbs

import "github.com/turnpack/turnpack/tokenize/engine"

// cgoEngines is empty in a pure Go build.
func cgoEngines() map[string]func(path string) (engine.Tokenizer, error) { return nil }
