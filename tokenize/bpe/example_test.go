package bpe_test

import (
	"fmt"

	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// definition1 is a minimal definition: four letters, two merges, one added token.
const definition1 = `{
  "added_tokens": [{"id": 6, "content": "<end>", "special": true, "normalized": false}],
  "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Removed", "invert": false},
  "decoder": {"type": "Fuse"},
  "model": {"type": "BPE", "vocab": {"l": 0, "o": 1, "w": 2, "e": 3, "lo": 4, "low": 5}, "merges": ["l o", "lo w"]}
}`

func ExampleParse() {
	tok, err := bpe.Parse("tiny", []byte(definition1))
	if err != nil {
		fmt.Println(err)
		return
	}
	var e engine.Encoding
	if err := tok.Encode(&e, "low lowe<end>", engine.EncodeOptions{Offsets: true}); err != nil {
		fmt.Println(err)
		return
	}
	for i, id := range e.IDs {
		name, _ := tok.Vocab().Token(id)
		fmt.Printf("%d %s [%d, %d)\n", id, name, e.Offsets[2*i], e.Offsets[2*i+1])
	}
	// Output:
	// 5 low [0, 3)
	// 5 low [4, 7)
	// 3 e [7, 8)
	// 6 <end> [8, 13)
}

func ExampleParse_refused() {
	_, err := bpe.Parse("tokenizer.json", []byte(`{"model": {"type": "Unigram", "vocab": []}}`))
	fmt.Println(err)
	// Output:
	// tokenizer.json, /model/type: the bpe engine does not have the model "Unigram", only BPE (load this tokenizer with the hf engine (tokenize/hf), which has every component of Hugging Face tokenizers)
}
