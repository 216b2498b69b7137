package turnpack

import (
	"context"
	"slices"

	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// sequences encodes r. A row holds one temperature: where a sequence has tokens
// of several, it is given once for each, which trains those alone.
func (x *run) sequences(ctx context.Context, r *rollout.Rollout, yield func(spool.Row) error) (tokenize.Report, error) {
	if x.byRuns() && !slices.ContainsFunc(r.Turns, func(t rollout.Turn) bool { return t.Sampling != nil }) {
		return x.enc.EachRuns(ctx, r, func(seq rollout.Sequence, lens []int32, ids []rollout.TokenID) error {
			row := spool.Row{Sample: rollout.Sample{Sequence: seq}, Lens: lens, Tokens: ids}
			if lens == nil && seq.Len() >= x.huge() {
				if runs, ok := spool.Runs(&seq); ok {
					row = runs
				}
			}
			return yield(row)
		})
	}
	return x.enc.Each(ctx, r, func(seq rollout.Sequence) error {
		for _, part := range x.byTemperature(r, seq) {
			if err := yield(spool.Row{Sample: rollout.Sample{Sequence: part}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// byTemperature is seq, or a copy for each of the temperatures its tokens were
// sampled at, in the order they occur.
func (x *run) byTemperature(r *rollout.Rollout, seq rollout.Sequence) []rollout.Sequence {
	var unlike []float32
	for i, t := range seq.Turn {
		if seq.Flags[i]&rollout.FlagSampled == 0 || i > 0 && t == seq.Turn[i-1] {
			continue
		}
		if at := x.temperature(r, int(t)); !slices.Contains(unlike, at) {
			unlike = append(unlike, at)
		}
	}
	if len(unlike) < 2 {
		return []rollout.Sequence{seq}
	}
	out := make([]rollout.Sequence, len(unlike))
	for k, own := range unlike {
		c := seq
		c.Flags, c.Turn, c.Logprob, c.Version = slices.Clone(seq.Flags), slices.Clone(seq.Turn), slices.Clone(seq.Logprob), slices.Clone(seq.Version)
		for i, t := range seq.Turn {
			if t < 0 || x.temperature(r, int(t)) == own {
				continue
			}
			c.Flags[i] &^= rollout.FlagSampled | rollout.FlagStop
			c.Turn[i] = -1
			if c.Logprob != nil {
				c.Logprob[i] = 0
			}
			if c.Version != nil {
				c.Version[i] = -1
			}
		}
		out[k] = c
	}
	return out
}

// temperature is that of a turn; where it is not recorded, the pipeline's stands
// for it, or 1.
func (x *run) temperature(r *rollout.Rollout, turn int) float32 {
	if t := r.TemperatureAt(turn); t != nil {
		return *t
	}
	if x.Temperature > 0 {
		return x.Temperature
	}
	return 1
}

// huge is hugeRow, but for tests.
func (x *run) huge() int {
	if x.heldLimit != 0 {
		return int(x.heldLimit)
	}
	return hugeRow
}

// byRuns says whether what is done with a row is the same for all tokens of a run.
func (x *run) byRuns() bool {
	return !x.stepwise() && (x.Shaping.OffPolicy == nil || x.TrainLogprobs == nil)
}
