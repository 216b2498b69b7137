package main

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/modelfolder"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// engines are the tokenizer engines beside the default one; a build with the
// tag turnpack_hf adds hf.
func engines() map[string]func(name string, tokenizerJSON []byte) (engine.Tokenizer, error) {
	m := map[string]func(string, []byte) (engine.Tokenizer, error){"bpe": nil}
	addHF(m)
	return m
}

// loadModel reads a model folder, with a template as modelfolder.Load takes it and the
// named engine.
func loadModel(dir, template, engine string) (*tokenize.Model, error) {
	all := engines()
	load, ok := all[engine]
	if !ok {
		var names []string
		for n := range all {
			names = append(names, n)
		}
		slices.Sort(names)
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--engine"}, "engine %q is not part of this build, which has %s", engine, strings.Join(names, ", ")).
			WithFix("build with 'make build-hf' for the Hugging Face engine")
	}
	return modelfolder.Load(dir, template, load)
}
