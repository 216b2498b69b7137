//go:build cgo

package hf_test

import (
	"fmt"
	"os"

	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/hf"
)

func ExampleLoad() {
	definition, err := os.ReadFile("../embedded/tokenizer.json")
	if err != nil {
		panic(err)
	}
	tok, err := hf.Load("embedded", definition)
	if err != nil {
		panic(err)
	}
	var e engine.Encoding
	if err := tok.Encode(&e, "Hello", engine.EncodeOptions{}); err != nil {
		panic(err)
	}
	text, err := tok.Decode(e.IDs)
	fmt.Println(text, err)
	// Output: Hello <nil>
}
