package embedded_test

import (
	"fmt"

	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/engine"
)

func ExampleModel() {
	model, err := embedded.Model()
	if err != nil {
		panic(err)
	}
	var e engine.Encoding
	if err := model.Tokenizer.Encode(&e, "<|im_start|>user", engine.EncodeOptions{}); err != nil {
		panic(err)
	}
	text, err := model.Tokenizer.Decode(e.IDs)
	fmt.Println(len(e.IDs), text, err)
	// Output: 2 <|im_start|>user <nil>
}
