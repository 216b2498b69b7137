package turnpack

import (
	"cmp"
	"context"
	"slices"

	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// sequences encodes r. A row holds one temperature: where a sequence has tokens
// of several, it is given once for each, which trains those alone.
func (x *run) sequences(ctx context.Context, r *rollout.Rollout, yield func(spool.Row) error) (tokenize.Report, error) {
	return x.enc.EachRuns(ctx, r, func(seq rollout.Sequence, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
		row := spool.Row{Sample: rollout.Sample{Sequence: seq}, Lens: lens, Tokens: ids, Logprobs: logprobs}
		if lens == nil && seq.Len() >= cmp.Or(int(x.heldLimit), hugeRow) && x.byRuns(r) {
			if runs, ok := spool.Runs(&seq); ok {
				row = runs
			}
		}
		if row.Lens != nil && !x.byRuns(r) {
			if err := row.CheckWhole(); err != nil {
				return err
			}
			row = spool.Row{Sample: row.Whole()}
		}
		for _, part := range x.byTemperature(r, row) {
			if err := yield(part); err != nil {
				return err
			}
		}
		return nil
	})
}

// byTemperature is row, or a copy for each of the temperatures its tokens were
// sampled at, in the order they occur.
func (x *run) byTemperature(r *rollout.Rollout, row spool.Row) []spool.Row {
	var unlike []float32
	for i, t := range row.Turn {
		if row.Flags[i]&rollout.FlagSampled == 0 || i > 0 && t == row.Turn[i-1] {
			continue
		}
		if at := x.temperature(r, int(t)); !slices.Contains(unlike, at) {
			unlike = append(unlike, at)
		}
	}
	if len(unlike) < 2 {
		return []spool.Row{row}
	}
	out := make([]spool.Row, len(unlike))
	for k, own := range unlike {
		c := row
		c.Flags, c.Turn, c.Logprob, c.Version = slices.Clone(row.Flags), slices.Clone(row.Turn), slices.Clone(row.Logprob), slices.Clone(row.Version)
		if c.Tokens = slices.Clone(row.Tokens); c.Lens != nil { // the writer's to change
			c.Lens, c.Logprobs = slices.Clone(row.Lens), slices.Clone(row.Logprobs)
		}
		logprobs := c.Logprob
		if c.Lens != nil {
			logprobs = c.Logprobs
		}
		row.Each(func(i, at, n int) {
			if t := row.Turn[i]; t < 0 || x.temperature(r, int(t)) == own {
				return
			}
			c.Flags[i] &^= rollout.FlagSampled | rollout.FlagStop
			c.Turn[i] = -1
			if logprobs != nil {
				clear(logprobs[at : at+n])
			}
			if c.Version != nil {
				c.Version[i] = -1
			}
		})
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
	return cmp.Or(x.Temperature, 1)
}

// byRuns says whether what is done with a row is the same for all tokens of a run.
func (x *run) byRuns(r *rollout.Rollout) bool {
	return (x.Tokens == nil || !x.Tokens.Discounts()) && (x.Shaping.OffPolicy == nil || x.TrainLogprobs == nil && !slices.ContainsFunc(r.Turns, func(t rollout.Turn) bool { return t.TrainLogprobs != nil }))
}
