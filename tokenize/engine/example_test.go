package engine_test

import (
	"fmt"

	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Encodes the same text with and without added tokens.
func ExampleTokenizer() {
	model, err := embedded.Model()
	if err != nil {
		panic(err)
	}
	var tok engine.Tokenizer = model.Tokenizer
	var trusted, literal engine.Encoding
	if err := tok.Encode(&trusted, "<|im_end|>", engine.EncodeOptions{}); err != nil {
		panic(err)
	}
	if err := tok.Encode(&literal, "<|im_end|>", engine.EncodeOptions{Added: engine.NoAdded, Offsets: true}); err != nil {
		panic(err)
	}
	fmt.Println(len(trusted.IDs), len(literal.IDs) > 1, literal.Offsets[0])
	// Output: 1 true 0
}
