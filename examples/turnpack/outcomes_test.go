package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/kit"
)

// A folder of training runs converts unchanged: graded runs have a signed reward, runs
// with infrastructure failures have none, and the table lists them with the reasons.
func TestConvertTrainingRuns(t *testing.T) {
	dir := filepath.Join(kit.Dir(t, "data", "trajectories"), "openclaw-rl")
	in := t.TempDir()
	runs, err := filepath.Glob(filepath.Join(dir, "train-*"))
	require.NoError(t, err)
	for _, run := range runs {
		require.NoError(t, os.CopyFS(filepath.Join(in, filepath.Base(run)), os.DirFS(run)))
	}
	out := t.TempDir()
	code, stdout, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--out", out)
	require.Zero(t, code, stderr)
	for _, part := range []string{
		"outcomes               4 infra_error, 1 apply_failed, 1 no_patch, 1 resolved, 1 tests_timeout, 1 unresolved",
		"status                 4 completed, 4 failed, 1 truncated",
		"1 excluded: infrastructure failure: allocate_failed", "1 excluded: infrastructure failure: diff_failed",
		"1 excluded: infrastructure failure: evaluate_failed", "1 excluded: infrastructure failure: llm_failed",
	} {
		require.Contains(t, stdout, part)
	}
	rows, _, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	rewards := map[float64]int{}
	for _, row := range rows {
		rewards[row.Reward]++
	}
	require.Equal(t, map[float64]int{1: 1, -1: 4}, rewards)
}

// Unread files of a folder are named and counted by kind, and the exit status reports
// them unless --on-error skip is set.
func TestUnreadFilesChangeTheStatus(t *testing.T) {
	kit.Long(t)
	in := goodDump(t)
	for i := range 12 {
		require.NoError(t, os.WriteFile(filepath.Join(in, fmt.Sprintf("n%02d.md", i)), nil, 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(in, "config.json"), []byte("{}"), 0o644))
	out, model := t.TempDir(), modelDir(t, nil)
	for range 2 { // the second run finds the batch complete and reports the same
		code, stdout, stderr := call(t, "convert", "--model", model, "--in", in, "--out", out)
		require.Equal(t, exitLeftOut, code, stderr)
		require.Contains(t, stderr, "13 files of the folders were not read and are listed")
		if strings.Contains(stdout, "already complete") {
			continue
		}
		require.Contains(t, stdout, "files not read         13: 12 .md, 1 .json of no known format")
		require.Contains(t, stdout, "n08.md")
		require.NotContains(t, stdout, "n09.md")
		require.Contains(t, stdout, "… and 3 more (in --json)")
	}
	code, _, stderr := call(t, "convert", "--model", model, "--in", in, "--out", t.TempDir(), "--on-error", "skip")
	require.Zero(t, code, stderr)
}

// A system prompt from a file is among the recorded inputs of the batch.
func TestSystemFile(t *testing.T) {
	kit.Long(t)
	file := filepath.Join(t.TempDir(), "system.txt")
	require.NoError(t, os.WriteFile(file, []byte("Answer in rhymes."), 0o644))
	in, out, model := goodDump(t), t.TempDir(), modelDir(t, nil)
	code, stdout, stderr := call(t, "convert", "--model", model, "--in", in, "--out", out, "--system", file)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "2 system_given")
	code, stdout, stderr = call(t, "show", "--model", model, filepath.Join(out, "batch.parquet"))
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "Answer in rhymes.")
	for _, in := range [][]string{nil, {"--in", in}} {
		code, stdout, stderr = call(t, append([]string{"show", "--model", model, out, "--token", "8"}, in...)...)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, "message    0, system, of ")
	}
	require.NoError(t, os.WriteFile(file, []byte("Answer in prose."), 0o644))
	code, _, _ = call(t, "convert", "--model", model, "--in", in, "--out", out, "--system", file)
	require.Equal(t, exitFailed, code, "the prompt is another")
	code, _, stderr = call(t, "convert", "--model", model, "--in", in, "--dry-run", "--system", file+".no")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "--system")
}

// A context window that removes all of a message is reported.
func TestWindowCountsInTheSummary(t *testing.T) {
	long := strings.Repeat("word ", 400)
	line := fmt.Sprintf(`{"id":"%%s","instance_id":"i","resolved":%%t,"messages":[{"role":"user","content":%q},{"role":"assistant","content":"a"},{"role":"user","content":%q},{"role":"assistant","content":"b"}]}`, long, long)
	in := dump(t, fmt.Sprintf(line, "x", true), fmt.Sprintf(line, "y", false))
	code, stdout, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--dry-run", "--window", "tail:200")
	require.Zero(t, code, stderr)
	require.Regexp(t, `context window +cuts the history of 4 turns: \d+ turns of it left out, \d+ messages shortened, [1-9]\d* of them to the note alone`, stdout)
}

// With --step-coef, an unjudged rollout keeps its outcome as reward. A rollout whose
// judge failed is left out, named and counted.
func TestStepCoefOfFailedJudges(t *testing.T) {
	record := func(k int, steps string) string {
		return fmt.Sprintf(`{"id":"g-%d","group":"g","status":"completed","temperature":1,"outcome":{"reward":%d},"turns":[{"prompt_ids":[1,2],"output_ids":[3,4]}]%s}`, k, k%2, steps)
	}
	in := dump(t, record(0, `,"steps":[{"step":0,"score":1}]`), record(1, ``), record(2, `,"steps":[{"step":0,"reason":"the judge did not answer"}]`))
	out := t.TempDir()
	code, stdout, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--out", out, "--format", "native", "--step-coef", "0.5")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "1 excluded: no step score computed")
	require.Contains(t, stdout, "(first: g-2)")
	require.Contains(t, stdout, "of 1 rollouts; ")
	rows, _, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	rewards := map[string]float64{}
	for _, row := range rows {
		rewards[row.Rollout] = row.Reward
	}
	require.Equal(t, map[string]float64{"g-0": 0.5, "g-1": 1}, rewards)
}

// A batch below the folder of dumps is no input of the runs that follow, and new dumps are.
func TestOutputBelowTheInput(t *testing.T) {
	in, model := goodDump(t), modelDir(t, nil)
	convert := func(out string, flags ...string) (int, string, string) {
		return call(t, append([]string{"convert", in, "--model", model, "--target", "slime", "--pt", "--out", filepath.Join(in, out)}, flags...)...)
	}
	for _, flags := range [][]string{nil, {"--force"}} {
		code, stdout, stderr := convert("batch", flags...)
		require.Zero(t, code, stderr)
		require.Regexp(t, `rollouts +2 in`, stdout)
	}
	for _, out := range []string{"next", "batch"} {
		code, stdout, stderr := convert(out)
		require.Zero(t, code, stderr)
		require.Regexp(t, `rollouts +2 in|already complete`, stdout)
	}
	require.NoError(t, os.WriteFile(filepath.Join(in, "more.jsonl"), []byte(chatLine("c", true)+"\n"), 0o600))
	code, _, stderr := convert("batch")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "now ")
	for _, out := range []string{".", "more"} {
		dir := filepath.Join(in, out)
		require.NoError(t, os.MkdirAll(dir, 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "most.jsonl"), []byte(chatLine("d", true)+"\n"), 0o600))
		code, _, stderr = convert(out, "--force")
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, "--out: what lies in "+dir+" is not read as input")
	}
}
