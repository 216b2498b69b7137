package turnpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// tokenAdvantages returns the advantages of rows made by a run without advantages, by row id, from
// the rewards by rollout; reward.TokenAdvantages takes a row as one response.
func tokenAdvantages(t *testing.T, made []rollout.Sample, rewards map[string]float64, masked func(rollout.Sample) bool, e reward.TokenEstimator) map[string][]float64 {
	t.Helper()
	groups := map[string]*reward.TokenGroup{}
	var order []string
	ids := map[string][]string{}
	for _, s := range made {
		r, in := rewards[s.Rollout]
		if !in {
			continue
		}
		if groups[s.Group] == nil {
			groups[s.Group] = &reward.TokenGroup{Key: s.Group}
			order = append(order, s.Group)
		}
		mask := make([]bool, s.Len())
		for i, w := range s.Weight {
			mask[i] = w > 0 && !masked(s)
		}
		groups[s.Group].Rollouts = append(groups[s.Group].Rollouts, reward.TokenRollout{ID: s.ID, Reward: r, Mask: mask})
		ids[s.Group] = append(ids[s.Group], s.ID)
	}
	var in []reward.TokenGroup
	for _, key := range order {
		in = append(in, *groups[key])
	}
	values, err := reward.TokenAdvantages(in, e)
	require.NoError(t, err)
	out := map[string][]float64{}
	for i, key := range order {
		for j, id := range ids[key] {
			out[id] = values[i][j]
		}
	}
	return out
}

// A run gives the tokens of its rows what the estimator gives for the whole batch at once, bit for
// bit: with several rows per rollout, rollouts without a reward, masked rows, and any number of
// workers.
func TestTokenEstimators(t *testing.T) {
	kit.Long(t)
	src := varied(5)
	for i, r := range src {
		r.Status, r.Failure = rollout.StatusCompleted, nil
		if i == 3 {
			r.Status = rollout.StatusFailed
		}
		if i%3 == 0 { // one turn, so that groups have rollouts of one row and of two
			r.Messages, r.Turns = r.Messages[:2], r.Turns[:1]
		}
		if last := &r.Turns[len(r.Turns)-1]; i%4 == 0 {
			last.FinishReason = "length"
		} else {
			last.FinishReason = "stop"
		}
	}
	for _, e := range reward.TokenPresets() {
		if e.Center == "baseline" {
			continue
		}
		for _, discount := range []float64{0, 0.9} {
			if e.Discount = discount; e.Validate() != nil {
				continue
			}
			for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
				p := turnpack.Pipeline{Model: model(t), NoAdvantages: true, Workers: 3}
				p.Encode.Mode = mode
				var bare, got rows
				_, err := p.Run(t.Context(), src, &bare)
				require.NoError(t, err)
				most := 0 // the longest rows are too long
				for _, s := range bare.got {
					most = max(most, s.Len()-1)
				}
				rewards := map[string]float64{}
				for _, r := range src {
					if s := reward.Score(r, p.Scale); s.Excluded == "" {
						rewards[r.ID] = s.Total
						if r.Turns[len(r.Turns)-1].FinishReason != "stop" {
							rewards[r.ID] = 0
						}
					}
				}
				unfinished := map[string]bool{}
				for _, r := range src {
					unfinished[r.ID] = r.Turns[len(r.Turns)-1].FinishReason != "stop"
				}
				masked := func(s rollout.Sample) bool { return s.Len() > most || unfinished[s.Rollout] }
				want := tokenAdvantages(t, bare.got, rewards, masked, e)
				p.NoAdvantages, p.Tokens = false, &e
				p.Mask, p.Shaping = lossmask.Policy{MaxTokens: most}, shaping.Rules{StopProperly: true}
				report, err := p.Run(t.Context(), src, &got)
				require.NoError(t, err)
				require.NotEmpty(t, got.got)
				require.Contains(t, report.MaskedRows, "did not stop")
				require.Contains(t, report.MaskedRows, "overlong")
				trained := map[string]bool{}
				for _, s := range got.got {
					trained[s.ID] = true
					values := want[s.ID]
					require.NotNil(t, values, s.ID)
					sum, n := 0.0, 0
					for i, w := range s.Weight {
						if w > 0 {
							require.Equal(t, float32(values[i]), s.Credit[i], "%s of %s, token %d", e.Name, s.ID, i)
							sum, n = sum+values[i], n+1
						}
					}
					require.InDelta(t, sum/float64(n), *s.Advantage, 1e-6)
				}
				for _, s := range bare.got {
					if _, in := rewards[s.Rollout]; in && !masked(s) {
						trained[s.ID] = trained[s.ID] || mode == tokenize.PerStep // numbered without masked rows
						require.True(t, trained[s.ID], "%s has rows", s.ID)
					}
				}
			}
		}
	}
}

func TestTokenEstimatorsThatCannotRun(t *testing.T) {
	remax, ok := reward.TokenPreset("verl_remax")
	require.True(t, ok)
	for field, p := range map[string]turnpack.Pipeline{
		"greedy":             {Tokens: &remax},
		"Pipeline.Tokens":    {Tokens: &reward.TokenEstimator{}, Estimator: reward.GRPO()},
		"not in (0, 1]":      {Tokens: &reward.TokenEstimator{Discount: 3, Center: "none"}},
		"not defined for to": {Tokens: &reward.TokenEstimator{Center: "ema"}},
	} {
		p.Model = model(t)
		require.ErrorContains(t, p.Validate(), field)
	}
}

func TestTokenRunGoesOn(t *testing.T) {
	src := varied(3)
	e, _ := reward.TokenPreset("verl_reinforce_pp_baseline")
	p := turnpack.Pipeline{Model: model(t), Tokens: &e}
	whole, report := made(t, p, src)
	k := &keeping{kept: map[string][]byte{}}
	_, err := p.Run(t.Context(), src, k)
	require.NoError(t, err)
	clear(k.kept) // every row is made again, from the counts of the first run
	k.got = nil
	again, err := p.Run(t.Context(), src, k)
	require.NoError(t, err)
	require.Equal(t, report.Overview, again.Overview)
	require.Len(t, k.got, len(whole))
	var fresh rows
	_, err = p.Run(t.Context(), src, &fresh)
	require.NoError(t, err)
	require.Equal(t, fresh.got, k.got)
}
