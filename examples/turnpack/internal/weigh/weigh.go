// Package weigh computes loss weights so that a mean over tokens becomes another
// aggregation.
package weigh

import (
	"context"
	"strings"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/examples/turnpack/internal/step"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/reward/weights"
	"github.com/turnpack/turnpack/rollout"
)

// Weigher gives rows the loss weights of an aggregation. They depend on all rows of an
// optimizer step, so the run reads the input once more to count.
type Weigher struct {
	how     weights.Aggregation
	perStep int            // groups per step, 0 = one step
	stepOf  map[string]int // group → step
	steps   []stepCounts
	columns *export.Columns // of the first row, with weights
}

type stepCounts struct {
	weights weights.Totals
	target  target.Totals
	last    string // rollout counted last; the rows of a rollout are consecutive
}

// New parses --weights. It returns nil if weights stay 0 and 1.
func New(name string, perStep int) (*Weigher, error) {
	w := &Weigher{perStep: perStep, stepOf: map[string]int{}}
	// PerToken weights have mean 1 over the trained tokens, so that a trainer that
	// averages over tokens computes the requested mean.
	modes := map[string]string{"rollout-mean": "rollout_mean", "prompt-mean": "prompt_mean", "sequence-mean": "sequence_mean"}
	if mode, ok := modes[name]; ok {
		w.how = weights.Aggregation{Mode: mode, PerToken: true}
		return w, nil
	}
	if name == "none" {
		return nil, nil
	}
	how, ok := weights.Preset(name)
	if !ok || how.MicroBatch > 0 {
		var presets []string
		for _, p := range weights.Presets() {
			if p.MicroBatch == 0 {
				presets = append(presets, p.Name)
			}
		}
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--weights"}, "found %q, expected none, rollout-mean, prompt-mean, sequence-mean or a trainer's own", name).
			WithFix("those are %s", strings.Join(presets, ", "))
	}
	w.how = how
	return w, nil
}

// Count counts the rows of src that t keeps.
func (w *Weigher) Count(ctx context.Context, pipe turnpack.Pipeline, src turnpack.Source, t *target.Target) error {
	rows := &step.Groups{Target: t, To: counter{w}}
	if _, err := pipe.Run(ctx, src, step.Rows{To: rows}); err != nil {
		return err
	}
	return rows.Close()
}

// Columns returns the columns of the first row counted, plus weights. It is nil if there
// was none.
func (w *Weigher) Columns() *export.Columns { return w.columns }

type counter struct{ *Weigher }

// Close does nothing.
func (c counter) Close() error { return nil }

// Abort does nothing.
func (c counter) Abort() error { return nil }

// Row counts a row.
func (c counter) Row(r spool.Row) error {
	if c.columns == nil {
		has := export.ColumnsOf(&r.Sample)
		has.Weights = true
		c.columns = &has
	}
	step, ok := c.stepOf[r.Group]
	if !ok {
		if c.perStep > 0 {
			step = len(c.stepOf) / c.perStep
		}
		c.stepOf[r.Group] = step
		if step == len(c.steps) {
			c.steps = append(c.steps, stepCounts{})
		}
	}
	n, row := &c.steps[step], weightRow(&r)
	n.target.Trained += int64(row.Trained)
	if n.last != row.Rollout {
		n.target.Rollouts++
		n.last = row.Rollout
	}
	return n.weights.Add(row)
}

// weightRow returns the counts that the weight of r depends on.
func weightRow(r *spool.Row) weights.Row {
	return weights.Row{Trained: r.Trained(), Length: r.Len(), Prompt: r.Group, Rollout: r.Rollout}
}

// Mean reports whether a target converts the weights into the form that its trainer
// reads.
func (w *Weigher) Mean() bool {
	return w != nil && w.how == weights.Aggregation{Mode: "rollout_mean", PerToken: true}
}

// Totals returns the counts of the step that a group belongs to.
func (w *Weigher) Totals(group string) target.Totals { return w.steps[w.stepOf[group]].target }

// Weighing adds weights to rows before they go to a sink.
type Weighing struct {
	*Weigher
	step.Sink
}

// Row passes the weighted row on.
func (w Weighing) Row(r spool.Row) error {
	if step, ok := w.stepOf[r.Group]; ok { // groups that the target leaves out have no step
		if factor := w.steps[step].weights.Weight(weightRow(&r), w.how); factor != 0 { // 0: the row has no trained token
			var err error
			if r.Sequence, err = weights.Apply(r.Sequence, factor); err != nil {
				return err
			}
		}
	}
	return w.Sink.Row(r)
}
