package weights

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

func TestWeightsByHand(t *testing.T) {
	// Rollout a has two rows with 1 and 3 trained tokens, b one row with 4, c one row with none.
	rows := []Row{
		{Trained: 1, Length: 5, Prompt: "p", Rollout: "a"}, {Trained: 3, Length: 9, Prompt: "p", Rollout: "a"},
		{Trained: 4, Length: 6, Prompt: "q", Rollout: "b"}, {Trained: 0, Length: 2, Prompt: "q", Rollout: "c"},
	}
	for _, c := range []struct {
		reason string
		a      Aggregation
		want   []float64
	}{
		{"every rollout counts once over its rows", Aggregation{}, []float64{1. / 8, 1. / 8, 1. / 8, 0}},
		{"a trainer that divides by its tokens", Aggregation{PerToken: true}, []float64{1, 1, 1, 0}},
		{"an empty rollout may count", Aggregation{CountEmpty: true}, []float64{1. / 12, 1. / 12, 1. / 12, 0}},
		{"token mean", Aggregation{Mode: tokenMean}, []float64{1. / 8, 1. / 8, 1. / 8, 0}},
		{"a batch larger than these rows", Aggregation{Mode: tokenMean, Tokens: 100}, []float64{.01, .01, .01, 0}},
		{"token sum", Aggregation{Mode: tokenSum}, []float64{1, 1, 1, 0}},
		{"sequence mean counts a split rollout twice", Aggregation{Mode: sequenceMean}, []float64{1. / 3, 1. / 9, 1. / 12, 0}},
		{"sequence sum", Aggregation{Mode: sequenceSum}, []float64{1. / 3, 1. / 3, 1. / 3, 0}},
		{"constant takes the longest row", Aggregation{Mode: constant}, []float64{1. / 27, 1. / 27, 1. / 27, 0}},
		{"constant as given", Aggregation{Mode: constant, Divisor: 10, Sequences: 2}, []float64{1. / 20, 1. / 20, 1. / 20, 0}},
		{"prompt mean", Aggregation{Mode: promptMean}, []float64{1. / 8, 1. / 8, 1. / 8, 0}},
		{"rollout sum", Aggregation{Mode: rolloutSum}, []float64{1. / 4, 1. / 4, 1. / 4, 0}},
		{"micro-batches", Aggregation{Mode: tokenMean, MicroBatch: 2}, []float64{1. / 8, 1. / 8, 1. / 8, 0}},
		{"rows beyond the last full run", Aggregation{Mode: tokenMean, MicroBatch: 3}, []float64{1. / 8, 1. / 8, 1. / 8, 0}},
	} {
		got, err := PerRow(rows, c.a)
		require.NoError(t, err)
		require.InDeltaSlice(t, c.want, got, 1e-15, c.reason)
	}
}

// For any batch, the weights of a mean sum to 1, those per token to the number of tokens, and every
// rollout has the same share of the rollout mean.
func TestWeightsSum(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	for range 200 {
		rows := make([]Row, 1+r.IntN(12))
		tokens := 0
		for i := range rows {
			n := r.IntN(6)
			rows[i] = Row{Trained: n, Length: n + r.IntN(5), Rollout: fmt.Sprint(r.IntN(4))}
			rows[i].Prompt = "p" + rows[i].Rollout[:1]
			tokens += n
		}
		if tokens == 0 {
			continue
		}
		for _, mode := range []string{rolloutMean, tokenMean, sequenceMean, promptMean} {
			for _, perToken := range []bool{false, true} {
				w, err := PerRow(rows, Aggregation{Mode: mode, PerToken: perToken})
				require.NoError(t, err)
				sum, share := 0.0, map[string]float64{}
				for i, x := range rows {
					sum += w[i] * float64(x.Trained)
					share[x.Rollout] += w[i] * float64(x.Trained)
				}
				want := 1.0
				if perToken {
					want = float64(tokens)
				}
				require.InDelta(t, want, sum, 1e-9*want, mode)
				if mode == rolloutMean {
					first := math.NaN()
					for _, s := range share {
						if s == 0 {
							continue
						}
						if first != first {
							first = s
						}
						require.InDelta(t, first, s, 1e-9*want)
					}
				}
			}
		}
	}
}

func TestExportPresetIsTheSchemasRule(t *testing.T) {
	a, ok := Preset("export")
	require.True(t, ok)
	rows := []Row{{Trained: 2, Length: 3, Rollout: "a"}, {Trained: 6, Length: 9, Rollout: "b"}, {Trained: 4, Length: 4, Rollout: "a"}}
	got, err := PerRow(rows, a)
	require.NoError(t, err)
	for i, r := range rows {
		require.InDelta(t, 12/(2*6.0), got[i], 1e-15, "trained tokens / (rollouts × trained tokens of %s)", r.Rollout)
	}
}

func TestFaults(t *testing.T) {
	for _, a := range []Aggregation{{Mode: "99"}, {Sequences: -1}, {Divisor: math.NaN()}, {Epsilon: -1}, {Mode: tokenSum, MicroBatch: 2}} {
		_, err := PerRow(nil, a)
		require.ErrorIs(t, err, rollout.KindInput)
	}
	for _, r := range []Row{{Trained: -1}, {Trained: 2, Length: 1}, {Trained: 2, Length: 2, RolloutTrained: 1}} {
		_, err := PerRow([]Row{r}, Aggregation{})
		require.ErrorIs(t, err, rollout.KindInput)
	}
	for _, a := range Presets() {
		require.NoError(t, a.validate(), a.Name)
	}
}

func TestApply(t *testing.T) {
	seq := rollout.Sequence{IDs: []int32{1, 2, 3}, Source: []int32{0, 0, 0}, Flags: make([]rollout.Flag, 3), Turn: []int32{-1, -1, -1}}
	_, err := Apply(seq, 1)
	require.ErrorIs(t, err, rollout.KindInput)
	seq, err = seq.WithWeight([]float32{0, 1, 0.5})
	require.NoError(t, err)
	got, err := Apply(seq, 0.25)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 0.25, 0.125}, got.Weight)
	_, err = Apply(seq, math.Inf(1))
	require.ErrorIs(t, err, rollout.KindInput)
}

func BenchmarkTotals(b *testing.B) {
	rows := make([]Row, 1<<16)
	for i := range rows {
		rows[i] = Row{Trained: 1 + i%97, Length: 200, Prompt: fmt.Sprint(i / 64), Rollout: fmt.Sprint(i / 8)}
	}
	for b.Loop() {
		if _, err := PerRow(rows, Aggregation{PerToken: true}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
}

func TestSettingsOfAnotherModeAreRefused(t *testing.T) {
	rows := []Row{{Trained: 1, Length: 1}}
	for field, a := range map[string]Aggregation{"Divisor": {Mode: "token_mean", Divisor: 7}, "Epsilon": {Epsilon: 1e-8}} {
		_, err := PerRow(rows, a)
		require.ErrorContains(t, err, field)
	}
}
