package tokenize

import (
	"runtime"
	"slices"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// hugeTokens is beyond any model's context by far: of a record of so many tokens,
// each stage leaves garbage of as much again, which is collected before the next.
const hugeTokens = 4 << 20

// merged joins the turns along shared prefixes.
func (j *job) merged() ([]rollout.Sequence, error) {
	j.render = nil // what was rendered is not asked for any more
	made := 0
	for i := range j.prompts {
		made += j.prompts[i].add.len()
	}
	if made > hugeTokens {
		j.pieces.buf = Encoding{}
		runtime.GC()
	}
	res, err := lineage.Merge(j.plan, j.opts.Drift)
	if err != nil {
		return nil, err
	}
	j.report.Report = res.Report
	j.report.EmptyTurns -= j.report.UnknownContext + j.vacant
	out := make([]rollout.Sequence, 0, len(res.Rows))
	for k := range res.Rows {
		seq, err := j.row(&res.Rows[k])
		if err != nil {
			return nil, err
		}
		out = append(out, seq)
	}
	j.encoded = encoded{}
	return out, nil
}

// row makes the sequence of one merged row.
func (j *job) row(row *lineage.Row) (rollout.Sequence, error) {
	var b rollout.SequenceBuilder
	ids := row.AppendIDs(nil)
	source := make([]int32, len(ids))
	flags := make([]rollout.Flag, len(ids))
	turn := make([]int32, len(ids))
	for i := range ids {
		source[i], turn[i] = -1, -1
	}
	for p := range row.Pieces() {
		if p.Turn < 0 {
			continue
		}
		c := &j.completions[p.Turn].cols
		for k := range p.IDs {
			source[p.Start+k] = c.source[p.From+k]
			flags[p.Start+k] = c.flags[p.From+k]
			if p.Kind != lineage.SegSampled {
				flags[p.Start+k] &^= rollout.FlagSampled | rollout.FlagStop
			}
		}
	}
	// Where the context was rendered that says what each token is, also of those that
	// are as an earlier reply was sampled.
	from := 0
	for _, s := range row.Spans {
		j.attributeContext(s.Turn, s.Start, from, ids, source, flags)
		from = s.Start + s.Len
	}
	for _, s := range row.Spans {
		for k := range s.Len {
			turn[s.Start+k] = int32(s.Turn)
		}
		for _, sub := range s.Subs {
			for k := sub.At; k < sub.At+sub.Len; k++ {
				flags[k] |= rollout.FlagRepaired
			}
		}
	}
	next := 0 // the span that the context at hand leads to
	for _, s := range row.Segments(func(at int) bool {
		for row.Spans[next].Start < at {
			next++
		}
		return source[at] < 0 && j.attributed[row.Spans[next].Turn]
	}) {
		j.report.segment(s.Kind, s.Len)
	}
	b.AddColumns(ids, source, flags, turn)
	id := j.identity()
	repaired := false
	for _, join := range row.Joins {
		repaired = repaired || join.Kind != lineage.JoinExact
	}
	for k, s := range row.Spans {
		t := &j.turns[s.Turn]
		if k == 0 {
			id.FirstTurn, id.FirstStep = s.Turn, t.Step
		}
		id.FirstTurn, id.LastTurn = min(id.FirstTurn, s.Turn), max(id.LastTurn, s.Turn)
		id.FirstStep, id.LastStep = min(id.FirstStep, t.Step), max(id.LastStep, t.Step)
		j.setRecorded(&b, s.Turn, s.From, s.Start, s.Len)
		if j.recorded(s.Turn) && len(s.Subs) == 0 {
			j.report.Exact += s.Len
		}
	}
	id.Fidelity = j.fidelity(row.Spans, repaired)
	return b.Build(id)
}

// attributeContext fills source and flags of the context before a span of turn
// t that starts at row position start, from row position from on. The context's
// end and the end of the turn's prompt coincide.
func (j *job) attributeContext(t, start, from int, ids []rollout.TokenID, source []int32, flags []rollout.Flag) {
	if !j.attributed[t] {
		return
	}
	stored := j.prompts
	if j.respelt != nil && j.respelt[t].n > 0 {
		stored = j.respelt
	}
	end := stored[t].n
	// Walk the stored runs backwards from the prompt's end.
	for at := t; at >= 0 && end > 0 && start > from; at-- {
		p := &stored[at]
		if end > p.keep {
			n := min(end-p.keep, start-from)
			for k := 1; k <= n; k++ {
				if row, src := start-k, end-k-p.keep; ids[row] == p.add.ids[src] {
					source[row], flags[row] = p.add.source[src], p.add.flags[src]
				}
			}
			start, end = start-n, end-n
		}
		if p.keep == 0 {
			return
		}
	}
}

// setRecorded copies what the engine recorded of output ids [from, from+n) of a
// turn to sequence position at.
func (j *job) setRecorded(b *rollout.SequenceBuilder, turn, from, at, n int) {
	t := &j.turns[turn]
	if t.Logprobs != nil {
		b.SetLogprobs(at, t.Logprobs[from:from+n])
	}
	switch {
	case t.Versions != nil:
		b.SetVersions(at, t.AppendVersions(nil, from, n))
	case t.Version != nil:
		b.SetVersion(at, n, *t.Version)
	}
}

func (j *job) identity() rollout.Identity {
	return rollout.Identity{Rollout: j.r.ID, Group: j.r.Group, FirstTurn: -1, LastTurn: -1, FirstStep: -1, LastStep: -1,
		Tokenizer: j.model.Tokenizer.Digest(), Template: j.model.TemplateDigest()}
}

func (j *job) fidelity(spans []lineage.Span, repaired bool) rollout.Fidelity {
	for _, s := range spans {
		if j.turns[s.Turn].Output == nil {
			return rollout.FidelityRendered
		}
	}
	if repaired {
		return rollout.FidelityRepaired
	}
	return rollout.FidelityCaptured
}

// maxSpent is the number of tokens of the longest conversation whose memory the next
// one uses again.
const maxSpent = 1 << 20

// whole renders the conversation once and marks what the policy sampled in it.
func (j *job) whole() ([]rollout.Sequence, error) {
	if len(j.turns) == 0 {
		return nil, nil
	}
	if j.render == nil {
		if len(j.r.Messages) > 0 {
			return nil, j.model.lacks(j.r)
		}
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "Whole mode renders the conversation, but the rollout has no messages").WithFix("use Merged or PerStep, which take its captured ids")
	}
	rule := j.model.of(j.r).reply
	if rule.opening.fault != nil && rule.opening.lead == "" {
		return nil, rule.opening.fault
	}
	j.render.spent, j.pieces.spent = j.pieces.spent, spent{}
	doc, err := j.render.document()
	if err != nil {
		return nil, err
	}
	cols, turn := j.render.spent.cols, j.render.spent.turn
	defer func() {
		if cols.len() > maxSpent {
			return
		}
		cols.truncate(0)
		j.pieces.spent = spent{j.render.last, doc.fields[:0], cols, turn}
	}()
	j.pieces.whole = j.opts.Edges == EdgesDocument
	id := j.identity()
	id.Fidelity = rollout.FidelityRendered
	type span struct{ start, end, turn int }
	var spans []span
	wrote := map[int]chat.Turn{} // of turns, where the document has them
	at := 0
	for _, reply := range doc.turns {
		owner, ok := j.owner[int32(reply.Message)]
		if !ok || reply.Start < at {
			continue
		}
		i := int(owner)
		if j.turns[i].Context.Unknown || j.turns[i].Incomplete != "" {
			continue
		}
		start, end := rule.span(&j.r.Messages[reply.Message], &doc, reply, j.model.unstopped(&j.turns[i]))
		if start >= end {
			continue
		}
		if err := rule.checkSpan(&doc, int32(reply.Message), start, end); err != nil {
			return nil, within(err, rollout.Where{Turn: rollout.At(i), Message: rollout.At(reply.Message)})
		}
		wrote[i] = reply
		if j.opts.Edges == EdgesSampled {
			if err := j.pieces.encode(&cols, &doc, at, start, j.pieces.after(&doc, at)); err != nil {
				return nil, err
			}
			n := cols.len()
			if err := j.pieces.encode(&cols, &doc, start, end, j.pieces.after(&doc, start)); err != nil {
				return nil, err
			}
			spans, at = append(spans, span{n, cols.len(), i}), end
		} else {
			spans = append(spans, span{start, end, i})
		}
	}
	n := cols.len()
	if err := j.pieces.encode(&cols, &doc, at, len(doc.text), j.pieces.after(&doc, at)); err != nil {
		return nil, err
	}
	for i := range j.turns {
		m := j.turns[i].Message
		where := rollout.Where{Turn: rollout.At(i)}
		if m >= 0 {
			where.Message = rollout.At(m)
		}
		if j.turns[i].Context.Unknown {
			j.unknownContext(where)
			continue
		}
		if why := j.turns[i].Incomplete; why != "" {
			j.incomplete(where, why)
			continue
		}
		if m < 0 {
			continue
		}
		at, ok := wrote[i]
		if !ok {
			at.Stop = len(doc.text)
		}
		if err := j.complete(&j.r.Messages[m], doc.writes(int32(m), at.Start, at.Stop)); err != nil {
			return nil, within(err, where)
		}
	}
	j.unwritten()
	j.report.Turns = len(j.turns)
	j.report.EmptyTurns = len(j.turns) - len(spans) - j.report.UnknownContext - j.report.Incomplete
	turn = slices.Grow(turn[:0], cols.len())[:cols.len()]
	for k := range turn {
		turn[k] = -1
	}
	for _, s := range spans {
		from, to := s.start, s.end
		if j.opts.Edges == EdgesDocument {
			from, to = tokensWithin(j.pieces.buf.Offsets, n, from, to)
		}
		if from >= to { // its only token belongs to the text before it, too
			j.report.EmptyTurns++
			continue
		}
		c := completion{message: int32(j.turns[s.turn].Message), cols: cols.slice(from, to)}
		c.mark(j.model)
		if err := c.checkSampled(j.model); err != nil {
			return nil, within(err, rollout.Where{Turn: rollout.At(s.turn), Message: rollout.At(j.turns[s.turn].Message)})
		}
		if c.stopped(j.model) {
			j.report.Stops++
		}
		for k := from; k < to; k++ {
			turn[k] = int32(s.turn)
		}
		step := j.turns[s.turn].Step
		if id.FirstTurn < 0 {
			id.FirstTurn, id.FirstStep = s.turn, step
		}
		id.LastTurn, id.LastStep = s.turn, step
		j.report.Sampled += to - from
		j.report.Trained += to - from
		j.report.Rendered += to - from
	}
	if id.FirstTurn < 0 { // none has a token
		return nil, nil
	}
	j.report.Rows, j.report.RowTokens = 1, cols.len()
	var b rollout.SequenceBuilder
	if cols.len() <= maxSpent { // else nobody uses their memory again
		cols, turn := cols.clone(), slices.Clone(turn)
		b.AddColumns(cols.ids, cols.source, cols.flags, turn)
	} else {
		b.AddColumns(cols.ids, cols.source, cols.flags, turn)
	}
	seq, err := b.Build(id)
	return []rollout.Sequence{seq}, err
}

// tokensWithin returns the range of tokens, counted from base, that lie wholly
// inside bytes [from, to). A token across an edge belongs to neither side.
func tokensWithin(offsets []int32, base, from, to int) (int, int) {
	first, last := -1, -1
	for i := 0; i+1 < len(offsets); i += 2 {
		if int(offsets[i]) >= from && int(offsets[i+1]) <= to && offsets[i] < offsets[i+1] {
			if first < 0 {
				first = i / 2
			}
			last = i/2 + 1
		}
	}
	if first < 0 {
		return 0, 0
	}
	return base + first, base + last
}
