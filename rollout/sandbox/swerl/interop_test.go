package swerl_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
)

// TestInterop runs the steps of a file with our client, for internal/oracle/diff_sandbox.py, which starts
// servers and runs the same steps with the reference client.
func TestInterop(t *testing.T) {
	steps, out := os.Getenv("TURNPACK_SANDBOX_STEPS"), os.Getenv("TURNPACK_SANDBOX_OUT")
	if steps == "" || out == "" {
		t.Skip("SKIPPED: internal/oracle/diff_sandbox.py runs it")
	}
	text, err := os.ReadFile(steps)
	require.NoError(t, err)
	var list []struct {
		Op, Command, Cwd, Patch, EvalScript string
		Timeout                             int
		Env                                 map[string]string
	}
	require.NoError(t, json.Unmarshal(text, &list))
	o, err := swerl.Environ(os.Getenv)
	require.NoError(t, err)
	c, err := swerl.NewClient(o)
	require.NoError(t, err)
	ctx := context.Background()
	box, err := c.Create(ctx, sandbox.Spec{Image: os.Getenv("TURNPACK_SANDBOX_IMAGE"), Instance: "x"})
	require.NoError(t, err)
	var results []any
	patch := ""
	for _, s := range list {
		timeout := time.Duration(s.Timeout) * time.Second
		if s.Patch == "DIFF" {
			s.Patch = patch
		}
		var result map[string]any
		switch s.Op {
		case "exec":
			r, err := box.Exec(ctx, sandbox.Command{Text: s.Command, Dir: s.Cwd, Timeout: timeout, Env: s.Env})
			require.NoError(t, err)
			result = map[string]any{"returncode": r.ExitCode, "output": r.Output()}
		case "diff":
			patch, err = box.Diff(ctx, s.Cwd)
			require.NoError(t, err)
			result = map[string]any{"patch": patch}
		case "evaluate":
			v, err := box.Evaluate(ctx, sandbox.Evaluation{Patch: s.Patch, Script: s.EvalScript, Dir: s.Cwd, Timeout: timeout})
			require.NoError(t, err)
			if result = map[string]any{"resolved": v.Resolved, "error": v.Reason}; v.Reason == "" {
				result = map[string]any{"resolved": v.Resolved, "returncode": v.ExitCode, "output": v.Output}
			}
		}
		results = append(results, result)
	}
	require.NoError(t, box.Close(ctx))
	require.NoError(t, box.Close(ctx))
	text, err = json.Marshal(results)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(out, text, 0o644))
}
