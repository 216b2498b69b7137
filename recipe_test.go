package turnpack_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// golden is a batch of the conformance kit with the results of the system's own code.
type golden struct {
	ID, Estimator, Kind string
	MeanLevel           string `json:"mean_level"`
	StdLevel            string `json:"std_level"`
	LeaveOneOut         bool   `json:"mean_leave1out"`
	StdUnbiased         bool   `json:"std_unbiased"`
	Ragged              bool   `json:"ragged_tail"`
	Groups              []goldenGroup
	Expected64          [][]json.RawMessage
	IllConditioned      bool `json:"ill_conditioned"`
	NSamplesPerPrompt   int  `json:"n_samples_per_prompt"`
}

type goldenGroup struct {
	Key      string
	Family   string
	Rewards  []*float64
	Proposer *float64 `json:"proposer_reward"` // for the rollout that made the problem
	Rollouts []struct {
		Outcome     float64
		StepScores  []float64 `json:"step_scores"`
		StepIndices []int     `json:"step_indices"`
	}
}

func goldenBatches(t *testing.T) []golden {
	return slices.Collect(kit.Lines[golden](t, kit.Dir(t, "conformance", "advantages", "cases.jsonl")))
}

// stepsOf is a rollout with a turn of two tokens for each step.
func stepsOf(group string, i int, indices []int) *rollout.Rollout {
	r := &rollout.Rollout{ID: fmt.Sprintf("%s/%d", group, i), Group: group, Status: rollout.StatusCompleted,
		Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "x"}}}
	prompt := []rollout.TokenID{1}
	for n, step := range indices {
		r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleAssistant, Content: "y", Sampled: rollout.SampledByPolicy}, rollout.Message{Role: rollout.RoleUser, Content: "z"})
		out := []rollout.TokenID{rollout.TokenID(10 + n), 2}
		r.Turns = append(r.Turns, rollout.Turn{Message: 2*n + 1, Step: step, Prompt: rollout.PromptIDs{Add: append([]rollout.TokenID{}, prompt...)}, Output: out})
		prompt = append(append(prompt, out...), 3)
	}
	return r
}

// plain is a recipe with rewards as recorded, without rules that use anything else.
func plain(r recipe.Recipe) recipe.Recipe {
	r.Window, r.Shaping.MaxAge, r.Scale.Outcome = "", nil, "recorded"
	r.Shaping.Affine, r.Shaping.Clip, r.Shaping.Soft, r.Shaping.OffPolicy = shaping.Affine{}, nil, nil, nil
	r.Shaping.Spending = nil // all sequences have the same number of tokens and turns
	r.Estimator.Override, r.Estimator.Clip = reward.Override{}, nil
	return r
}

// Golden batches of the systems' own code through each recipe: every row has the advantage that the
// system gives its rollout, and a rollout without rows has advantage 0 there.
func TestRecipesAsTheSystems(t *testing.T) {
	tried := map[string]int{}
	for _, g := range goldenBatches(t) {
		areal := g.MeanLevel == "group" && g.StdLevel == "group" && !g.LeaveOneOut && g.StdUnbiased && !g.Ragged
		if g.Kind != "scalar" || g.Estimator == "areal_norm" && !areal {
			continue
		}
		for _, r := range recipe.All() {
			base, _, _ := strings.Cut(r.Estimator.Name, "@")
			if base != g.Estimator {
				continue
			}
			tolerance := 1e-6
			var src turnpack.Slice
			for k, group := range g.Groups {
				if group.Proposer != nil && len(group.Rewards) == len(g.Expected64[k])-1 {
					g.Groups[k].Rewards = append([]*float64{group.Proposer}, group.Rewards...)
					group = g.Groups[k]
				}
				if strings.HasPrefix(g.Estimator, "nemo") && strings.HasPrefix(group.Family, "near") {
					tolerance = 1e-4 // the source computes the variance from squares
				}
				for i, x := range group.Rewards {
					one := stepsOf(group.Key, i, []int{0, 1})
					one.Outcome.Reward = x
					if group.Proposer != nil && i == 0 {
						one.Group = reward.ProposerKey
					}
					src = append(src, one)
				}
			}
			p, err := turnpack.Pipeline{OnError: rollout.OnErrorStop}.With(plain(r))
			require.NoError(t, err)
			var dst rows
			_, err = p.Run(t.Context(), src, &dst)
			require.NoError(t, err, "%s %s", r.Name, g.ID)
			got := map[string]float64{}
			for _, s := range dst.got {
				got[s.Rollout] = *s.Advantage
				for i, w := range s.Weight {
					if w > 0 {
						require.InDelta(t, *s.Advantage, s.Credit[i], math.Max(1e-6, 1e-6*math.Abs(*s.Advantage)))
					}
				}
			}
			for k, group := range g.Groups {
				for i := range group.Rewards {
					var want *float64
					require.NoError(t, json.Unmarshal(g.Expected64[k][i], &want))
					value, has := got[fmt.Sprintf("%s/%d", group.Key, i)]
					switch {
					case want == nil:
						require.False(t, has && value != 0, "%s %s %s/%d", r.Name, g.ID, group.Key, i)
					case has:
						require.InDelta(t, *want, value, tolerance*math.Max(1, math.Abs(*want)), "%s %s %s/%d", r.Name, g.ID, group.Key, i)
					default:
						require.InDelta(t, 0, *want, 1e-2, "%s %s %s/%d has no row", r.Name, g.ID, group.Key, i)
					}
				}
			}
			tried[r.Name]++
		}
	}
	t.Log(tried)
	for _, r := range recipe.All() {
		if r.Name != named(t, "swe-rl-prm").Name {
			require.NotZero(t, tried[r.Name], "%s has no golden batch", r.Name)
		}
	}
}

// Golden batches of step rewards: each token has the advantage of its step, in rows of one step and
// in merged ones, and a step that the system drops is not trained.
func TestStepRecipeAsTheSystem(t *testing.T) {
	n := 0
	for _, g := range goldenBatches(t) {
		if g.Estimator != "openclaw_step_wise" {
			continue
		}
		var src turnpack.Slice
		want := map[string]*float64{}
		for k, group := range g.Groups {
			for i, x := range group.Rollouts {
				r := stepsOf(group.Key, i, x.StepIndices)
				r.Outcome.Reward = &x.Outcome
				var kept struct {
					StepIndices []int `json:"step_indices"`
					Advantages  []float64
				}
				require.NoError(t, json.Unmarshal(g.Expected64[k][i], &kept))
				for j, step := range x.StepIndices {
					r.Steps = append(r.Steps, rollout.StepScore{Step: step, Score: &x.StepScores[j]})
					key := fmt.Sprintf("%s %d", r.ID, step)
					want[key] = nil
					if at := slices.Index(kept.StepIndices, step); at >= 0 {
						want[key] = &kept.Advantages[at]
					}
				}
				src = append(src, r)
			}
		}
		for _, mode := range []tokenize.Mode{tokenize.PerStep, tokenize.Merged} {
			r := plain(named(t, "swe-rl-prm"))
			r.Mode = mode
			p, err := turnpack.Pipeline{OnError: rollout.OnErrorStop}.With(r)
			require.NoError(t, err)
			var dst rows
			report, err := p.Run(t.Context(), src, &dst)
			require.NoError(t, err, g.ID)
			got := map[string]float64{}
			for _, s := range dst.got {
				own := src[0]
				for _, r := range src {
					if r.ID == s.Rollout {
						own = r
					}
				}
				for i, w := range s.Weight {
					if w > 0 {
						key := fmt.Sprintf("%s %d", s.Rollout, own.Turns[s.Turn[i]].Step)
						require.NotNil(t, want[key], "%s %s is trained", g.ID, key)
						require.InDelta(t, *want[key], s.Credit[i], 1e-6*math.Max(1, math.Abs(*want[key])), "%s %s", g.ID, key)
						got[key]++
					}
				}
				if mode == tokenize.PerStep {
					require.InDelta(t, *want[fmt.Sprintf("%s %d", s.Rollout, own.Turns[s.LastTurn].Step)], *s.Advantage, 1e-5)
				}
			}
			left := 0
			for key, value := range want {
				if value != nil {
					require.Equal(t, 2.0, got[key], "%s %s: its two tokens train once", g.ID, key)
				} else {
					left++
				}
			}
			whole := 0 // excluded rollouts are not encoded
			for why, k := range report.WithoutRows {
				require.NotEmpty(t, why)
				whole += k
			}
			if whole == 0 {
				require.EqualValues(t, 2*left, report.Unscored)
			}
		}
		n++
	}
	require.NotZero(t, n)
}

// A step that was deliberately not judged counts with the outcome; a step whose judge failed is not
// trained, and is counted.
func TestStepsWithoutScore(t *testing.T) {
	var src turnpack.Slice
	for i, outcome := range []float64{1, -1} {
		r := stepsOf("g", i, []int{0, 1, 2})
		score := 0.5
		r.Outcome.Reward = &outcome
		r.Steps = []rollout.StepScore{{Step: 0, Score: &score}, {Step: 1, Reason: "the judge failed"}, {Step: 2, Reason: "skipped: the submission"}}
		src = append(src, r)
	}
	src = append(src, stepsOf("g", 2, []int{0}))
	src[2].Outcome.Reward = ptr(1.0)
	p, err := turnpack.Pipeline{}.With(plain(named(t, "swe-rl-prm")))
	require.NoError(t, err)
	var dst rows
	report, err := p.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Len(t, dst.got, 4, "two steps of two rollouts")
	for _, s := range dst.got {
		require.NotEqual(t, 1, s.LastStep)
		require.InDelta(t, 1, math.Abs(*s.Advantage), 1e-5)
	}
	require.EqualValues(t, 4, report.Unscored)
	require.Equal(t, map[string]int{reward.ExcludedNoSteps: 1}, report.WithoutRows)
}

func named(t *testing.T, name string) recipe.Recipe {
	t.Helper()
	r, err := recipe.Named(name)
	require.NoError(t, err)
	return r
}

// A recipe of token advantages leaves no estimator for rollouts beside them.
func TestRecipeOfTokens(t *testing.T) {
	r := plain(named(t, "swe-rl-prm"))
	r.Estimator, r.Tokens = reward.Estimator{}, &reward.TokenEstimator{}
	p, err := turnpack.Pipeline{Model: model(t), Estimator: reward.GRPO()}.With(r)
	require.NoError(t, err)
	require.NoError(t, p.Validate())
	require.Nil(t, p.Estimator)
}
