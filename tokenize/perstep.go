package tokenize

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// stack is a run of tokens that changes at its end. Where rows are views of it, ids
// and sources that were written never change: a run that differs from the one before
// in the middle moves to memory of its own.
type stack struct {
	viewed bool
	ids    []rollout.TokenID
	source []int32
	flags  []rollout.Flag // of the run; the others may go on with what stood after it
}

func (s *stack) len() int { return len(s.flags) }

func (s *stack) truncate(n int) {
	s.flags = s.flags[:n]
	if !s.viewed {
		s.ids, s.source = s.ids[:n], s.source[:n]
	}
}

func (s *stack) append(add columns) {
	at := s.len()
	s.flags = append(s.flags, add.flags...)
	n := min(len(s.ids)-at, add.len())
	k := 0
	for k < n && s.ids[at+k] == add.ids[k] && s.source[at+k] == add.source[k] {
		k++
	}
	if k == add.len() {
		return
	}
	if same := at + k; same < len(s.ids) {
		room := len(s.ids) + len(s.ids)/8 + add.len()
		s.ids = append(make([]rollout.TokenID, 0, room), s.ids[:same]...)
		s.source = append(make([]int32, 0, room), s.source[:same]...)
	}
	s.ids = append(s.ids, add.ids[k:]...)
	s.source = append(s.source, add.source[k:]...)
}

// encode appends the tokens of r.text[from:to] to a run that nobody views.
func (s *stack) encode(p *pieceEncoder, r *rendering, from, to int, after After) error {
	c := columns{s.ids, s.source, s.flags}
	err := p.encode(&c, r, from, to, after)
	s.ids, s.source, s.flags = c.ids, c.source, c.flags
	return err
}

// columns is the run as it is now.
func (s *stack) columns() columns {
	n := s.len()
	return columns{s.ids[:n:n], s.source[:n:n], s.flags[:n:n]}
}

// row is the run with c after it, for good. A token is sampled in one row only, so
// each has flags of its own.
func (s *stack) row(c columns) columns {
	n := s.len()
	s.append(c)
	row := s.columns()
	row.flags = slices.Clone(row.flags)
	s.truncate(n)
	return row
}

// step adds the row of turn i: its prompt, if that says where its ids come from, and
// what was sampled. A row is finished at once, while it is near.
func (j *job) step(i int, prompt *stack) error {
	c, t, fresh := &j.completions[i].cols, &j.turns[i], 0
	if c.len() == 0 {
		return nil
	}
	switch {
	case !j.attributed[i]:
		ids := j.captured(i)
		prompt = &stack{ids: ids, source: slices.Repeat([]int32{-1}, len(ids)), flags: make([]rollout.Flag, len(ids))}
	case prompt.viewed: // what stands before was checked in an earlier row
		fresh = j.prompts[i].keep
	}
	row := prompt.row(*c)
	end := row.len()
	n := end - c.len()
	for len(j.outside) < end {
		j.outside = append(j.outside, -1)
	}
	cols := rollout.Columns{IDs: row.ids, Source: row.source, Flags: row.flags, Turn: slices.Clone(j.outside[:end])}
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
	return j.give(seq)
}
