package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/rollout"
)

// Diff is the command diff.
type Diff struct {
	A       string `arg:"" name:"batch" help:"A file, or a folder with one."`
	B       string `arg:"" name:"other" help:"Another."`
	Context uint   `help:"Tokens shown on each side." default:"4" placeholder:"N"`
}

// Help returns the long help text.
func (*Diff) Help() string {
	return `Compares two export files row by row, rows matched by sample_id (those that repeat one in their order), and shows the first differing token of each differing row with its surroundings. Exit status 1 means that they differ, 2 that they could not be compared.`
}

// Run compares the two batches and prints how they differ.
func (c *Diff) Run(p *cli.Program) error {
	out := bufio.NewWriter(p.Out)
	d := differ{out: out, around: int(c.Context)}
	a, errA := cli.One(c.A)
	b, errB := cli.One(c.B)
	err := errors.Join(errA, errB)
	if err == nil {
		for _, path := range slices.Compact([]string{a, b}) {
			if begun := shard.Unfinished(path); begun != nil {
				fmt.Fprintln(p.Err, "turnpack:", begun)
			}
		}
		err = d.files(p.Ctx, a, b)
	}
	if err == nil {
		fmt.Fprintf(out, "%d rows equal, %d differ, %d only in %s, %d only in %s\n", d.equal, d.differ, d.onlyA, rollout.Printable(c.A), d.onlyB, rollout.Printable(c.B))
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		return cli.Mistake(err)
	}
	if d.differ+d.onlyA+d.onlyB > 0 {
		return &cli.ExitError{Code: cli.Failed}
	}
	return nil
}

type differ struct {
	out                         io.Writer
	around                      int
	equal, differ, onlyA, onlyB int
	tracedA, tracedB            bool // the file records the source of each token
}

// files reads both files side by side and matches rows by id. Rows without a match yet
// wait in memory, so files in the same order need none.
func (d *differ) files(ctx context.Context, a, b string) (err error) {
	ra, err := export.Open(a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ra.Close()) }()
	rb, err := export.Open(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rb.Close()) }()
	d.tracedA, d.tracedB = ra.Info().Trace, rb.Info().Trace
	waitA, waitB := waiting{}, waiting{}
	var orderA, orderB []string
	for moreA, moreB := true, true; moreA || moreB; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if moreA {
			if moreA, err = d.step(ra, waitA, waitB, &orderA, true); err != nil {
				return err
			}
		}
		if moreB {
			if moreB, err = d.step(rb, waitB, waitA, &orderB, false); err != nil {
				return err
			}
		}
	}
	for _, side := range []struct {
		name  string
		order []string
		wait  waiting
		only  *int
	}{{a, orderA, waitA, &d.onlyA}, {b, orderB, waitB, &d.onlyB}} {
		for _, id := range side.order {
			for range side.wait[id] {
				fmt.Fprintf(d.out, "%s: only in %s\n", rollout.Printable(id), rollout.Printable(side.name))
				*side.only++
			}
			delete(side.wait, id)
		}
	}
	return nil
}

// waiting holds rows of one file that the other has not matched yet, by id, those of one
// id in their order.
type waiting map[string][]rollout.Sample

// take removes the first row of an id.
func (w waiting) take(id string) (_ rollout.Sample, ok bool) {
	rows := w[id]
	switch len(rows) {
	case 0:
		return rollout.Sample{}, false
	case 1:
		delete(w, id)
	default:
		w[id] = rows[1:]
	}
	return rows[0], true
}

func (d *differ) step(r *export.Reader, mine, others waiting, order *[]string, first bool) (bool, error) {
	s, err := r.Read()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	other, there := others.take(s.ID)
	if !there {
		mine[s.ID] = append(mine[s.ID], s)
		*order = append(*order, s.ID)
		return true, nil
	}
	if first {
		d.rows(&s, &other)
	} else {
		d.rows(&other, &s)
	}
	return true, nil
}

// rows compares two rows with the same id.
func (d *differ) rows(a, b *rollout.Sample) {
	var said []string
	if t := firstDifference(a.IDs, b.IDs); t >= 0 {
		said = append(said, fmt.Sprintf("input_ids differ from token %d on\n    %s\n    %s", t, d.window(a.IDs, t), d.window(b.IDs, t)))
	}
	for _, c := range []struct {
		name string
		a, b []float32
	}{{"weights (loss mask)", a.Weight, b.Weight}, {"logprobs", a.Logprob, b.Logprob}, {"advantages", a.Credit, b.Credit}} {
		if (c.a == nil) != (c.b == nil) {
			said = append(said, fmt.Sprintf("%s: null in one of them", c.name))
		} else if t := firstDifference(c.a, c.b); t >= 0 {
			said = append(said, fmt.Sprintf("%s differ from token %d on: %s, %s", c.name, t, at(c.a, t), at(c.b, t)))
		}
	}
	if t := firstDifference(a.Version, b.Version); t >= 0 {
		said = append(said, fmt.Sprintf("versions differ from token %d on: %s, %s", t, at(a.Version, t), at(b.Version, t)))
	}
	said = append(said, d.trace(a, b)...)
	for _, c := range []struct {
		name string
		a, b any
	}{
		{"group_id", a.Group, b.Group}, {"rollout_index", a.RolloutIndex, b.RolloutIndex}, {"is_last", a.IsLast, b.IsLast}, {"step_first", a.FirstStep, b.FirstStep},
		{"step_last", a.LastStep, b.LastStep}, {"prompt_len", a.PromptLen, b.PromptLen}, {"reward", a.Reward, b.Reward}, {"outcome_reward", a.OutcomeReward, b.OutcomeReward},
		{"step_reward", value(a.StepReward), value(b.StepReward)}, {"advantage", value(a.Advantage), value(b.Advantage)}, {"status", a.Status, b.Status},
		{"finish_reason", a.FinishReason, b.FinishReason}, {"mask_reason", a.MaskReason, b.MaskReason}, {"rollout_mask_sum", a.RolloutMaskSum, b.RolloutMaskSum},
		{"temperature", a.Temperature, b.Temperature}, {"metadata", string(a.Metadata), string(b.Metadata)},
	} {
		if c.a != c.b {
			said = append(said, fmt.Sprintf("%s: %v, %v", c.name, c.a, c.b))
		}
	}
	if len(said) == 0 {
		d.equal++
		return
	}
	d.differ++
	fmt.Fprintf(d.out, "%s:\n  %s\n", rollout.Printable(a.ID), strings.Join(said, "\n  "))
}

// trace compares the sources and flags of the tokens. Without a trace in the files, the
// reader invents them and they are not compared.
func (d *differ) trace(a, b *rollout.Sample) (said []string) {
	switch {
	case d.tracedA != d.tracedB:
		return []string{"sources and flags: null in one of them"}
	case !d.tracedA:
		return nil
	}
	if t := firstDifference(a.Source, b.Source); t >= 0 {
		said = append(said, fmt.Sprintf("sources differ from token %d on: %s, %s", t, at(a.Source, t), at(b.Source, t)))
	}
	if t := firstDifference(a.Flags, b.Flags); t >= 0 {
		said = append(said, fmt.Sprintf("flags differ from token %d on: %s, %s", t, at(a.Flags, t), at(b.Flags, t)))
	}
	return said
}

func value(p *float64) any {
	if p == nil {
		return nil
	}
	return *p
}

// firstDifference returns the first position where a and b differ, or −1 if they are
// equal. A shorter slice differs from a longer one at its end.
func firstDifference[T comparable](a, b []T) int {
	for t := range min(len(a), len(b)) {
		if a[t] != b[t] {
			return t
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}

func at[T any](v []T, t int) string {
	if t >= len(v) {
		return "ended"
	}
	return fmt.Sprint(v[t])
}

// window returns the ids around token t, with token t in brackets.
func (d *differ) window(ids []rollout.TokenID, t int) string {
	var out []string
	for i := max(0, t-d.around); i < min(len(ids), t+d.around+1); i++ {
		if i == t {
			out = append(out, fmt.Sprintf("[%d]", ids[i]))
			continue
		}
		out = append(out, fmt.Sprint(ids[i]))
	}
	if t >= len(ids) {
		out = append(out, "[end]")
	}
	return strings.Join(out, " ")
}
