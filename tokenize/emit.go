package tokenize

import (
	"runtime"
	"slices"

	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// hugeTokens is beyond any model's context by far: of a record of so many tokens,
// each stage leaves garbage of as much again, which is collected before the next.
// A merged row of more than a quarter is made as runs for every caller.
const hugeTokens = 4 << 20

// merged joins the turns along shared prefixes.
func (j *job) merged() error {
	j.render, j.replies = nil, nil // what was rendered is not asked for any more
	made := 0
	for i := range j.prompts {
		made += j.prompts[i].Add.Len()
	}
	if made > hugeTokens {
		j.pieces.Buf = engine.Encoding{}
		runtime.GC()
	}
	res, err := lineage.Merge(j.plan, j.opts.Drift)
	if err != nil {
		return err
	}
	j.report.Report = res.Report
	j.report.EmptyTurns -= j.report.UnknownContext + j.vacant
	if err := j.affordable(res.Report.RowTokens); err != nil {
		return err
	}
	for k, n := 0, len(res.Rows); k < n; k++ {
		row, err := j.row(&res.Rows[k])
		if err != nil {
			return err
		}
		if k == n-1 { // the last is all that is left
			res, j.encoded = nil, encoded{}
		}
		if err := j.give(row); err != nil {
			return err
		}
		if row.Lens != nil && cap(row.Tokens) <= maxFreed {
			free := j.take()
			free.ids = row.Tokens[:0]
			j.freed.Put(free)
		}
	}
	return nil
}

// row makes one merged row, as runs where it may be and no log probability is to check.
func (j *job) row(row *lineage.Row) (out spool.Row, err error) {
	free := j.take()
	defer j.freed.Put(free)
	w := free.window.Of(tokens.Window{Row: row, IDs: row.AppendIDs(free.ids[:0]), Turns: j.turns, Completions: j.completions, Told: j.told})
	n, logprobs := len(w.IDs), w.Logprobs()
	free.ids = nil
	if n > j.huge || j.runs && logprobs == nil {
		out.Tokens = w.IDs
		for ok := true; ok && w.To < n; {
			if ok = out.Extend(w.Fill(w.To, min(n, w.To+j.window))); !ok {
				out = spool.Row{}
			}
		}
	}
	cols := rollout.Columns{IDs: out.Sequence.IDs, Source: out.Source, Flags: out.Flags, Turn: out.Turn, Version: out.Version}
	if out.Lens == nil {
		cols = w.Fill(0, n)
		cols.Logprob = logprobs
	} else if free.window = w.Emptied(); logprobs != nil {
		out.Logprobs, cols.Logprob = logprobs, make([]float32, len(out.Lens))
	}
	next, k, end := 0, 0, 0 // next is the span that the context at hand leads to
	for _, s := range row.Segments(func(at, to int) (scaffold bool, until int) {
		for row.Spans[next].Start < at {
			next++
		}
		if !j.attributed[row.Spans[next].Turn] {
			return false, to
		}
		if out.Lens == nil {
			return cols.Source[at] < 0, at + 1
		}
		for end <= at {
			end += int(out.Lens[k])
			k++
		}
		return cols.Source[k-1] < 0, min(end, to)
	}) {
		j.report.segment(s.Kind, s.Len)
	}
	out.Sequence, err = j.build(row, cols)
	return out, err
}

// windowTokens is how many tokens of a row have columns of an entry each at a time.
const windowTokens = 1 << 20

// told are the prompts that say what the context of turn t holds, nil for none.
func (j *job) told(t int) []tokens.Prompt {
	switch {
	case !j.attributed[t]:
		return nil
	case j.respelt != nil && j.respelt[t].N > 0:
		return j.respelt
	}
	return j.prompts
}

// build makes the sequence of a row of its columns.
func (j *job) build(row *lineage.Row, cols rollout.Columns) (rollout.Sequence, error) {
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
		if j.recorded(s.Turn) && len(s.Subs) == 0 {
			j.report.Exact += s.Len
		}
	}
	id.Fidelity = j.fidelity(row.Spans, repaired)
	return cols.Sequence(id, 0)
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

// maxFreed is the number of tokens, and a quarter of the bytes of rendered text, of the
// longest conversation whose memory the next one uses again.
const maxFreed = 1 << 20

// freed is the memory of a conversation that nobody reads any more.
type freed struct {
	render.Scratch
	cols tokens.Columns
	turn []int32 // by token
	ids  []rollout.TokenID

	rendered render.Memory
	prompt   tokens.Compact
	window   tokens.Window
}

// take returns the memory of an earlier conversation.
func (e *Encoder) take() *freed {
	free, _ := e.freed.Get().(*freed)
	if free == nil {
		free = &freed{}
	}
	return free
}

// giveBack leaves the memory of the prompts to the next conversation, once no turn is
// left to encode.
func (j *job) giveBack(free *freed, prompts *tokens.PromptEncoder) {
	if j.render != nil && j.render.Memory.Len() <= 4*maxFreed {
		free.rendered, j.render.Memory = j.render.Memory, render.Memory{}
	}
	if cap(prompts.Runs.IDs) <= maxFreed {
		free.prompt = prompts.Runs.Emptied()
	}
	j.freed.Put(free)
}

// whole renders the conversation once and marks what the policy sampled in it.
func (j *job) whole() ([]spool.Row, error) {
	if len(j.turns) == 0 {
		return nil, nil
	}
	if j.render == nil {
		if len(j.r.Messages) > 0 {
			return nil, j.model.lacks(j.r)
		}
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "Whole mode renders the conversation, but the rollout has no messages").WithFix("use Merged or PerStep, which take its captured ids")
	}
	rule := j.rule
	if o := rule.Opening(); o.Fault != nil && o.Lead == "" {
		return nil, o.Fault
	}
	free := j.take()
	j.render.Scratch = free.Scratch
	doc, replies, err := j.replies.Document()
	if err != nil {
		return nil, err
	}
	cols, turn := free.cols, free.turn
	defer func() {
		if cols.Len() > maxFreed {
			return
		}
		cols.Truncate(0)
		free.Scratch, free.cols, free.turn = render.Scratch{Result: j.render.Last, Fields: doc.Fields[:0]}, cols, turn
		j.freed.Put(free)
	}()
	j.pieces.Whole = j.opts.Edges == EdgesDocument
	id := j.identity()
	id.Fidelity = rollout.FidelityRendered
	type span struct{ start, end, turn int }
	var spans []span
	wrote := map[int]completion.Span{} // of turns, where the document has them
	at := 0
	for _, reply := range replies {
		owner, ok := j.owner[int32(reply.Message)]
		if !ok || reply.Start < at {
			continue
		}
		i := int(owner)
		if j.turns[i].Context.Unknown || j.turns[i].Incomplete != "" {
			continue
		}
		start, end := rule.SpanIn(&j.r.Messages[reply.Message], int32(reply.Message), &doc, reply, j.model.unstopped(&j.turns[i]))
		if start >= end {
			continue
		}
		if err := rule.CheckSpan(&doc, int32(reply.Message), start, end); err != nil {
			return nil, render.Within(err, rollout.Where{Turn: rollout.At(i), Message: rollout.At(reply.Message)})
		}
		wrote[i] = reply
		if j.opts.Edges == EdgesSampled {
			if err := j.pieces.Encode(&cols, &doc, at, start, j.pieces.PrecedingContext(&doc, at)); err != nil {
				return nil, err
			}
			n := cols.Len()
			if err := j.pieces.Encode(&cols, &doc, start, end, j.pieces.PrecedingContext(&doc, start)); err != nil {
				return nil, err
			}
			spans, at = append(spans, span{n, cols.Len(), i}), end
			cols.Reserve(at, len(doc.Text))
		} else {
			spans = append(spans, span{start, end, i})
		}
	}
	n := cols.Len()
	if err := j.pieces.Encode(&cols, &doc, at, len(doc.Text), j.pieces.PrecedingContext(&doc, at)); err != nil {
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
			at.Stop = len(doc.Text)
		}
		if err := j.checkReplyWritten(&j.r.Messages[m], completion.WrittenOf(&doc, int32(m), at.Start, at.Stop)); err != nil {
			return nil, render.Within(err, where)
		}
	}
	j.unwritten()
	j.report.Turns = len(j.turns)
	j.report.EmptyTurns = len(j.turns) - len(spans) - j.report.UnknownContext - j.report.Incomplete
	turn = slices.Grow(turn[:0], cols.Len())[:cols.Len()]
	for k := range turn {
		turn[k] = -1
	}
	for _, s := range spans {
		from, to := s.start, s.end
		if j.opts.Edges == EdgesDocument {
			from, to = tokensWithin(j.pieces.Buf.Offsets, n, from, to)
		}
		if from >= to { // its only token belongs to the text before it, too
			j.report.EmptyTurns++
			continue
		}
		c := tokens.Completion{Message: int32(j.turns[s.turn].Message), Cols: cols.Slice(from, to)}
		c.Mark(j.model.IsStop)
		if err := c.CheckSampled(j.model.Tokenizer.Vocab(), j.model.IsStop); err != nil {
			return nil, render.Within(err, rollout.Where{Turn: rollout.At(s.turn), Message: rollout.At(j.turns[s.turn].Message)})
		}
		if c.Stopped(j.model.IsStop) {
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
	j.report.Rows, j.report.RowTokens = 1, cols.Len()
	var b rollout.SequenceBuilder
	if cols.Len() <= maxFreed { // else nobody uses their memory again
		cols, turn := cols.Clone(), slices.Clone(turn)
		b.AddColumns(cols.IDs, cols.Source, cols.Flags, turn)
	} else {
		b.AddColumns(cols.IDs, cols.Source, cols.Flags, turn)
	}
	seq, err := b.Build(id)
	return []spool.Row{rowOf(seq)}, err
}

func rowOf(seq rollout.Sequence) spool.Row { return spool.Row{Sample: rollout.Sample{Sequence: seq}} }

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
