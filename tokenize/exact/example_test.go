package exact_test

import (
	"context"
	"fmt"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/exact"
)

// The calls that a proxy makes: the ids of a prompt, of which this prints the number, and a parser for the reply.
func Example() {
	model, err := embedded.Model()
	if err != nil {
		panic(err)
	}
	x, err := exact.New(model, exact.Options{})
	if err != nil {
		panic(err)
	}
	ids, err := x.Prompt(context.Background(), proxy.Prompt{Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "Hello"}}})
	if err != nil {
		panic(err)
	}
	parser, err := x.Parser(nil, ids)
	if err != nil {
		panic(err)
	}
	first, last := parser.Push("<think>\nA greeting.\n</think>\n\nHi"), parser.Push(" there<|im_end|>")
	end := parser.Close()
	fmt.Println(len(ids), first.Reasoning+last.Reasoning+end.Reasoning, first.Text+last.Text+end.Text)
	// Output: 11 A greeting. Hi there
}
