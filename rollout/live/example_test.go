package live_test

import (
	"context"
	"fmt"
	"os"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// An agent of two steps is recorded, and its rollout can be read after a restart.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	journal, err := live.OpenJournal(dir, live.JournalOptions{})
	if err != nil {
		panic(err)
	}
	recorder, err := live.New(live.Options{Journal: journal})
	if err != nil {
		panic(err)
	}
	session, err := recorder.Begin(ctx, live.Start{ID: "task-7#0", Group: "task-7"})
	if err != nil {
		panic(err)
	}
	prompt := []rollout.TokenID{1, 2, 3}
	for step := range 2 {
		call, err := session.Begin(ctx, live.Request{Prompt: prompt, Dialect: "chat"})
		if err != nil {
			panic(err)
		}
		sampled := []rollout.TokenID{10, 11, 12} // as they arrive from the engine
		if err := call.Append(sampled, []float32{-0.5, -0.25, -0.125}, nil); err != nil {
			panic(err)
		}
		usage := live.Usage{PromptTokens: len(prompt), CompletionTokens: len(sampled)}
		if err := call.End(ctx, live.Reply{FinishReason: "stop", Usage: usage}); err != nil {
			panic(err)
		}
		prompt = append(append(prompt, sampled...), rollout.TokenID(20+step)) // the tool's output
	}
	if err := journal.Close(); err != nil {
		panic(err)
	}

	for r, err := range live.Read(dir) {
		if err != nil {
			panic(err)
		}
		for _, t := range r.Turns {
			fmt.Println("keeps", t.Prompt.Keep, "adds", len(t.Prompt.Add), "sampled", t.Output)
		}
		fmt.Println(r.ID, r.Notes[0].Code)
	}
	// Output:
	// keeps 0 adds 3 sampled [10 11 12]
	// keeps 6 adds 1 sampled [10 11 12]
	// task-7#0 unfinished
}
