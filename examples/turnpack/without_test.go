package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
)

// Dumps with the engine's ids of every turn convert without a model. Records without ids
// are left out and listed, and flags that need text are refused.
func TestConvertWithoutModel(t *testing.T) {
	line := `{"choices":[{"message":{"role":"assistant","content":"done"},"token_ids":[70,80,90],"finish_reason":"stop","logprobs":{"content":[{"logprob":-1,"token":"a"},{"logprob":-2,"token":"b"},{"logprob":-3,"token":"c"}]}}],"prompt_token_ids":[5,6]}`
	captured := `{"instance_id":"task","traj_id":"a","resolved":true,"request":{"messages":[{"role":"user","content":"do it"}]},"response":` + line + `}`
	in := dump(t, captured)
	out := filepath.Join(t.TempDir(), "batch")
	code, stdout, stderr := call(t, "convert", "--in", in, "--out", out, "--estimator", "none")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "none: rows of recorded ids")
	rows, info, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, []rollout.TokenID{5, 6, 70, 80, 90}, rows[0].IDs)
	require.Equal(t, []float32{0, 0, 1, 1, 1}, rows[0].Weight)
	require.Equal(t, []float32{-1, -2, -3}, rows[0].Logprob[2:])
	require.Empty(t, info.Tokenizer+info.Template)

	code, _, stderr = call(t, "convert", "--in", goodDump(t), "--out", filepath.Join(t.TempDir(), "batch"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "--model")
	require.Contains(t, stderr, "no model is given")
	code, _, stderr = call(t, "convert", "--in", in, "--out", out, "--mode", "whole", "--no-reasoning", "--window", "tail:100")
	require.Equal(t, exitUsage, code)
	for _, flag := range []string{"--mode", "--no-reasoning", "--window"} {
		require.Contains(t, stderr, flag+": needs a model")
	}
	for _, drift := range []string{"splice", "realign", "auto"} {
		code, _, stderr = call(t, "convert", "--in", in, "--out", filepath.Join(t.TempDir(), "batch"), "--drift", drift)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, "--drift: needs a model")
	}
}
