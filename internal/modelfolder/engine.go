package modelfolder

import (
	"maps"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Engine loads a tokenizer from the text of a tokenizer.json; nil stands for the default
// engine.
type Engine func(name string, tokenizerJSON []byte) (engine.Tokenizer, error)

// engines returns the engines of this build; the build tag turnpack_hf adds hf.
func engines() map[string]Engine {
	m := map[string]Engine{"bpe": nil}
	addHF(m)
	return m
}

// Engines returns the names of the engines of this build.
func Engines() []string { return slices.Sorted(maps.Keys(engines())) }

// EngineOf returns the engine with the given name.
func EngineOf(name string) (Engine, error) {
	load, ok := engines()[name]
	if !ok {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--engine"}, "engine %q is not part of this build, which has %s", name, strings.Join(Engines(), ", ")).
			WithFix("build with 'make build-hf' for the Hugging Face engine")
	}
	return load, nil
}
