package prompt_test

import (
	"context"
	"fmt"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/prompt"
)

// The second prompt holds the first reply as it was sampled: with "look" in two tokens.
func Example() {
	model, err := embedded.Model() // or tokenize.Load("Qwen3-8B", tokenize.LoadOptions{})
	if err != nil {
		panic(err)
	}
	sessions, err := prompt.New(model, prompt.Options{})
	if err != nil {
		panic(err)
	}
	tree := sessions.Tree() // of one rollout
	messages := []rollout.Message{{Role: rollout.RoleUser, Content: "Why does it fail?"}}
	first, err := tree.Prompt(context.Background(), prompt.Request{Messages: messages})
	if err != nil {
		panic(err)
	}
	var sampled engine.Encoding // sampled with other tokens than the encoder's
	for _, part := range []string{"I lo", "ok.<|im_end|>"} {
		if err := model.Tokenizer.Encode(&sampled, part, engine.EncodeOptions{After: engine.AfterText}); err != nil {
			panic(err)
		}
	}
	reply := rollout.Message{Role: rollout.RoleAssistant, Content: "I look."}
	if err := first.Reply(sampled.IDs, &reply); err != nil {
		panic(err)
	}
	messages = append(messages, reply, rollout.Message{Role: rollout.RoleUser, Content: "And?"})
	second, err := tree.Prompt(context.Background(), prompt.Request{Messages: messages})
	if err != nil {
		panic(err)
	}
	fmt.Println(second.Shared == len(first.IDs)+len(sampled.IDs), second.Reason == "")
	text, err := model.Tokenizer.Decode(second.IDs[second.Shared:])
	if err != nil {
		panic(err)
	}
	fmt.Printf("%q\n", text)
	// Output:
	// true true
	// "\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n"
}

// A service that records its calls needs only the record.
func ExampleSessions() {
	model, err := embedded.Model()
	if err != nil {
		panic(err)
	}
	sessions, err := prompt.New(model, prompt.Options{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	recorder, err := live.New(live.Options{})
	if err != nil {
		panic(err)
	}
	session, err := recorder.Begin(ctx, live.Start{ID: "task-7#0"})
	if err != nil {
		panic(err)
	}
	messages := []rollout.Message{{Role: rollout.RoleUser, Content: "Why does it fail?"}}
	for range 3 {
		record, err := session.Rollout()
		if err != nil {
			panic(err)
		}
		p, err := sessions.Prompt(ctx, record, prompt.Request{Messages: messages})
		if err != nil {
			panic(err)
		}
		fmt.Println(p.Shared, "of", len(p.IDs), "ids are shared")
		call, err := session.Begin(ctx, live.Request{Messages: messages, Prompt: p.IDs})
		if err != nil {
			panic(err)
		}
		var sampled engine.Encoding
		if err := model.Tokenizer.Encode(&sampled, "I look.<|im_end|>", engine.EncodeOptions{}); err != nil {
			panic(err)
		}
		reply := rollout.Message{Role: rollout.RoleAssistant, Content: "I look."}
		if err := call.End(ctx, live.Reply{Message: &reply, Output: sampled.IDs, Logprobs: make([]float32, len(sampled.IDs))}); err != nil {
			panic(err)
		}
		messages = append(messages, reply, rollout.Message{Role: rollout.RoleUser, Content: "And?"})
	}
	// Output:
	// 0 of 14 ids are shared
	// 18 of 29 ids are shared
	// 33 of 44 ids are shared
}
