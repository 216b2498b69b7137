package turnpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// A row has one temperature: turns sampled at another are context in it and have a row of their
// own, so each token is trained once, under the temperature it was sampled at.
func TestRowsHoldOneTemperature(t *testing.T) {
	kit.Long(t)
	hot, cold := &rollout.Sampling{Temperature: new(float32(1))}, &rollout.Sampling{Temperature: new(float32(0.5))}
	for name, c := range map[string]struct {
		first, second *rollout.Sampling
		whole         *float32 // of the rollout
		want          []float32
	}{
		"alike":                     {hot, hot, nil, []float32{1}},
		"unlike":                    {hot, cold, nil, []float32{1, 0.5}},
		"one is the rollout's":      {nil, cold, new(float32(0.25)), []float32{0.25, 0.5}},
		"one is the pipeline's":     {cold, nil, nil, []float32{0.5, 0.75}},
		"unknown, and like default": {nil, &rollout.Sampling{Temperature: new(float32(0.75))}, nil, []float32{0.75}},
	} {
		for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep, tokenize.Whole} {
			r := captured(t, attempt("a", 0, true))
			r.Turns[0].Sampling, r.Turns[1].Sampling, r.Temperature = c.first, c.second, c.whole
			r.Turns[0].Version, r.Turns[1].Version = new(int32(1)), new(int32(2))
			other := captured(t, attempt("a", 1, false))
			var dst rows
			report, err := turnpack.Pipeline{Model: model(t), Temperature: 0.75, Encode: tokenize.Options{Mode: mode}, Estimator: new(reward.GRPO())}.
				Run(t.Context(), turnpack.Slice{r, other}, &dst)
			require.NoError(t, err)
			trained := map[int32]float32{}
			n := 0
			for _, row := range dst.got {
				if row.Rollout != r.ID {
					continue
				}
				require.Equal(t, n, row.SampleIndex, "%s %v", name, mode)
				n++
				require.NoError(t, row.Sequence.Check())
				for i, w := range row.Weight {
					if w > 0 {
						at, twice := trained[row.Turn[i]]
						require.True(t, !twice || at == row.Temperature)
						trained[row.Turn[i]] = row.Temperature
					}
				}
			}
			first, last := c.want[0], c.want[len(c.want)-1]
			require.Equal(t, map[int32]float32{0: first, 1: last}, trained, "%s %v", name, mode)
			if mode != tokenize.PerStep {
				require.Equal(t, len(c.want), n, "%s %v", name, mode)
			}
			require.EqualValues(t, report.Encode.Trained, report.Trained, "%s %v: each token once", name, mode)
		}
	}
}
