package swerl_test

import (
	"context"
	"fmt"

	"github.com/turnpack/turnpack/internal/swerl"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

func ExampleEncode() {
	model, err := embedded.Model()
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &rollout.Rollout{Messages: []rollout.Message{
		{Role: rollout.RoleSystem, Content: "be brief"}, {Role: rollout.RoleUser, Content: "hi"},
		{Role: rollout.RoleAssistant, Content: "hello", Sampled: rollout.SampledByPolicy},
	}}
	res, err := swerl.Encode(context.Background(), model, r, swerl.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := model.Tokenizer.Decode(res.Default.Tokens)
	fmt.Println(text, err)
	// Output:
	// <|im_start|>system
	// be brief<|im_end|>
	// <|im_start|>user
	// hi<|im_end|>
	// <|im_start|>assistant
	// <|im_start|>assistant
	// hello<|im_end|>
	//  <nil>
}
