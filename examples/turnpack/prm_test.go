package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/judge/fake"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout/traj"
)

// judgedDumps returns dumps of groups of rollouts by name: generated ones, and the
// training dumps of swe-rl if they are next to the checkout.
func judgedDumps(t *testing.T) map[string]string {
	made := t.TempDir()
	var lines []string
	for g := range 3 {
		for i := range 4 {
			messages := []map[string]any{{"role": "user", "content": fmt.Sprint("fix issue ", g)}}
			for s := range 1 + (i+g)%3 {
				result := []string{"ok", "error: no such file", "1 passed", "Traceback"}[(i*s+g)%4]
				messages = append(messages, map[string]any{"role": "assistant", "content": fmt.Sprintf("```bash\ntry %d %d\n```", i, s), "sampled": "sampled"}, map[string]any{"role": "user", "content": result})
			}
			b, err := json.Marshal(map[string]any{"turnpack_version": 1, "id": fmt.Sprintf("g%d/%d", g, i), "group": fmt.Sprint("g", g), "index": i, "messages": messages,
				"outcome": map[string]any{"resolved": i <= g}, "status": "completed"})
			require.NoError(t, err)
			lines = append(lines, string(b))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(made, "dump.jsonl"), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	out := map[string]string{"made": made}
	src := filepath.Join("..", "..", "..", "shared", "data", "trajectories", "openclaw-rl")
	if _, err := os.Stat(src); err != nil {
		t.Logf("SKIPPED in part: no dumps of swe-rl beside the checkout: %v", err)
		return out
	}
	in := t.TempDir()
	for i, name := range []string{"train-resolved", "train-unresolved", "train-apply-failed", "train-no-patch", "train-resolved"} {
		dir := filepath.Join(in, fmt.Sprintf("task__g0__i%d__1", i))
		require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(src, name))))
		for _, file := range []string{"traj.json", "meta.json"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			require.NoError(t, err)
			for field, value := range map[string]string{"group_index": "0", "index": fmt.Sprint(i), "instance_id": `"task"`} {
				text = regexp.MustCompile(`"`+field+`": ("[^"]*"|\d+)`).ReplaceAll(text, fmt.Appendf(nil, "%q: %s", field, value))
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
		}
	}
	out["swe-rl"] = in
	return out
}

// Process rewards go from dumps through a judge to rows, as in the 8B script of swe-rl:
// three votes per step, their mean added to the outcome, and each step compared with the
// same step of the group's other rollouts by (value − mean) / (σ₀ + 1e-6). Buckets of one
// value are left out, unless all are.
func TestProcessRewardsToRows(t *testing.T) {
	kit.Long(t)
	for name, in := range judgedDumps(t) {
		judge := httptest.NewServer(fake.New(fake.Options{}))
		defer judge.Close()
		dir := t.TempDir()
		scored := filepath.Join(dir, "scored.jsonl")
		code, _, stderr := call(t, "score", "--judge", judge.URL+"/v1", "--model", "fake", "--votes", "3", "--prompt", "swe-rl", "--out", scored, in)
		require.Zero(t, code, stderr)

		type bucket struct {
			group string
			step  int
		}
		values, of := map[bucket][]float64{}, map[string]map[bucket]float64{}
		r, err := traj.Open([]string{scored}, traj.Options{})
		require.NoError(t, err)
		for one, err := range r.All() {
			require.NoError(t, err)
			known := reward.Score(one, reward.OutcomePolicy{})
			require.Empty(t, known.Excluded)
			outcome := known.Total
			of[one.ID] = map[bucket]float64{}
			for _, s := range one.Steps {
				require.Len(t, s.Votes, 3)
				require.NotNil(t, s.Score)
				at := bucket{one.Group, s.Step}
				values[at] = append(values[at], outcome+*s.Score)
				of[one.ID][at] = outcome + *s.Score
			}
		}
		want := map[string]float64{} // key: rollout and step
		for id, steps := range of {
			for at, v := range steps {
				all := values[at]
				mean, square := 0.0, 0.0
				for _, x := range all {
					mean += x / float64(len(all))
				}
				for _, x := range all {
					square += (x - mean) * (x - mean) / float64(len(all))
				}
				switch {
				case len(all) == 1:
					want[fmt.Sprint(id, " ", at.step)] = v
				case square > 1e-12:
					want[fmt.Sprint(id, " ", at.step)] = (v - mean) / (math.Sqrt(square) + 1e-6)
				}
			}
		}
		require.NotEmpty(t, want)

		for _, mode := range []string{"perstep", "merged"} {
			out := filepath.Join(dir, mode)
			args := []string{"convert", "--recipe", "swe-rl-prm@0d034dd", "--window", "none", "--mode", mode, "--model", modelDir(t, nil), "--in", scored}
			code, _, stderr = call(t, append(args, "--out", out)...)
			require.Zero(t, code, stderr)
			rows, info, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
			require.NoError(t, err)
			require.Equal(t, "swe-rl-prm@0d034dd5e", info.Metadata["recipe"])
			require.Contains(t, info.Estimator, "openclaw_step_wise@")
			got := map[string]float64{}
			for _, row := range rows {
				var m struct {
					Turnpack struct {
						Steps []struct {
							Step, From, To          int
							Score, Value, Advantage float64
						}
					}
				}
				require.NoError(t, json.Unmarshal(row.Metadata, &m))
				for _, s := range m.Turnpack.Steps {
					key := fmt.Sprint(row.Rollout, " ", s.Step)
					require.InDelta(t, want[key], s.Advantage, 1e-6, "%s %s", name, key)
					got[key] = want[key]
					for at := s.From; at < s.To; at++ {
						if row.Weight[at] > 0 {
							require.InDelta(t, s.Advantage, row.Credit[at], 1e-6)
						}
					}
				}
			}
			require.Equal(t, want, got, "%s, %s: each step that can be compared is trained, no other", name, mode)

			// The same, as OpenClaw-RL's slime reads it.
			code, _, stderr = call(t, append(args, "--target", "openclaw", "--pt", "--out", filepath.Join(dir, mode+"-pt"))...)
			require.Zero(t, code, stderr)
			files, err := filepath.Glob(filepath.Join(dir, mode+"-pt", "*", "0.pt"))
			require.NoError(t, err)
			if len(files) == 0 {
				files = []string{filepath.Join(dir, mode+"-pt", "0.pt")}
			}
			samples := slimeSamples(t, files[0])
			require.Len(t, samples, len(rows))
			steps := 0
			for i, s := range samples {
				meta, ok := s.Metadata["step_wise"].(map[string]any)
				require.True(t, ok)
				spans, _ := meta["step_token_spans"].([]any)
				steps += len(spans)
				require.Equal(t, rows[i].Len()-rows[i].PromptLen, s.ResponseLength)
			}
			require.Equal(t, len(want), steps)
		}
		// A target with one advantage per row accepts per-step rows and says why it
		// refuses merged ones.
		for mode, says := range map[string]string{"perstep": "", "merged": "one advantage per row"} {
			args := []string{"convert", "--recipe", "swe-rl-prm", "--window", "none", "--mode", mode, "--target", "slime", "--model", modelDir(t, nil), "--in", scored, "--dry-run"}
			code, _, stderr = call(t, args...)
			require.Equal(t, says == "", code == 0, stderr)
			require.Contains(t, stderr, says)
		}
		// Without scores, the recipe reports what is missing.
		code, _, stderr = call(t, "convert", "--recipe", "swe-rl-prm", "--model", modelDir(t, nil), "--in", in, "--dry-run")
		require.NotZero(t, code)
		require.Contains(t, stderr, "no step score computed")
	}
}
