package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/primerl"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

// creditDump is a group of three rollouts with two judged steps each. Each rollout
// samples a different first token, which identifies it in trainers' formats.
func creditDump(t *testing.T) string {
	turn := func(prompt, output string, n int) string {
		return fmt.Sprintf(`{"prompt_ids":[%s],"output_ids":[%s],"logprobs":[%s],"version":4,"finish_reason":"stop"}`, prompt, output, strings.TrimPrefix(strings.Repeat(",-0.5", n), ","))
	}
	var lines []string
	for k := range 3 {
		own := 50 + k
		lines = append(lines, fmt.Sprintf(`{"turnpack_version":1,"id":"g-%d","group":"g","status":"completed","temperature":1,"outcome":{"resolved":%t},"turns":[%s,%s],"steps":[{"step":0,"score":%g},{"step":1,"score":%g}]}`,
			k, k == 0, turn("1,2,3", fmt.Sprintf("%d,4", own), 2), turn(fmt.Sprintf("1,2,3,%d,4,9,9", own), "6,7,8", 3), []float64{1, 0.5, -1}[k], []float64{-1, 0.25, 1}[k]))
	}
	return dump(t, lines...)
}

// advantagesOf returns the advantages of trained tokens, keyed by rollout and the ids up
// to the token.
func advantagesOf(rows []rollout.Sample) map[string]float64 {
	out := map[string]float64{}
	for _, s := range rows {
		for i, w := range s.Weight {
			if w <= 0 {
				continue
			}
			value := math.NaN()
			switch {
			case s.Credit != nil:
				value = float64(s.Credit[i])
			case s.Advantage != nil:
				value = *s.Advantage
			}
			out[fmt.Sprint(s.IDs[:i+1])] = value
		}
	}
	return out
}

// madeBy returns the same for the files that convert wrote for a trainer under out.
func madeBy(t *testing.T, name, out string, pt bool) map[string]float64 {
	t.Helper()
	switch {
	case name == "prime-rl":
		f, err := os.Open(filepath.Join(out, "rollouts", "step_1", "rank_0.bin"))
		require.NoError(t, err)
		defer f.Close()
		batches, err := primerl.Read(f)
		require.NoError(t, err)
		got := map[string]float64{}
		for _, b := range batches {
			first := 0
			for i := range b.InputIDs {
				if b.PositionIDs[i] == 0 {
					first = i
				}
				if b.LossMask[i] {
					got[fmt.Sprint(b.InputIDs[first:i+1])] = float64(b.Advantages[i])
				}
			}
		}
		return got
	case pt:
		got := map[string]float64{}
		for _, s := range slimeSamples(t, filepath.Join(out, "0.pt")) {
			base := len(s.Tokens) - s.ResponseLength
			values := make([]float64, s.ResponseLength)
			for i := range values {
				values[i], _ = s.Metadata["advantage"].(float64)
			}
			if wise, ok := s.Metadata["step_wise"].(map[string]any); ok && name == "openclaw" { // its trainer compares steps by their spans
				require.NotNil(t, wise["step_token_spans"])
				require.NotNil(t, wise["step_scores"])
				values = nil
			}
			for i, on := range s.LossMask {
				if on == 0 {
					continue
				}
				at := fmt.Sprint(s.Tokens[:base+i+1])
				if got[at] = math.NaN(); values != nil {
					got[at] = values[i]
				}
			}
		}
		return got
	}
	rows, _, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	return advantagesOf(rows)
}

// Advantages of steps and of tokens reach every target that can hold them, unchanged from
// rows without a target. Other targets refuse them and say why.
func TestStepsAndTokensInEveryTarget(t *testing.T) {
	kit.Long(t)
	const one, last, row, unread = "it reads one advantage per row", "the score of the last", "it takes one row per rollout", "which reads no advantages"
	// Per target: why it refuses merged rows and per-step rows of a step estimator, then
	// both of a token estimator. "" = accepted.
	all := map[string][4]string{
		"none":          {},
		"slime":         {one, "", one, one},
		"slime --pt":    {one, "", one, one},
		"openclaw":      {"", "", one, one},
		"openclaw --pt": {"", "", one, one},
		"megatron":      {unread, unread, unread, unread},
		"verl":          {one, last, one, last},
		"skyrl":         {},
		"prime-rl":      {},
		"trl":           {"", row, "", row},
		"trl-async":     {one, "", one, one},
		"areal":         {one, "", one, one},
		"nemo-rl":       {},
	}
	for _, name := range target.Names() {
		require.Contains(t, all, name, "the target is not tried")
	}
	in := creditDump(t)
	for i, flags := range []string{"--estimator openclaw_step_wise --mode merged", "--estimator openclaw_step_wise --mode perstep",
		"--estimator verl_reinforce_pp --discount 0.9 --mode merged", "--estimator verl_reinforce_pp --discount 0.9 --mode perstep"} {
		convert := func(name, out string) (int, string) {
			args := append([]string{"convert", "--in", in, "--out", out, "--quiet", "--logprobs", "processed"}, strings.Fields(flags+" --target "+name)...)
			if strings.HasPrefix(name, "prime-rl") || strings.HasPrefix(name, "megatron") {
				args = append(args, "--seq-len", "64")
			}
			code, _, stderr := call(t, args...)
			return code, stderr
		}
		plain := t.TempDir()
		code, stderr := convert("none", plain)
		require.Zero(t, code, stderr)
		want := madeBy(t, "none", plain, false)
		require.Len(t, want, 3*5)
		different := map[float64]bool{}
		for _, value := range want {
			different[value] = true
		}
		require.GreaterOrEqual(t, len(different), 5, "steps differ")
		for name, why := range all {
			out := t.TempDir()
			code, stderr := convert(name, out)
			if why[i] != "" {
				require.NotZero(t, code, "%s %s", name, flags)
				require.Contains(t, stderr, why[i], "%s %s", name, flags)
				require.Contains(t, stderr, " (", "%s: and what to do", name)
				continue
			}
			require.Zero(t, code, "%s %s: %s", name, flags, stderr)
			base, _, pt := strings.Cut(name, " ")
			got := madeBy(t, base, out, pt)
			require.Len(t, got, len(want), "%s %s", name, flags)
			for at, value := range got {
				require.Contains(t, want, at, "%s %s", name, flags)
				if !math.IsNaN(value) {
					require.InDelta(t, want[at], value, 1e-6, "%s %s %s", name, flags, at)
				} else {
					require.Equal(t, "openclaw --pt", name, "%s has none of %s", name, at)
				}
			}
		}
	}
}
