package audit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/internal/anyrows"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

// Model is what the rules need to know about the tokenizer. A zero field means unknown.
type Model struct {
	Vocab   int                      // largest id plus 1, 0 = unknown
	Special map[rollout.TokenID]bool // control tokens, which text must not contain
	Inside  map[rollout.TokenID]bool // the Special tokens that the policy writes within its reply
	Stops   []rollout.TokenID        // the tokens that end a turn
	// Headers are the token sequences that open an assistant turn, for example <|im_start|>
	// assistant \n.
	Headers [][]rollout.TokenID
	// Decode returns the text of ids. If it fails, the text counts as empty.
	Decode func(ids []rollout.TokenID) (string, error)
}

// Options says how files are audited. Every field is optional.
type Options struct {
	// Model enables the rules about headers, stop tokens and control tokens.
	Model *Model
	// Examples is the number of examples kept per rule; 0 means 3.
	Examples int
}

// Run reads the files and returns the report. A file that cannot be read is an error; findings
// are not.
func Run(ctx context.Context, paths []string, o Options) (*Report, error) {
	if o.Examples == 0 {
		o.Examples = 3
	}
	if len(paths) == 0 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "no file was given").WithFix("name the files to look at")
	}
	a := &auditor{opts: o, out: &Report{Model: o.Model != nil},
		found: collector{keep: o.Examples, groups: map[string]*Group{}, last: map[string][2]any{}},
		rows:  map[[32]byte]string{}, groups: map[string]*groupFacts{}}
	for _, path := range paths {
		if err := a.file(ctx, path); err != nil {
			return nil, err
		}
	}
	a.finish()
	a.out.Drift = driftOf(&a.apart)
	a.out.Findings = a.found.sorted()
	return a.out, nil
}

// auditor holds the state of one run. Rows are streamed: only a digest of each row and the rows
// of the current rollout are kept.
type auditor struct {
	opts  Options
	out   *Report
	apart anyrows.Apart // drift over all rows
	found collector

	path     string
	checker  *export.Checker
	schemaOK bool
	columns  *export.Columns // columns that the file says it has, nil = unknown
	rows     map[[32]byte]string
	groups   map[string]*groupFacts
	order    []string
	open     []*anyrows.Row // rows of the current rollout
	group    string         // current group
	closed   map[string]bool
	left     string    // rollout that ended last
	rewards  []float64 // the first reward and one that differs from it
}

// groupFacts holds the rewards and advantages of a group by rollout.
type groupFacts struct {
	file       string
	rewards    map[string]float64
	advantages map[string]float64
}

func (a *auditor) file(ctx context.Context, path string) (err error) {
	src, err := anyrows.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	a.path, a.open, a.group, a.closed = path, nil, "", map[string]bool{}
	a.schemaOK = true
	o := export.Options{KeepTail: true, KeepUntrained: true}
	// A file's metadata names its columns. They cannot be inferred from the first row, whose
	// weights may all be 1.
	a.columns = nil
	if info, ok := src.Info(); ok && info.Columns != (export.Columns{}) {
		a.columns, o.Columns = &info.Columns, &info.Columns
	}
	if a.checker, err = export.NewChecker(o); err != nil {
		return err
	}
	if err := shard.Unfinished(path); err != nil {
		a.found.add(Finding{Rule: "unfinished-set", File: path, Row: -1, Token: -1, Text: err.Error()})
	}
	rows := 0
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, err := src.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		rows++
		a.row(row)
	}
	a.endRollout()
	if a.schemaOK && rows > 0 {
		if err := a.checker.End(); err != nil {
			a.schema(rows-1, err)
		}
	}
	a.out.Files = append(a.out.Files, File{Path: path, Format: src.Shape(), Rows: rows})
	return nil
}

func (a *auditor) report(r *anyrows.Row, rule, column string, token, tokens int, format string, args ...any) {
	a.found.add(Finding{Rule: rule, File: a.path, Row: r.Index, Sample: r.ID, Column: column, Token: token, Tokens: tokens, Text: fmt.Sprintf(format, args...)})
}

func (a *auditor) row(r *anyrows.Row) {
	a.out.Rows++
	a.out.Tokens += int64(len(r.IDs))
	for t := range r.Mask {
		if r.Trained(t) {
			a.out.Trained++
		}
	}
	for _, f := range r.Faults {
		a.report(r, "lengths", f.Column, -1, 0, "%s", f.Text)
	}
	a.lengths(r)
	if len(r.Mask) > len(r.IDs) {
		r.Mask = r.Mask[:len(r.IDs)] // lengths has reported it; the rest has no tokens
	}
	a.values(r)
	a.maskShape(r)
	a.sampled(r)
	a.forged(r)
	a.logprobs(r)
	a.drift(r)
	a.advantages(r)
	a.status(r)
	a.duplicate(r)
	a.grouping(r)
	a.sample(r)
	if a.opts.Model != nil {
		a.model(r)
	}
}

func (a *auditor) lengths(r *anyrows.Row) {
	if r.Mask == nil {
		a.report(r, "no-mask", col.LossMask, -1, len(r.IDs), "the row has no mask of any known name")
	}
	for _, c := range []struct {
		name string
		n    int
		none bool
	}{{"mask", len(r.Mask), r.Mask == nil}, {"log probabilities", len(r.Logprobs), r.Logprobs == nil}, {"log probabilities of the trainer", len(r.TrainLogprobs), r.TrainLogprobs == nil}, {"advantages", len(r.Advantages), r.Advantages == nil}} {
		if !c.none && c.n != len(r.IDs) {
			a.report(r, "lengths", c.name, -1, 0, "%d %s for %d tokens", c.n, c.name, len(r.IDs))
		}
	}
}

// count returns the first of n positions that satisfies f (−1 if none) and how many do.
func count(n int, f func(t int) bool) (first, times int) {
	first = -1
	for t := range n {
		if f(t) {
			if first < 0 {
				first = t
			}
			times++
		}
	}
	return first, times
}

func (a *auditor) values(r *anyrows.Row) {
	if t, n := count(len(r.IDs), func(t int) bool { return r.IDs[t] < 0 }); n > 0 {
		a.report(r, "negative-id", col.InputIDs, t, n, "id %d", r.IDs[t])
	}
	if t, n := count(len(r.Mask), func(t int) bool { return !(r.Mask[t] >= 0) || r.Mask[t] > math.MaxFloat32 }); n > 0 {
		a.report(r, "mask-values", col.LossMask, t, n, "value %g", r.Mask[t])
	}
}

func (a *auditor) maskShape(r *anyrows.Row) {
	if r.Mask == nil {
		return
	}
	first, n := count(len(r.Mask), r.Trained)
	switch {
	case n == 0:
		a.report(r, "no-trained-token", col.LossMask, -1, 0, "none of %d tokens is trained", len(r.IDs))
		return
	case first == 0:
		a.report(r, "first-token-trained", col.LossMask, 0, 1, "mask %g on token 0", r.Mask[0])
	}
	last := len(r.Mask) - 1
	for !r.Trained(last) {
		last--
	}
	if tail := len(r.IDs) - 1 - last; tail > 0 {
		a.report(r, "tail-untrained", col.LossMask, last+1, tail, "%d tokens after the last trained one", tail)
	}
	if r.PromptLen > 0 {
		if t, k := count(min(r.PromptLen, len(r.Mask)), r.Trained); k > 0 && (t > 0 || k > 1) {
			a.report(r, "prompt-trained", col.LossMask, t, k, "%d of the %d prompt tokens are trained", k, r.PromptLen)
		}
	}
}

// sampled finds trained tokens that the policy did not sample, according to the row's flags.
func (a *auditor) sampled(r *anyrows.Row) {
	if t, k := count(len(r.Flags), func(t int) bool { return r.Trained(t) && r.Flags[t]&rollout.FlagSampled == 0 }); k > 0 {
		from := "written by the template"
		if m := r.Sources[t]; m >= 0 {
			from = fmt.Sprintf("text of message %d", m)
		}
		a.report(r, "not-sampled", col.LossMask, t, k, "%d trained tokens were not sampled, the first is %s", k, from)
	}
}

// forged finds added tokens that, by the row's trace, are text of a message that the policy did
// not write. In a captured prompt this means that the engine encodes such tokens wherever their
// text occurs. With a Model only its control tokens count.
func (a *auditor) forged(r *anyrows.Row) {
	const text = rollout.FlagSpecial | rollout.FlagContent
	roles := r.Roles()
	t, n := count(min(len(r.Flags), len(r.IDs)), func(t int) bool {
		m := int(r.Sources[t])
		return m >= 0 && r.Flags[t]&(text|rollout.FlagSampled) == text && (m >= len(roles) || roles[m] != rollout.RoleAssistant) &&
			(a.opts.Model == nil || a.opts.Model.Special[r.IDs[t]])
	})
	if n == 0 {
		return
	}
	of := "message"
	if m := int(r.Sources[t]); m < len(roles) {
		of = fmt.Sprintf("%s message", roles[m])
	}
	what := fmt.Sprintf("id %d", r.IDs[t])
	if a.opts.Model != nil {
		what = fmt.Sprintf("%q", a.text(r.IDs[t:t+1]))
	}
	a.report(r, "control-in-text", col.InputIDs, t, n, "%s stands in the text of %s %d", what, of, r.Sources[t])
}

func (a *auditor) logprobs(r *anyrows.Row) {
	if r.Logprobs == nil {
		return
	}
	n := min(len(r.Logprobs), len(r.IDs))
	if t, k := count(n, func(t int) bool { lp := r.Logprobs[t]; return !(lp <= 0) || math.IsInf(lp, 0) }); k > 0 {
		a.report(r, "logprob-range", col.Logprobs, t, k, "log probability %g", r.Logprobs[t])
	}
	if r.Mask == nil {
		return
	}
	if a.shifted(r, r.Logprobs[:n], "log probabilities") {
		return // the two rules below would only repeat it
	}
	if t, k := count(n, func(t int) bool { return !r.Trained(t) && r.Logprobs[t] != 0 }); k > 0 {
		a.report(r, "logprob-on-masked", col.Logprobs, t, k, "log probability %g on a masked token", r.Logprobs[t])
	}
	// Greedy and near-certain tokens sometimes have exactly 0: up to one in ten is taken as
	// chance.
	_, trained := count(n, r.Trained)
	if t, k := count(n, func(t int) bool { return r.Trained(t) && r.Logprobs[t] == 0 }); k > 0 && 10*k > trained {
		a.report(r, "logprob-zero", col.Logprobs, t, k, "%d of %d trained tokens have log probability 0", k, trained)
	}
}

// shifted finds rows in which the nonzero values of column fit the trained tokens only after a
// shift by one token.
func (a *auditor) shifted(r *anyrows.Row, column []float64, name string) bool {
	n := len(column)
	fits := func(by int) (same, total int) {
		for t := range n {
			v := column[t] != 0
			m := t+by >= 0 && t+by < n && r.Trained(t+by)
			if v || m {
				total++
				if v && m {
					same++
				}
			}
		}
		return same, total
	}
	same, total := fits(0)
	if total < 2 || same == total {
		return false
	}
	for _, by := range []int{1, -1} {
		// Tolerate the tokens at the ends of runs that the shift moves off the row.
		if moved, all := fits(by); moved > same && 20*moved >= 19*all {
			dir := "later"
			if by < 0 {
				dir = "earlier"
			}
			a.report(r, "mask-shifted", col.LossMask, -1, total-same, "the mask fits the %s when it is read one token %s (%d of %d tokens instead of %d of %d)", name, dir, moved, all, same, total)
			return true
		}
	}
	return false
}

func (a *auditor) advantages(r *anyrows.Row) {
	n := min(len(r.Advantages), len(r.IDs))
	if t, k := count(n, func(t int) bool { return r.Advantages[t]-r.Advantages[t] != 0 }); k > 0 {
		a.report(r, "advantage-not-finite", col.Advantages, t, k, "advantage %g", r.Advantages[t])
	}
	if r.Mask == nil {
		return
	}
	if a.shifted(r, r.Advantages[:n], "advantages") {
		return
	}
	if t, k := count(n, func(t int) bool { return !r.Trained(t) && r.Advantages[t] != 0 }); k > 0 {
		a.report(r, "advantage-on-masked", col.Advantages, t, k, "advantage %g on a masked token", r.Advantages[t])
	}
}

// status checks the last row of a rollout. The status says how the rollout ended, so earlier
// rows may end with a turn that a limit cut.
func (a *auditor) status(r *anyrows.Row) {
	if (r.Sample == nil || r.Sample.IsLast) && r.Status == "completed" && rollout.LimitReached(r.FinishReason) {
		a.report(r, "truncated-complete", col.Status, -1, 0, "status completed with finish reason %q", r.FinishReason)
	}
}

func (a *auditor) duplicate(r *anyrows.Row) {
	b := []byte(r.Group + "\x00")
	for t, id := range r.IDs {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
		if r.Trained(t) {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	k := sha256.Sum256(b)
	if other, seen := a.rows[k]; seen {
		a.report(r, "duplicate-row", col.InputIDs, -1, len(r.IDs), "ids and mask equal %s", other)
		return
	}
	a.rows[k] = fmt.Sprintf("%s row %d", a.path, r.Index)
}

// grouping tracks the current rollout and group and collects rewards and advantages by group.
func (a *auditor) grouping(r *anyrows.Row) {
	if r.Rollout != "" {
		if len(a.open) > 0 && (a.open[0].Rollout != r.Rollout || a.open[0].Group != r.Group) {
			a.endRollout()
			a.closed["r"+a.group+"\x00"+a.left] = true
		}
		if a.closed["r"+r.Group+"\x00"+r.Rollout] && len(a.open) == 0 {
			a.report(r, "group-split", col.RolloutID, -1, 0, "rollout %q was closed by another before", r.Rollout)
		}
		a.open = append(a.open, r)
	}
	if r.Group == "" {
		return
	}
	if a.group != "" && a.group != r.Group {
		a.closed["g"+a.group] = true
	}
	if a.group != r.Group && a.closed["g"+r.Group] {
		a.report(r, "group-split", col.GroupID, -1, 0, "group %q was closed by another before", r.Group)
	}
	a.group = r.Group
	if r.Reward == nil {
		return
	}
	g := a.groups[r.Group]
	if g == nil {
		g = &groupFacts{file: a.path, rewards: map[string]float64{}, advantages: map[string]float64{}}
		a.groups[r.Group] = g
		a.order = append(a.order, r.Group)
	}
	id := r.Rollout
	if id == "" {
		id = fmt.Sprintf("%s %d", a.path, r.Index)
	}
	g.rewards[id] = *r.Reward
	if v, ok := r.OneAdvantage(); ok {
		g.advantages[id] = v
	}
	if len(a.rewards) == 0 || len(a.rewards) == 1 && *r.Reward != a.rewards[0] {
		a.rewards = append(a.rewards, *r.Reward)
	}
}
