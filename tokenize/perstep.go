package tokenize

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
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
