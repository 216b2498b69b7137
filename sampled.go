package turnpack

import (
	"cmp"
	"context"
	"slices"

	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// sequences encodes r. A row has one temperature: a sequence with tokens sampled at several is
// yielded once per temperature, each time with only the tokens of that temperature trained.
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

// byTemperature returns row, or one copy for each temperature its tokens were sampled at, in order
// of appearance.
func (x *run) byTemperature(r *rollout.Rollout, row spool.Row) []spool.Row {
	var temperatures []float32
	for i, t := range row.Turn {
		if row.Flags[i]&rollout.FlagSampled == 0 || i > 0 && t == row.Turn[i-1] {
			continue
		}
		if at := x.temperature(r, int(t)); !slices.Contains(temperatures, at) {
			temperatures = append(temperatures, at)
		}
	}
	if len(temperatures) < 2 {
		return []spool.Row{row}
	}
	out := make([]spool.Row, len(temperatures))
	for k, own := range temperatures {
		c := row
		c.Flags, c.Turn, c.Logprob, c.Version = slices.Clone(row.Flags), slices.Clone(row.Turn), slices.Clone(row.Logprob), slices.Clone(row.Version)
		if c.Tokens = slices.Clone(row.Tokens); c.Lens != nil { // so that the writer may change it
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

// temperature returns the temperature of a turn; if none is recorded, the pipeline's, else 1.
func (x *run) temperature(r *rollout.Rollout, turn int) float32 {
	if t := r.TemperatureAt(turn); t != nil {
		return *t
	}
	return cmp.Or(x.Temperature, 1)
}

// byRuns reports whether all tokens of a run in r are treated alike, so that rows can stay runs.
func (x *run) byRuns(r *rollout.Rollout) bool {
	return (x.Tokens == nil || !x.Tokens.Discounts()) && (x.Shaping.OffPolicy == nil || x.TrainLogprobs == nil && !slices.ContainsFunc(r.Turns, func(t rollout.Turn) bool { return t.TrainLogprobs != nil }))
}
