//go:build !cgo

package hf

import (
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Load returns an error because this program was built without cgo.
func Load(name string, tokenizerJSON []byte) (engine.Tokenizer, error) {
	return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: name}, "this program was built without cgo, which the Hugging Face engine needs").
		WithFix("build with CGO_ENABLED=1 and libtokenizers.a (make lib), or use the bpe engine")
}
