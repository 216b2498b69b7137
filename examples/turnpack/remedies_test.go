package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/internal/kit"
)

// sampled returns a rollout with one call per output, each after its own prompt. more
// holds further keys of the record.
func sampled(group string, k int, more string, outputs ...[]int) string {
	var turns []string
	for i, out := range outputs {
		logprobs := strings.Repeat(",-0.5", len(out))[1:]
		turns = append(turns, fmt.Sprintf(`{"prompt_ids":[%d,2,3],"output_ids":%s,"logprobs":[%s]}`, i+1, strings.ReplaceAll(fmt.Sprint(out), " ", ","), logprobs))
	}
	return fmt.Sprintf(`{"turnpack_version":1,"id":"%s-%d","group":"%s","status":"completed","outcome":{"reward":%d},"turns":[%s]%s}`, group, k, group, k%2, strings.Join(turns, ","), more)
}

// The fix that an error suggests works in the same folder, whatever the failed run left
// there.
func TestRemediesWork(t *testing.T) {
	kit.Long(t)
	model := modelDir(t, nil)
	pair := []string{sampled("a", 0, "", []int{4, 5}), sampled("a", 1, "", []int{5, 4})}
	warm := func(k int, temperature string) string {
		return sampled("a", k, `,"temperature":`+temperature, []int{4, 5})
	}
	bare := func(line string) string {
		return strings.Replace(line, `"outcome":{"reward"`, `"metadata":{"reward"`, 1)
	}
	for name, c := range map[string]struct {
		dump                []string
		flags, says, remedy string
	}{
		"no outcome":            {[]string{bare(pair[0]), bare(pair[1])}, "--target megatron --seq-len 64", "--estimator none; targets none and megatron", "--target megatron --seq-len 64 --estimator none"},
		"no versions":           {pair, "--target areal --groups-per-step 1", "--policy-version", "--target areal --groups-per-step 1 --policy-version 3"},
		"no advantages":         {pair, "--target verl --estimator none", "leave it out", "--target verl"},
		"forks":                 {append([]string{sampled("b", 0, "", []int{4}, []int{5}), sampled("b", 1, "", []int{4})}, pair...), "--target trl", "--group-size N", "--target trl --group-size 2"},
		"forks otherwise":       {append([]string{sampled("b", 0, "", []int{4}, []int{5}), sampled("b", 1, "", []int{4})}, pair...), "--target trl", "trl-async", "--target trl-async"},
		"singles":               {append([]string{sampled("b", 0, "", []int{4})}, pair...), "--target trl", "--group-size N", "--target trl --group-size 2"},
		"nothing left":          {pair, "--target trl --group-size 3", "no rollout is left for the target trl: 2 rollout of an incomplete group", "--target trl --group-size 2"},
		"nothing left in steps": {pair, "--target slime --pt --group-size 3", "(they came with 2 rollouts)", "--target slime --pt --group-size 2"},
		"some temperatures":     {[]string{pair[0], warm(1, "0.7")}, "--target slime --pt", "convert --temperature", "--target slime --pt --temperature 0.7"},
		"temperatures":          {[]string{warm(0, "0.5"), warm(1, "0.7")}, "--target slime --rollouts-per-step 2", "prime-rl", "--target prime-rl --seq-len 64"},
		"greedy":                {[]string{warm(0, "0"), warm(1, "0")}, "--target nemo-rl", "target megatron", "--target megatron --seq-len 64"},
		"too long":              {append([]string{sampled("b", 0, "", []int{4}), sampled("b", 1, "", []int{5})}, pair...), "--target verl --seq-len 4", "--max-tokens", "--target verl --seq-len 4 --max-tokens 4"},
		"steps too small":       {pair, "--target slime --rollouts-per-step 1", "raise it", "--target slime --rollouts-per-step 2"},
	} {
		t.Run(name, func(t *testing.T) {
			in, out := dump(t, c.dump...), filepath.Join(t.TempDir(), "b")
			run := func(flags string) (int, string) {
				code, _, stderr := call(t, append([]string{"convert", "--model", model, "--in", in, "--out", out, "--quiet", "--format", "native"}, strings.Fields(flags)...)...)
				return code, stderr
			}
			code, stderr := run(c.flags)
			require.NotZero(t, code)
			require.Contains(t, stderr, c.says)
			code, stderr = run(c.remedy)
			require.Zero(t, code, stderr)
		})
	}
}

// With --force, a batch replaces all files of the earlier batch; other files stay.
func TestForceReplacesTheWholeBatch(t *testing.T) {
	kit.Long(t)
	model, in, out := modelDir(t, nil), many(t, 4), filepath.Join(t.TempDir(), "b")
	run := func(flags string) {
		t.Helper()
		code, _, stderr := call(t, append([]string{"convert", "--model", model, "--in", in, "--out", out, "--quiet", "--force", "--policy-version", "1"}, strings.Fields(flags)...)...)
		require.Zero(t, code, stderr)
	}
	layouts := []string{"--target verl", "--target areal --groups-per-step 2", "--target slime --pt --groups-per-step 3", "--target prime-rl --seq-len 64 --ranks 2", "--target megatron --seq-len 64", "--target skyrl --rows-per-shard 3"}
	alone := map[string][]string{}
	names := func() (all []string) {
		for name := range tree(t, out) {
			all = append(all, name)
		}
		return all
	}
	for _, second := range layouts {
		kept := out
		out = filepath.Join(t.TempDir(), "b")
		run(second)
		alone[second] = names()
		out = kept
	}
	for _, next := range append(layouts, layouts...)[1:] {
		run(next)
		require.ElementsMatch(t, alone[next], names(), next)
	}
}

// Rows that a target leaves out are not counted in the summary, the weights or the steps.
func TestCountsOfWhatATargetLeavesOut(t *testing.T) {
	kit.Long(t)
	model, in := modelDir(t, nil), manyAborted(t, 12)
	for _, flags := range []string{"--target trl", "--target trl --weights rollout-mean", "--weights rollout-mean", "--weights prompt-mean"} {
		out := filepath.Join(t.TempDir(), "b")
		code, stdout, stderr := call(t, append([]string{"convert", "--model", model, "--in", in, "--out", out, "--json", "--group-size", "4", "--groups-per-step", "2"}, strings.Fields(flags)...)...)
		require.Zero(t, code, stderr)
		var s summary
		require.NoError(t, json.Unmarshal([]byte(stdout), &s))
		m, err := shard.Read(out)
		require.NoError(t, err)
		require.Equal(t, []any{m.Rows, m.Tokens, m.Trained}, []any{s.Rows, s.Tokens, s.Trained}, flags)
		left := 0
		for _, n := range s.WithoutRows {
			left += n
		}
		for _, n := range s.Target {
			left += n
		}
		require.Equal(t, s.Rollouts, m.Rollouts+left, "%s: %v %v", flags, s.WithoutRows, s.Target)
		for _, part := range m.Shards {
			rows, _, err := export.ReadAll(filepath.Join(out, filepath.FromSlash(part.File)))
			require.NoError(t, err)
			all := 0.0
			for _, row := range rows {
				for _, w := range row.Weight {
					all += float64(w)
				}
			}
			require.InDelta(t, 1, all/float64(part.Trained), 1e-5, "%s, %s", flags, part.File)
		}
	}
}

// A path with a comma is one path, for every flag.
func TestPathsWithCommas(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a,b")
	require.NoError(t, os.Mkdir(dir, 0o755))
	in, rewards, out := filepath.Join(dir, "x,y.jsonl"), filepath.Join(dir, "r,s.jsonl"), filepath.Join(t.TempDir(), "b")
	require.NoError(t, os.WriteFile(in, []byte(sampled("a", 0, "", []int{4, 5})+"\n"+sampled("a", 1, "", []int{5, 4})+"\n"), 0o600))
	require.NoError(t, os.WriteFile(rewards, []byte(`{"id": "a-0", "reward": 0.25}`+"\n"+`{"id": "a-1", "reward": 0.75}`+"\n"), 0o600))
	code, _, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--rewards", rewards, "--out", out, "--quiet", "--format", "native")
	require.Zero(t, code, stderr)
	rows, _, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.InDelta(t, 0.25, rows[0].Reward, 1e-6)
}
