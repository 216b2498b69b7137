package turnpack

import (
	"cmp"
	"context"
	"math"
	"strings"
	"sync"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/internal/tally"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/detect"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// result is what a worker made of one rollout.
type result struct {
	made
	group   int
	rows    rolloutRows
	err     error
	r       *rollout.Rollout
	earlier bool // made by an earlier run; the sink holds its rows
}

// task is a rollout to encode.
type task struct {
	r      *rollout.Rollout
	at     rolloutAt
	passed bool // skipped by the source
	out    chan *result
}

// feeder hands out the rollouts of the second pass in the order of the source.
type feeder struct {
	*run
	ctx   context.Context
	tasks chan task
	queue chan chan *result // in source order; its capacity bounds how far reading runs ahead of writing
	first []int             // index in given of each group's first rollout
	given []bool
	at    int // rollouts of an earlier run that were given or passed
}

// write is the second pass: workers encode, one goroutine writes in order.
func (x *run) write(ctx context.Context, src Source, dst Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x.spools = &spools{dir: x.TempDir, tokens: cmp.Or(int(x.heldLimit), heldTokens), bytes: cmp.Or(x.heldLimit, heldRowBytes), prefixes: x.Encode.Mode == tokenize.PerStep}
	workers := x.workers()
	f := &feeder{run: x, ctx: ctx, tasks: make(chan task), queue: make(chan chan *result, 2*workers)}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(f.queue)
		defer close(f.tasks)
		f.feed(src)
	})
	for range workers {
		wg.Go(func() {
			for t := range f.tasks {
				if t.passed {
					t.out <- x.passed(t.r, t.at)
				} else {
					t.out <- x.encode(ctx, t.r, t.at)
				}
			}
		})
	}
	err := x.collect(ctx, f.queue, dst)
	cancel()
	for range f.queue {
	}
	wg.Wait()
	x.spools.close()
	return err
}

// feed reads the source again. Rollouts that the source skips because an earlier run wrote them
// keep their place in the order.
func (f *feeder) feed(src Source) {
	all := 0
	f.first = make([]int, len(f.groups))
	for i, g := range f.groups {
		f.first[i], all = all, all+g.count
	}
	f.given = make([]bool, all)
	for r, err := range f.remaining(f.ctx, src) {
		if f.ctx.Err() != nil {
			return
		}
		if err != nil || r == nil {
			continue // reported in the first pass
		}
		at, ok := f.seen.Of(r.ID)
		if !ok || f.given[f.first[at.group]+int(at.index)] || r.Validate() != nil {
			continue
		}
		if !f.passTo(r.ID) || !f.give(r, at, false) {
			return
		}
	}
	f.passTo("")
}

// give hands out a rollout and reports whether the run goes on.
func (f *feeder) give(r *rollout.Rollout, at rolloutAt, passed bool) bool {
	f.given[f.first[at.group]+int(at.index)] = true
	out := make(chan *result, 1)
	select {
	case f.queue <- out:
	case <-f.ctx.Done():
		return false
	}
	select {
	case f.tasks <- task{r, at, passed, out}:
	case <-f.ctx.Done():
		return false
	}
	return true
}

// passTo hands out the rollouts of an earlier run that the source skipped before the one with this
// id, all that are left for "", and reports whether the run goes on.
func (f *feeder) passTo(id string) bool {
	for f.before != nil && f.at < f.before.Order.Len() {
		_, next, from := f.before.Order.At(f.at)
		if f.at++; next == id {
			return true
		}
		at, _ := f.seen.Of(next)
		if f.keeper.Holds(next) && !f.give(&rollout.Rollout{ID: next, Origin: from}, at, true) {
			return false
		}
	}
	return true
}

// collect writes results in order; rows of interleaved groups are held back until the groups before
// them are complete.
func (x *run) collect(ctx context.Context, queue <-chan chan *result, dst Sink) error {
	later := spool.New(x.TempDir, cmp.Or(x.heldLimit, heldLimit))
	defer later.Close()
	one := func(s spool.Row) error { return x.emit(dst, s) }
	left := make([]int, len(x.groups))
	for i, g := range x.groups {
		left[i] = g.count
	}
	current, done := 0, 0
	for out := range queue {
		var res *result
		select {
		case res = <-out:
		case <-ctx.Done():
			return ctx.Err()
		}
		done++
		if res.err != nil {
			if err := x.skipOrFail(res.r, res.err); err != nil {
				return err
			}
			if res.Why == "" {
				res.Why = "could not be encoded"
				x.failed++
			}
		}
		x.book(res)
		if err := x.keep(res); err != nil {
			return err
		}
		left[res.group]--
		if res.group != current {
			err := res.rows.each(func(s spool.Row) error { return later.Add(res.group, s) })
			if err != nil {
				return err
			}
		} else if err := res.rows.each(one); err != nil {
			return err
		}
		for current < len(left) && left[current] == 0 {
			if current++; current == len(left) {
				break
			}
			if err := later.Each(current, one); err != nil {
				return err
			}
		}
		x.progress(Progress{Pass: 2, Done: done, Total: x.report.Rollouts, Rows: x.report.Rows, Tokens: x.report.Tokens})
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if done != x.report.Rollouts {
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "the source gave %d rollouts in the first pass and %d in the second", x.report.Rollouts, done).
			WithFix("do not change the input while it is converted")
	}
	if x.report.Rows == 0 && (x.failed > 0 || len(x.report.Untrained) > 0) {
		return x.noRow()
	}
	return nil
}

// noRow returns the error of a run that wrote no row because rollouts failed or their turns cannot
// be trained.
func (x *run) noRow() error {
	list := x.report.Untrained
	if x.failed > 0 {
		list = x.report.Skips
	}
	first := list[0].Error
	return rollout.Errorf(rollout.Plain(first).Kind, rollout.Where{}, "no rollout gave a row: %s; the first: %w", strings.Join(counted(x.report.WithoutRows), ", "), first)
}

func (x *run) emit(dst Sink, row spool.Row) (err error) {
	if d, ok := dst.(runWriter); ok && row.Lens != nil {
		err = d.WriteRuns(row.Sample, row.Lens, row.Tokens, row.Logprobs)
	} else {
		err = dst.Write(row.Whole())
	}
	if err != nil {
		return err
	}
	x.report.Rows++
	x.report.Tokens += int64(row.Len())
	x.report.Trained += int64(row.Trained())
	return nil
}

func (x *run) book(res *result) {
	x.describer.add(res)
	x.report.Unscored += res.Unscored
	count(&x.report.Status, res.Status.String(), 1)
	count(&x.report.Verdicts, res.Verdict.String(), 1)
	x.report.Encode.Add(res.Report)
	x.report.Window.Add(res.Window)
	x.report.Shaping.NoTrainLogprobs += res.NoTrain
	for reason, n := range res.Masked {
		count(&x.report.MaskedRows, reason, n)
	}
	for fault, n := range res.Faults {
		count(&x.report.Faults, string(fault), n)
	}
	if res.Rows == 0 {
		count(&x.report.WithoutRows, res.Why, 1)
		if len(x.report.WithoutRowsAt) < maxSkips {
			x.report.WithoutRowsAt = append(x.report.WithoutRowsAt, skipOf(res.r, nil, res.Why))
		}
	}
	for _, first := range []struct {
		err error
		why string
	}{{res.Report.FirstUnknown, "context unknown"}, {res.Report.FirstUnmarked, "reply not marked"}, {res.Report.FirstIncomplete, "turn incomplete"}} {
		if first.err != nil {
			x.report.Untrained = append(x.report.Untrained, skipOf(res.r, inSource(first.err, res.r.Origin), first.why))
		}
	}
	for _, code := range res.Notes {
		count(&x.report.Notes, code, 1)
	}
}

// zeroAdvantage is the magnitude below which an advantage differs from 0 by rounding only.
const zeroAdvantage = 1e-12

// encode makes the rows of one rollout.
func (x *run) encode(ctx context.Context, r *rollout.Rollout, at rolloutAt) *result {
	res := &result{made: made{Status: r.Status}, r: r}
	for _, n := range r.Notes {
		res.Notes = append(res.Notes, n.Code)
	}
	r = x.withStatus(r)
	key := x.group(r)
	res.group = int(at.group)
	got, applied := x.scoreOf(r, at)
	res.Votes, res.Seen = r.Steps, tally.FactsOf(res.group, r, got)
	if why := x.mixedBy[res.group]; why != nil {
		res.err, res.Why = why, mixedReason
		return res
	}
	res.Verdict = got.Verdict
	if x.madeBefore(res) {
		return res
	}
	if res.Why = x.shaper.leftOut(at); res.Why != "" {
		return res
	}
	c := credits{at: at, reward: got, applied: applied}
	if !x.credit(r, key, &c, res) {
		return res
	}
	if x.Window != nil {
		windowed, report, err := x.windowed(ctx, r)
		if err != nil {
			res.err = err
			return res
		}
		res.Window = report
		r = windowed
	}
	if x.overrides() != nil {
		c.flags, res.Faults = x.flag(r)
	}
	if x.Shaping.DropZero && !x.NoAdvantages && c.parts == nil && math.Abs(c.advantage.Value) < zeroAdvantage && len(c.flags) == 0 && !x.rowless(r.ID) {
		res.Why = shaped.ReasonZero
		return res
	}
	if err := x.makeRows(ctx, r, key, &c, res); err != nil {
		res.err, res.Masked, res.Faults, res.rows, res.NoTrain = err, nil, nil, rolloutRows{}, 0
		return res
	}
	res.Rows, res.Tokens, res.Trained, res.Unscored = res.rows.n, res.rows.all, res.rows.trained, c.unscored
	if c.n > 0 {
		mean := c.sum / float64(c.n)
		res.Seen.Advantage = &mean
	}
	return res
}

// credit sets the advantages of a rollout and reports whether the rollout has rows; if not, res
// says why.
func (x *run) credit(r *rollout.Rollout, key string, c *credits, res *result) bool {
	excluded := c.reward.Excluded
	switch {
	case x.NoAdvantages:
	case x.rowless(r.ID):
		if e, ours := x.record(); excluded != "" && ours && e.Population == "" {
			res.Why = reward.DroppedExcluded + ": " + excluded
		}
	case x.Tokens != nil || x.stepwise():
		if c.parts, res.Why = x.partsOf(r); res.Why != "" && excluded != "" {
			res.Why = excluded
		}
	default:
		c.advantage, res.err = x.advantageOf(key, x.rolloutReward(r, c.reward), c.at)
		if res.Why = c.advantage.Dropped; res.err == nil && res.Why == "" {
			res.Seen.Advantage = &c.advantage.Value
		}
	}
	return res.Why == "" && res.err == nil
}

// makeRows fills res.rows, or sets the reason for there being none.
func (x *run) makeRows(ctx context.Context, r *rollout.Rollout, key string, c *credits, res *result) error {
	given, masked := 0, ""
	mask := func(why string) {
		count(&res.Masked, why, 1)
		masked = why
	}
	report, err := x.sequences(ctx, r, func(made spool.Row) error {
		given++
		row, err := x.sample(r, key, made, c)
		if err != nil {
			return err
		}
		why, err := x.shaper.row(r, &row, &res.NoTrain)
		if err != nil {
			return err
		}
		if why != "" {
			mask(why)
			return nil
		}
		// A finished row is as long as it is written: without the tokens after the last trained
		// one.
		for _, finished := range rollout.FinishRows([]rollout.Sample{row}) {
			row := made.Finish(finished)
			if why := x.Mask.RowReason(row.Len(), row.Status); why != "" {
				mask(why)
				continue
			}
			return res.rows.add(row, x.spools)
		}
		return nil
	})
	if err != nil {
		return err
	}
	res.Report = report
	switch {
	case res.rows.n > 0:
	case given == 0 && report.UnknownContext > 0:
		res.Why = "what the model saw is not known"
	case given == 0 && report.Unmarked > 0:
		res.Why = "no reply is marked as sampled"
	case given == 0 && report.Incomplete > 0:
		res.Why = "the record of its turns is not what was sampled"
	case given == 0:
		res.Why = "no sampled token"
	case masked != "":
		res.Why = "masked: " + masked
	default:
		res.Why = "no trained token"
	}
	return nil
}

// flag finds the sampled messages of r that are at fault.
func (x *run) flag(r *rollout.Rollout) (flags map[int]reward.MessageFlags, faults map[detect.Fault]int) {
	flags, faults = map[int]reward.MessageFlags{}, map[detect.Fault]int{}
	for message, found := range x.Detector.FindAll(r) {
		flags[message] = detect.Flags(found)
		for _, f := range found {
			faults[f.Fault]++
		}
	}
	return flags, faults
}

// windowed returns r with the contexts that Window plans for its turns.
func (x *run) windowed(ctx context.Context, r *rollout.Rollout) (*rollout.Rollout, ctxwindow.Report, error) {
	contexts, report, err := ctxwindow.Plan(ctx, r, x.Window, x.enc.Counter(r))
	if err != nil {
		return nil, report, err
	}
	r, err = ctxwindow.Apply(r, contexts)
	return r, report, err
}
