package agent_test

import (
	"context"
	"fmt"

	"github.com/turnpack/turnpack/agent"
	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// scripted is a Model without an engine.
type scripted []string

func (s scripted) Reply(_ context.Context, r agent.Request) (live.Reply, error) {
	return live.Reply{Message: &rollout.Message{Content: s[r.Step]}}, nil
}

// toy is a sandbox with one file, whose tests pass once the file is changed.
type toy struct{}

func (toy) Container() sandbox.Container { return sandbox.Container{ID: "toy"} }
func (toy) Close(context.Context) error  { return nil }
func (toy) Diff(context.Context, string) (string, error) {
	return "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n", nil
}
func (toy) Exec(context.Context, sandbox.Command) (sandbox.Result, error) {
	return sandbox.Result{Stdout: "x = 1\n"}, nil
}
func (toy) Evaluate(context.Context, sandbox.Evaluation) (sandbox.Verdict, error) {
	return sandbox.Verdict{Resolved: true}, nil
}

// An attempt of two commands. The second submits the work; it prints no patch, so git diff supplies it.
func Example() {
	ctx := context.Background()
	a, err := agent.New(agent.Options{Model: scripted{
		"THOUGHT: look\n\n```bash\ncat a.py\n```",
		"THOUGHT: done\n\n```bash\necho " + agent.SubmitMark + "\n```",
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	task := swebench.Instance{InstanceID: "toy-1", ProblemStatement: "x should be 2"}
	attempt, err := a.Run(ctx, agent.Task{ID: "toy-1#0", Instance: task, Sandbox: toy{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := attempt.Grade(ctx, toy{}, task, agent.GradeOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	r := attempt.Rollout
	fmt.Println(r.Messages[3].Content)
	fmt.Println(len(r.Turns), "turns,", r.ExitStatus, "by", attempt.PatchSource+":", r.Outcome.Verdict)
	// Output:
	// <returncode>0</returncode>
	// <output>
	// x = 1
	// </output>
	// REMINDER: You have 19 turns left to arrive at the solution.
	// 2 turns, submitted by git_diff_fallback: resolved
}
