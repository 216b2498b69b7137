package traj_test

import (
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// One record of a chat dump and one broken record.
func ExampleNewReader() {
	dump := `{"instance_id":"repo__x-1","resolved":true,"messages":[{"role":"user","content":"fix it"},{"role":"assistant","content":"done"}]}
{"messages":[{"content":"who speaks?"}]}
`
	r, err := traj.NewReader(strings.NewReader(dump), "dump.jsonl", traj.Options{})
	if err != nil {
		panic(err)
	}
	for x, err := range r.All() {
		if err != nil {
			panic(err)
		}
		fmt.Println(x.Origin.Format, x.Group, x.Messages[1].Sampled, *x.Outcome.Resolved)
	}
	fmt.Println(r.Report().Rollouts, "read,", r.Report().Skipped, "skipped:")
	fmt.Println(r.Report().Errors[0])
	// Output:
	// openai-chat repo__x-1 sampled true
	// 1 read, 1 skipped:
	// dump.jsonl:2, message 0, /role: the message has no role (mend the field, or take the record out)
}

// Any dump can be written as ATIF; notes name what ATIF cannot hold.
func ExampleAppendATIF() {
	dump := `{"id":"a","messages":[{"role":"user","content":"2+2?"},{"role":"assistant","content":"4"}]}`
	rollouts, _, err := traj.ReadAll(strings.NewReader(dump), "dump.jsonl", traj.Options{OnError: rollout.OnErrorStop})
	if err != nil {
		panic(err)
	}
	line, lost, err := traj.AppendATIF(nil, rollouts[0])
	fmt.Println(string(line))
	fmt.Println(len(lost), err)
	// Output:
	// {"schema_version":"ATIF-v1.7","session_id":"a","agent":{"name":"unknown","version":"unknown"},"steps":[{"step_id":1,"source":"user","message":"2+2?"},{"step_id":2,"source":"agent","message":"4"}]}
	// 0 <nil>
}
