package tokenize

import (
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// step yields the row of turn i: its prompt and its completion. The prompt is the rendered one if
// that gives the origin of the recorded ids. Rows are made while the prompt is in memory. A row
// takes memory for its runs; its ids are copied only if the caller keeps them.
func (j *job) step(i int, rendered *tokens.Compact, matcher *capturedMatcher) error {
	c, t, prompt := &j.completions[i].Cols, &j.turns[i], *rendered
	if c.Len() == 0 {
		return nil
	}
	switch {
	case !j.attributed[i]:
		ids, err := j.captured(i)
		if err != nil {
			return err
		}
		prompt = tokens.Unattributed(ids)
	case matcher.attributedTurn == i:
		prompt = tokens.CompactOf(matcher.by.Cols)
	}
	n := prompt.Len()
	end := n + c.Len()
	if err := j.affordable(j.report.RowTokens + end); err != nil {
		return err
	}
	versioned := t.Version != nil
	var row spool.Row
	prompt.Each(0, n, func(from, to int, source int32, flags rollout.Flag) {
		row.Put(spool.Run{Len: to - from, ID: prompt.IDs[from], Flags: flags, Source: source, Turn: -1, Version: -1}, versioned)
	})
	if row.Tokens = append(prompt.IDs, c.IDs...); j.attributed[i] && matcher.attributedTurn != i {
		rendered.IDs = row.Tokens[:n] // append may have moved them
	}
	versions := t.AppendVersions(nil, 0, c.Len())
	for k := range c.IDs {
		row.Put(spool.Run{Len: 1, ID: c.IDs[k], Flags: c.Flags[k], Source: c.Source[k], Turn: int32(i), Version: versions[k]}, versioned)
	}
	cols := rollout.Columns{IDs: row.Sequence.IDs, Source: row.Source, Flags: row.Flags, Turn: row.Turn, Version: row.Version}
	if t.Logprobs != nil {
		cols.Logprob, row.Logprobs = make([]float32, len(row.Lens)), make([]float32, end)
		copy(row.Logprobs[n:], t.Logprobs)
	}
	id := j.identity()
	id.FirstTurn, id.LastTurn = i, i
	id.FirstStep, id.LastStep = t.Step, t.Step
	id.Fidelity = j.fidelity([]lineage.Span{{Turn: i}}, false)
	var err error
	if row.Sequence, err = cols.Sequence(id, 0); err != nil {
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
	if !row.Long() {
		row = spool.Row{Sample: row.Whole()}
	}
	return j.yieldRow(row)
}

// maxShownMessages bounds the messages shown by the turns of one rollout, each counted at every
// turn that shows it: every prompt is rendered as a whole, so the work grows with their number. A
// conversation of 8,000 turns, each with an observation, that drops nothing stays below the limit.
const maxShownMessages = 1 << 26

// maxRowTokens bounds the tokens of all rows of one rollout: rows that do not join each hold the
// history.
const maxRowTokens = 1 << 30

// maxTokenText is more bytes of text than the tokens of a prompt have on average.
const maxTokenText = 16

// affordable returns an error if n, the tokens of a rollout's rows, exceeds maxRowTokens.
func (j *job) affordable(n int) error {
	if n <= j.most {
		return nil
	}
	return rollout.Errorf(rollout.KindInput, rollout.Where{}, "the rows of its %d turns hold over %d tokens in all, the limit for one rollout", len(j.turns), j.most).
		WithFix("plan a window over the context, or cut the rollout into shorter ones")
}

// joinable returns an error if the rows of the first n turns are not affordable: later turns only
// make rows longer, or more.
func (j *job) joinable(n int) error {
	res, err := lineage.Merge(j.plan[:n], j.opts.Drift)
	if err != nil {
		return err
	}
	return j.affordable(res.Report.RowTokens)
}

// readable returns an error for a rollout beyond maxShownMessages, and in per-step mode for one
// whose rows would exceed maxRowTokens.
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
