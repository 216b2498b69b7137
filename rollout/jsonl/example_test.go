package jsonl_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
)

// Reading continues after a bad line; the error says where it is.
func ExampleRead() {
	file := `{"turnpack_version":1,"id":"a","messages":[{"role":"user","content":"2+2?"},{"role":"assistant","content":"4","sampled":"sampled"}]}
{"id":"b","messages":[{"content":"who speaks?"}]}
`
	for r, err := range jsonl.Read(strings.NewReader(file), jsonl.Options{File: "x.jsonl"}) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(r.ID, len(r.Messages), r.Messages[1].Sampled)
	}
	// Output:
	// a 2 sampled
	// x.jsonl:2, rollout "b", message 0, byte 22, /role: the message has no role
}

func ExampleWrite() {
	err := jsonl.Write(os.Stdout, &rollout.Rollout{
		ID:       "a",
		Messages: []rollout.Message{{Role: rollout.RoleAssistant, Content: "4", Sampled: rollout.SampledByPolicy}},
		Turns:    []rollout.Turn{{Message: 0, Prompt: rollout.PromptIDs{Add: []rollout.TokenID{17, 10}}, Output: []rollout.TokenID{19, 2}}},
	})
	fmt.Println(err)
	// Output:
	// {"turnpack_version":1,"id":"a","messages":[{"role":"assistant","content":"4","sampled":"sampled"}],"turns":[{"message":0,"step":0,"prompt_ids":{"add":[17,10]},"output_ids":[19,2]}]}
	// <nil>
}
