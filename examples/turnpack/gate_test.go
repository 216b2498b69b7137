package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/shape"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

// driftingDump holds two rollouts of two calls each, with ids only. In "b", the second
// prompt spells the end of the first reply differently, so that a realigned row loses two
// of its six sampled tokens, including a stop token.
func driftingDump(t *testing.T) string {
	t.Helper()
	m, err := embedded.Model()
	require.NoError(t, err)
	stop := m.Stops()[0]
	line := func(id string, again ...rollout.TokenID) string {
		b, err := json.Marshal(map[string]any{"turnpack_version": 1, "id": id, "group": "g", "outcome": map[string]any{"resolved": id == "a"}, "turns": []map[string]any{
			{"prompt_ids": []rollout.TokenID{1, 2}, "output_ids": []rollout.TokenID{3, 4, stop}, "finish_reason": "stop"},
			{"prompt_ids": append([]rollout.TokenID{1, 2, 3}, again...), "output_ids": []rollout.TokenID{8, 9, stop}, "finish_reason": "stop"},
		}})
		require.NoError(t, err)
		return string(b)
	}
	return dump(t, line("a", 4, stop, 7), line("b", 5, 6, stop, 7))
}

func TestGates(t *testing.T) {
	kit.Long(t)
	for _, tc := range []struct {
		name  string
		in    string
		flags []string
		code  int
		says  []string
	}{
		{"no drift repair, nothing lost", driftingDump(t), []string{"--min-fidelity", "1", "--max-stop-loss", "0"}, exitOK,
			[]string{"fidelity               100.0 % of them trained exactly as recorded", "row starts             2 root, 1 drift_last"}},
		{"a repair without a limit", driftingDump(t), []string{"--drift", "realign"}, exitOK,
			[]string{"fidelity               83.3 % of them", "2 tokens given up, 0 respelled (0 stop tokens among them), 1 of 4 stop tokens lost", "1 exact, 1 realign"}},
		{"a turn that is left untrained is no repair", dump(t, `{"id": "a", "outcome": {"resolved": true}, "turns": [{"prompt_ids": [1, 2], "output_ids": [3, 4], "incomplete": "the stream was cut"}, {"prompt_ids": [1, 2, 5], "output_ids": [6, 7]}]}`), nil, exitOK,
			[]string{"sampled, not trained   2 tokens of turns left untrained, 0 that begin a row, 0 beyond"}},
		{"fidelity under the least", driftingDump(t), []string{"--drift", "realign", "--min-fidelity", "0.9"}, exitFailed,
			[]string{"--min-fidelity", "10 of 12 sampled tokens are trained exactly as recorded, a share of 0.8333 where 0.9 is the least (0 were rendered from text, 2 given up", "--drift fork"}},
		{"stop tokens over the most", driftingDump(t), []string{"--drift", "realign", "--max-stop-loss", "0.2"}, exitFailed,
			[]string{"--max-stop-loss", "1 of 4 stop tokens are lost, a share of 0.2500 where 0.2 is the most"}},
		{"both at once", driftingDump(t), []string{"--drift", "realign", "--min-fidelity", "0.9", "--max-stop-loss", "0.2"}, exitFailed,
			[]string{"--min-fidelity", "--max-stop-loss"}},
		{"text was recorded by no engine", goodDump(t), []string{"--min-fidelity", "0.01"}, exitFailed, []string{"0 of", "rendered from text", "record the engine's token ids"}},
		{"a flag that would do nothing", goodDump(t), []string{"--stop-rewrite"}, exitUsage, []string{"--stop-rewrite", "add --drift splice or auto"}},
		{"repairs within the limit", driftingDump(t), []string{"--drift", "realign", "--max-drop-tokens", "2"}, exitOK, []string{"drift repairs"}},
		{"a limit that allows none", driftingDump(t), []string{"--drift", "realign", "--max-drop-tokens=-1", "--min-fidelity", "1"}, exitOK, nil},
		{"a limit of repairs that are not made", goodDump(t), []string{"--max-drop-tokens", "2"}, exitUsage, []string{"--max-drop-tokens", "add --drift realign or auto"}},
		{"a limit of others", driftingDump(t), []string{"--drift", "realign", "--max-sub-tokens", "2"}, exitUsage, []string{"--max-sub-tokens", "add --drift splice or auto"}},
		{"per cent are no share", goodDump(t), []string{"--min-fidelity", "95"}, exitUsage, []string{"--min-fidelity", "want a share of 0 to 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := t.TempDir()
			code, stdout, stderr := call(t, append([]string{"convert", "--model", modelDir(t, nil), "--in", tc.in, "--out", out}, tc.flags...)...)
			require.Equal(t, tc.code, code, stderr)
			for _, part := range tc.says {
				require.Contains(t, stdout+stderr, part)
			}
			require.Equal(t, slices.Contains(tc.flags, "realign") && tc.code == exitOK && !slices.Contains(tc.flags, "--max-drop-tokens=-1"), strings.Contains(stdout, "drift repairs"), stdout)
			_, err := os.Stat(filepath.Join(out, "batch.parquet"))
			require.Equal(t, tc.code == exitOK, err == nil, "a gate that fails leaves no batch")
		})
	}
}

// Every estimator that the command offers gives a batch.
func TestEstimatorsOfferedWork(t *testing.T) {
	kit.Long(t)
	model, in := modelDir(t, nil), goodDump(t)
	for _, name := range shape.Estimators() {
		code, stdout, stderr := call(t, "convert", "--model", model, "--in", in, "--dry-run", "--estimator", name)
		if e, ok := reward.Preset(name); ok && e.Unit == "step" {
			require.Equal(t, exitFailed, code, "no step is judged")
			require.Contains(t, stderr, reward.ExcludedNoSteps)
			continue
		}
		require.Zero(t, code, "%s: %s", name, stderr)
		require.Contains(t, stdout, "rows  ", name)
	}
	out := t.TempDir()
	code, _, stderr := call(t, "convert", "--model", model, "--in", in, "--out", out, "--estimator", "verl_grpo")
	require.Zero(t, code, stderr)
	_, info, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	require.Regexp(t, "^verl_grpo@.", info.Estimator, "the file says which revision")
}

// One turn without log probabilities removes the column from all rows. The summary and
// the error of a trainer that needs it name that turn, not the row being written.
func TestMissingColumnNamesTheTurn(t *testing.T) {
	line := `{"id": "%s", "group": "g", "status": "completed", "outcome": {"resolved": %t}, "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}], "turns": [{"message": 1, "prompt_ids": [5, 6], "output_ids": [7]%s}]}`
	file := dump(t, fmt.Sprintf(line, "a", true, `, "logprobs": [-1]`), fmt.Sprintf(line, "b", false, ""))
	model := modelDir(t, nil)
	code, stdout, stderr := call(t, "convert", "--model", model, "--in", file, "--dry-run")
	require.Zero(t, code, stderr)
	const turn = `logprobs: 1 of 2 turns record none, the first: `
	require.Contains(t, stdout, turn)
	require.Contains(t, stdout, `:2, rollout "b", turn 0`)
	code, _, stderr = call(t, "convert", "--model", model, "--in", file, "--dry-run", "--target", "trl-async")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `rollout "a", logprobs: row "a#0": trl-async`)
	require.Contains(t, stderr, turn)
}
