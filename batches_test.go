package turnpack_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward/pivot"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/reward/weights"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
)

// trainerBatch is a dump with the results of the trainers' own functions, computed by
// internal/oracle/diff_recipes.py: the advantage of each trained rollout, by recipe, and the loss
// weight of the trained tokens of each row of a step, by aggregation.
type trainerBatch struct {
	Dump       []json.RawMessage
	Advantages map[string]map[string]float64
	Weights    map[string]map[string]float64
}

func trainerBatches(t *testing.T) []trainerBatch {
	return goldenLines[trainerBatch](t, "batches.jsonl")
}

// goldenLines reads a file of recipe/testdata.
func goldenLines[T any](t *testing.T, name string) []T {
	return slices.Collect(kit.Lines[T](t, filepath.Join("recipe", "testdata", name)))
}

func (b trainerBatch) rollouts(t *testing.T) turnpack.Slice { return rolloutsOf(t, b.Dump) }

// rolloutsOf reads lines of a native dump.
func rolloutsOf(t *testing.T, dump []json.RawMessage) (out turnpack.Slice) {
	var text bytes.Buffer
	for _, line := range dump {
		text.Write(append(line, '\n'))
	}
	for r, err := range jsonl.Read(&text, jsonl.Options{}) {
		require.NoError(t, err)
		out = append(out, r)
	}
	return out
}

func TestBatchesOfTrainers(t *testing.T) {
	kit.Long(t)
	for n, b := range trainerBatches(t) {
		require.Len(t, b.Advantages, 11)
		src := b.rollouts(t)
		for name, want := range b.Advantages {
			r, err := recipe.Named(name)
			require.NoError(t, err)
			if name == "verl-dapo" { // a test's replies are shorter than 20,480 tokens
				r.Shaping.Soft = &shaping.Overlong{Max: 24, Cache: 12, Penalty: 1, Unbounded: true}
			}
			p, err := turnpack.Pipeline{Model: model(t)}.With(r)
			require.NoError(t, err)
			var dst rows
			_, err = p.Run(t.Context(), src, &dst)
			require.NoError(t, err)
			requireMasks(t, src, &dst)
			got := map[string]float64{}
			for _, row := range dst.got {
				got[row.Rollout] = *row.Advantage
			}
			require.Len(t, got, len(want), "batch %d, %s", n, name)
			for id, advantage := range want {
				require.Contains(t, got, id, name)
				require.InEpsilon(t, 1e3+advantage, 1e3+got[id], 1e-9, "batch %d, %s, %s: %g, not %g", n, name, id, got[id], advantage)
			}
		}
	}
}

func TestLossWeightsOfTrainers(t *testing.T) {
	for n, b := range trainerBatches(t) {
		var dst rows
		_, err := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: tokenize.PerStep}}.Run(t.Context(), b.rollouts(t), &dst)
		require.NoError(t, err)
		all := make([]weights.Row, len(dst.got))
		for i := range dst.got {
			s := &dst.got[i].Sequence
			all[i] = weights.Row{Trained: s.Trained(), Length: s.Len(), Prompt: s.Group, Rollout: s.Rollout}
		}
		require.GreaterOrEqual(t, len(b.Weights), 10)
		for name, want := range b.Weights {
			how, ok := weights.Preset(name)
			require.True(t, ok, name)
			got, err := weights.PerRow(all, how)
			require.NoError(t, err)
			require.Len(t, want, len(all))
			for i, row := range dst.got {
				require.InEpsilon(t, want[row.ID], got[i], 1e-6, "batch %d, %s, %s", n, name, row.ID)
			}
		}
	}
}

// requireMasks: rows of rollouts with recorded ids train each sampled token once, and no other.
func requireMasks(t *testing.T, src turnpack.Slice, dst *rows) {
	want, got := map[string][]rollout.TokenID{}, map[string][]rollout.TokenID{}
	for _, row := range dst.got {
		for i, w := range row.Weight {
			if w > 0 {
				got[row.Rollout] = append(got[row.Rollout], row.IDs[i])
			}
		}
	}
	for _, r := range src {
		if _, ok := got[r.ID]; ok {
			for _, turn := range r.Turns {
				want[r.ID] = append(want[r.ID], turn.Output...)
			}
		}
	}
	require.Equal(t, want, got)
}

// Golden batches of OpenClaw-RL's own functions (internal/oracle/diff_openclaw.py): every trained
// step has their advantage on each of its tokens, and no other step has a row.
func TestBatchesOfOpenClaw(t *testing.T) {
	tried := map[string]int{}
	for n, b := range goldenLines[struct {
		Recipe string
		Dump   []json.RawMessage
		Steps  map[string]map[int]float64
	}](t, "openclaw.jsonl") {
		r, err := recipe.Named(b.Recipe)
		require.NoError(t, err)
		r.Window = "" // the contexts are recorded
		p, err := turnpack.Pipeline{Model: model(t)}.With(r)
		require.NoError(t, err)
		src := rolloutsOf(t, b.Dump)
		var dst rows
		_, err = p.Run(t.Context(), src, &dst)
		require.NoError(t, err)
		got := map[string]map[int]float64{}
		for _, row := range dst.got {
			var own rollout.Turn
			for _, r := range src {
				if r.ID == row.Rollout {
					own = r.Turns[row.LastStep]
				}
			}
			if got[row.Rollout] == nil {
				got[row.Rollout] = map[int]float64{}
			}
			got[row.Rollout][row.LastStep] = *row.Advantage
			var trained []rollout.TokenID
			for i, w := range row.Weight {
				if w > 0 {
					trained = append(trained, row.IDs[i])
					require.InDelta(t, *row.Advantage, row.Credit[i], 1e-6)
				}
			}
			require.Equal(t, own.Output, trained, "%s step %d", row.Rollout, row.LastStep)
		}
		require.Len(t, got, len(b.Steps), "batch %d, %s", n, b.Recipe)
		for id, steps := range b.Steps {
			require.Len(t, got[id], len(steps), "batch %d, %s, %s", n, b.Recipe, id)
			for step, advantage := range steps {
				require.InDelta(t, advantage, got[id][step], 1e-6*math.Max(1, math.Abs(advantage)), "batch %d, %s, %s step %d", n, b.Recipe, id, step)
			}
		}
		tried[b.Recipe]++
	}
	require.Len(t, tried, 2)
}

// Golden batches of the pivot stage, by NeMo Gym's comparison and NeMo RL's advantages and
// penalties, and of self-play, by the formulas of its paper, which has no public code
// (internal/oracle/diff_stages.py): rewards and the advantage of each token.
func TestBatchesOfStages(t *testing.T) {
	tried := map[string]int{}
	for n, b := range goldenLines[struct {
		Recipe  string
		Dump    []json.RawMessage
		Rewards []*float64
		Bugs    []struct {
			Attempts []ssr.Attempt
			Valid    bool
		}
		Advantages map[string][]float64
	}](t, "stages.jsonl") {
		r, err := recipe.Named(b.Recipe)
		require.NoError(t, err)
		var src turnpack.Source
		if b.Recipe == "ssr" {
			src = rolloutsOf(t, b.Dump)
			at := 0
			for _, bug := range b.Bugs {
				of := []*float64{ptr(-1.0)}
				if bug.Valid {
					got, err := ssr.Resolve(bug.Attempts, 0, ssr.DefaultAlpha)
					require.NoError(t, err)
					of = append([]*float64{got.Inject}, got.Solve...)
				}
				for _, want := range of {
					if require.Equal(t, b.Rewards[at] == nil, want == nil); want != nil {
						require.InDelta(t, *want, *b.Rewards[at], 1e-12)
					}
					at++
				}
			}
			require.Len(t, b.Rewards, at)
		} else {
			src = scored(t, b.Dump, b.Rewards)
		}
		p, err := turnpack.Pipeline{}.With(r)
		require.NoError(t, err)
		var dst rows
		_, err = p.Run(t.Context(), src, &dst)
		require.NoError(t, err)
		require.Len(t, dst.got, len(b.Advantages), "batch %d, %s", n, b.Recipe)
		for _, row := range dst.got {
			want, k := b.Advantages[row.Rollout], 0
			for i, w := range row.Weight {
				if w > 0 {
					require.Less(t, k, len(want), row.Rollout)
					value := *row.Advantage
					if row.Credit != nil {
						value = float64(row.Credit[i])
					}
					require.InDelta(t, want[k], value, 1e-6*math.Max(1, math.Abs(want[k])), "batch %d, %s, %s", n, b.Recipe, row.Rollout)
					k++
				}
			}
			require.Len(t, want, k, row.Rollout)
		}
		tried[b.Recipe]++
	}
	require.Len(t, tried, 2)
}

// scored returns rows of NeMo Gym after the comparison of the pivot stage, whose rewards must
// match.
func scored(t *testing.T, dump []json.RawMessage, rewards []*float64) turnpack.Source {
	var text bytes.Buffer
	for i, line := range dump {
		var row struct {
			Expected pivot.Action `json:"expected_action"`
			Response struct{ Output []pivot.OutputItem }
		}
		require.NoError(t, json.Unmarshal(line, &row))
		got, err := pivot.Comparator{}.Compare(row.Expected, pivot.ActionOf(row.Response.Output))
		require.NoError(t, err)
		require.InDelta(t, *rewards[i], got.Reward, 1e-9)
		all := map[string]json.RawMessage{}
		require.NoError(t, json.Unmarshal(line, &all))
		all["reward"], err = json.Marshal(got.Reward)
		require.NoError(t, err)
		require.NoError(t, json.NewEncoder(&text).Encode(all))
	}
	path := filepath.Join(t.TempDir(), "scored.jsonl")
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
	src, err := traj.NewSource([]string{path}, traj.Options{})
	require.NoError(t, err)
	return src
}

func TestEveryRecipeHasABatch(t *testing.T) {
	has := map[string]bool{}
	for _, b := range trainerBatches(t) {
		for name := range b.Advantages {
			has[name] = true
		}
	}
	for _, file := range []string{"openclaw.jsonl", "stages.jsonl"} {
		for _, b := range goldenLines[struct{ Recipe string }](t, file) {
			has[b.Recipe] = true
		}
	}
	for _, r := range recipe.All() {
		name, _, _ := strings.Cut(r.Name, "@")
		require.True(t, has[name], "no golden batch of %s", name)
	}
}
