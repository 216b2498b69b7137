package prm_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/rollout"
)

// Any function that answers a prompt can be a judge. Each step keeps its votes, and a step whose votes
// all failed has a reason instead of a score.
func Example() {
	r := &rollout.Rollout{ID: "demo", Messages: []rollout.Message{
		{Role: rollout.RoleUser, Content: "Fix the failing test."},
		{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy, Content: "```bash\npytest -q\n```"},
		{Role: rollout.RoleUser, Content: "1 failed"},
		{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy, Content: "Done, I think."},
	}}
	judge := prm.JudgeFunc(func(_ context.Context, req prm.Request) (prm.Reply, error) {
		if strings.Contains(req.Messages[1].Content, "Grade step 2 only.") {
			return prm.Reply{}, fmt.Errorf("server overloaded")
		}
		return prm.Reply{Text: `It shows what fails. \boxed{1}`}, nil
	})
	scorer, err := prm.NewScorer(judge, prm.Options{Votes: 3})
	if err != nil {
		panic(err)
	}
	steps, err := scorer.Score(context.Background(), r)
	if err != nil {
		panic(err)
	}
	for _, s := range steps {
		if s.Score == nil {
			fmt.Printf("step %d: no score: %s\n", s.Step, s.Reason)
			continue
		}
		fmt.Printf("step %d: %+.1f from %d votes\n", s.Step, *s.Score, len(s.Votes))
	}
	reward := prm.Combination{}.Combine(-1, steps)
	fmt.Printf("reward %.1f\n", reward.Total)
	// Output:
	// step 0: +1.0 from 3 votes
	// step 1: no score: 0 of 3 votes are valid, the quorum is 1: 3× server overloaded
	// reward 0.0
}

// A rule reads the vote in a text, or returns the reason why there is none.
func ExampleRule_Compile() {
	parse, err := prm.Rule{Kind: "json", Field: "verdict.score", Scale: prm.ScoreRange{Min: 0, Max: 10}}.Compile()
	if err != nil {
		panic(err)
	}
	fmt.Println(parse(`The fix holds. {"verdict": {"score": 7.5}}`))
	_, err = parse(`The fix holds. 11/10`)
	fmt.Println(err)
	// Output:
	// 7.5 <nil>
	// found no JSON object
}
