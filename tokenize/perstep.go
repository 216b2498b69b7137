package tokenize

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// step adds the row of turn i: its prompt, if that says where its ids come from, and
// what was sampled. A row is finished at once, while it is near.
func (j *job) step(i int, prompt *tokens.Stack) error {
	c, t, fresh := &j.completions[i].Cols, &j.turns[i], 0
	if c.Len() == 0 {
		return nil
	}
	switch {
	case !j.attributed[i]:
		ids := j.captured(i)
		prompt = &tokens.Stack{IDs: ids, Source: slices.Repeat([]int32{-1}, len(ids)), Flags: make([]rollout.Flag, len(ids))}
	case prompt.Viewed: // what stands before was checked in an earlier row
		fresh = j.prompts[i].Keep
	}
	row := prompt.Row(*c)
	end := row.Len()
	if err := j.affordable(j.report.RowTokens + end); err != nil {
		return err
	}
	n := end - c.Len()
	for len(j.outside) < end {
		j.outside = append(j.outside, -1)
	}
	cols := rollout.Columns{IDs: row.IDs, Source: row.Source, Flags: row.Flags, Turn: slices.Clone(j.outside[:end])}
	for k := n; k < end; k++ {
		cols.Turn[k] = int32(i)
	}
	if t.Logprobs != nil {
		cols.Logprob = make([]float32, end)
		copy(cols.Logprob[n:], t.Logprobs)
	}
	if t.Version != nil {
		cols.Version = t.AppendVersions(append(make([]int32, 0, end), j.outside[:n]...), 0, end-n)
	}
	id := j.identity()
	id.FirstTurn, id.LastTurn = i, i
	id.FirstStep, id.LastStep = t.Step, t.Step
	id.Fidelity = j.fidelity([]lineage.Span{{Turn: i}}, false)
	seq, err := cols.Sequence(id, fresh)
	if err != nil {
		return err
	}
	j.report.Rows++
	j.report.Sampled += c.Len()
	j.report.Trained += c.Len()
	if j.recorded(i) {
		j.report.Exact += c.Len()
	}
	j.report.RowTokens += end
	j.report.PerTurn += end
	if j.completions[i].Stopped(j.model.IsStop) {
		j.report.Stops++
	}
	return j.give(rowOf(seq))
}

// maxShownMessages bounds the messages that the turns of one rollout show, each
// counted at every turn that shows it: every prompt is rendered as a whole, so the
// work grows with their number. A conversation of 8,000 turns, each with an
// observation, that drops nothing stays below.
const maxShownMessages = 1 << 26

// maxRowTokens bounds the tokens that the rows of one rollout hold in all: rows that do
// not join hold the history each.
const maxRowTokens = 1 << 30

// maxTokenText is more text than the tokens of a prompt have on average.
const maxTokenText = 16

// affordable refuses a rollout whose rows hold n tokens, where that is beyond
// maxRowTokens.
func (j *job) affordable(n int) error {
	if n <= j.most {
		return nil
	}
	return rollout.Errorf(rollout.KindInput, rollout.Where{}, "the rows of its %d turns hold over %d tokens in all, the limit for one rollout", len(j.turns), j.most).
		WithFix("plan a window over the context, or cut the rollout into shorter ones")
}

// joinable refuses a rollout whose first n turns do not join into affordable rows: those
// after them make rows longer, or more.
func (j *job) joinable(n int) error {
	res, err := lineage.Merge(j.plan[:n], j.opts.Drift)
	if err != nil {
		return err
	}
	return j.affordable(res.Report.RowTokens)
}

// readable refuses a rollout beyond maxShownMessages, and one whose rows of single
// turns would be beyond maxRowTokens.
func (j *job) readable() error {
	shown, text := render.Shown(j.r, j.turns)
	if j.opts.Mode == PerStep {
		if err := j.affordable(text / maxTokenText); err != nil {
			return err
		}
	}
	if shown <= maxShownMessages {
		return nil
	}
	return rollout.Errorf(rollout.KindInput, rollout.Where{}, "the %d turns show %d messages in all, the limit for one rollout is %d", len(j.turns), shown, maxShownMessages).
		WithFix("plan a window over the context, or cut the rollout into shorter ones")
}
