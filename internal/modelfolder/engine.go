package modelfolder

import (
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Engine loads a tokenizer from the text of a tokenizer.json; nil stands for the default
// engine.
type Engine func(name string, tokenizerJSON []byte) (engine.Tokenizer, error)

// EngineOf returns the engine with the given name: bpe, or hf in builds with the tag
// turnpack_hf.
func EngineOf(name string) (Engine, error) {
	if name == "bpe" {
		return nil, nil
	}
	if load := hfEngine(); name == "hf" && load != nil {
		return load, nil
	}
	return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--engine"}, "engine %q is not part of this build", name).
		WithFix("choose bpe, or build with 'make build-hf' for the Hugging Face engine hf")
}
