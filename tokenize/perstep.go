package tokenize

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// stack is a run of tokens that grows from row to row. Rows are views of its ids
// and sources, so what was written there never changes: a row that differs from
// the one before in the middle moves to memory of its own.
type stack struct {
	ids    []rollout.TokenID
	source []int32
	flags  []rollout.Flag // copied for each row: a token is sampled in one row only
}

// put makes add follow the first at tokens.
func (s *stack) put(at int, add columns) {
	s.flags = append(s.flags[:at], add.flags...)
	n := min(len(s.ids)-at, add.len())
	k := 0
	for k < n && s.ids[at+k] == add.ids[k] && s.source[at+k] == add.source[k] {
		k++
	}
	if k == add.len() {
		return
	}
	if same := at + k; same < len(s.ids) {
		room := same + same/8 + add.len()
		s.ids = append(make([]rollout.TokenID, 0, room), s.ids[:same]...)
		s.source = append(make([]int32, 0, room), s.source[:same]...)
	}
	s.ids = append(s.ids, add.ids[k:]...)
	s.source = append(s.source, add.source[k:]...)
}

// perStep makes one sequence per turn with output. It takes time for the tokens
// that are new in each turn, and for two columns of each row.
func (j *job) perStep() ([]rollout.Sequence, error) {
	out := make([]rollout.Sequence, 0, len(j.turns))
	var ctx stack       // the rendered prompt of the turn at hand
	var outside []int32 // −1 for each token of the longest row
	for i := range j.turns {
		p, c := &j.prompts[i], &j.completions[i].cols
		n := j.promptLen(i)
		if n > 0 {
			ctx.put(p.keep, p.add)
		}
		j.report.Turns++
		if c.len() == 0 {
			j.report.EmptyTurns++
			continue
		}
		row, fresh := &ctx, p.keep
		if !j.attributed[i] {
			ids := j.captured(i)
			n, fresh = len(ids), 0
			row = &stack{ids: ids, source: slices.Repeat([]int32{-1}, n), flags: make([]rollout.Flag, n)}
		}
		row.put(n, *c)
		end := n + c.len()
		for len(outside) < end {
			outside = append(outside, -1)
		}
		cols := rollout.Columns{IDs: row.ids[:end:end], Source: row.source[:end:end],
			Flags: append([]rollout.Flag(nil), row.flags[:end]...), Turn: append([]int32(nil), outside[:end]...)}
		for k := n; k < end; k++ {
			cols.Turn[k] = int32(i)
		}
		t := &j.turns[i]
		if t.Logprobs != nil {
			cols.Logprob = make([]float32, end)
			copy(cols.Logprob[n:], t.Logprobs)
		}
		if t.Version != nil {
			cols.Version = append([]int32(nil), outside[:end]...)
			for k := n; k < end; k++ {
				cols.Version[k] = *t.Version
			}
		}
		id := j.identity()
		id.FirstTurn, id.LastTurn = i, i
		id.FirstStep, id.LastStep = t.Step, t.Step
		id.Fidelity = j.fidelity([]lineage.Span{{Turn: i}}, false)
		// What stands before was checked in an earlier row.
		seq, err := cols.Sequence(id, fresh)
		if err != nil {
			return nil, err
		}
		out = append(out, seq)
		j.report.Rows++
		j.report.Sampled += c.len()
		j.report.Trained += c.len()
		if j.recorded(i) {
			j.report.Exact += c.len()
		}
		j.report.RowTokens += end
		j.report.PerTurn += end
		if j.completions[i].stopped(j.model) {
			j.report.Stops++
		}
	}
	j.report.EmptyTurns -= j.report.UnknownContext // which have no columns either
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}
