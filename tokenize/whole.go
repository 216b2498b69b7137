package tokenize

import (
	"slices"

	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
)

// document is a conversation rendered once, with the spans that the policy sampled.
type document struct {
	*job
	text  render.Rendering
	found map[int]completion.Span // replies by turn, if the text has them
	spans []turnSpan
	runs  tokens.Compact
	cols  tokens.Columns // the columns of runs, after encoding
	turn  []int32        // by token
	last  int            // first token of the part encoded last
}

// turnSpan is what a turn sampled: a range of tokens if the document is cut at its edges
// (Options.Edges), else of bytes.
type turnSpan struct{ turn, start, end int }

// whole renders the conversation once and marks what the policy sampled in it.
func whole(j *job) error {
	if len(j.turns) == 0 {
		return nil
	}
	if j.render == nil {
		if len(j.r.Messages) > 0 {
			return j.model.lacks(j.r)
		}
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "Whole mode renders the conversation, but the rollout has no messages").WithFix("use Merged or PerStep, which take its captured ids")
	}
	if o := j.rule.Opening(); o.Fault != nil && o.Lead == "" {
		return o.Fault
	}
	free := j.take()
	j.render.Scratch = free.Scratch
	text, replies, err := j.replies.Document()
	if err != nil {
		return err
	}
	d := &document{job: j, text: text, found: map[int]completion.Span{}, runs: free.prompt}
	defer d.giveBack(free)
	if err := d.encode(replies); err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	id, err := d.mark()
	if err != nil || id.FirstTurn < 0 { // no turn has a token
		return err
	}
	j.report.Rows, j.report.RowTokens = 1, d.cols.Len()
	if d.cols.Len() <= maxFreed { // else nobody uses their memory again
		d.cols.IDs = slices.Clone(d.cols.IDs)
	}
	seq, err := rollout.Columns{IDs: d.cols.IDs, Source: d.cols.Source, Flags: d.cols.Flags, Turn: d.turn}.Sequence(id, 0)
	if err != nil {
		return err
	}
	return j.yieldRow(spool.Row{Sample: rollout.Sample{Sequence: seq}})
}

// encode finds what each turn sampled, and encodes the text.
func (d *document) encode(replies []completion.Span) error {
	d.pieces.Whole = d.opts.Edges == edgesDocument
	at := 0
	for _, reply := range replies {
		owner, ok := d.owner[int32(reply.Message)]
		if !ok || reply.Start < at {
			continue
		}
		t := &d.turns[owner]
		if t.Context.Unknown || t.Incomplete != "" {
			continue
		}
		start, end := d.rule.SpanIn(&d.r.Messages[reply.Message], int32(reply.Message), &d.text, reply, d.unstopped(t))
		if start >= end {
			continue
		}
		if err := d.rule.CheckSpan(&d.text, reply, start, end); err != nil {
			return rollout.In(err, rollout.Where{Turn: rollout.At(int(owner)), Message: rollout.At(reply.Message)})
		}
		d.found[int(owner)] = reply
		if d.opts.Edges == edgesDocument {
			d.spans = append(d.spans, turnSpan{int(owner), start, end})
			continue
		}
		if err := d.part(at, start); err != nil {
			return err
		}
		if err := d.part(start, end); err != nil {
			return err
		}
		d.spans, at = append(d.spans, turnSpan{int(owner), d.last, d.runs.Len()}), end
	}
	return d.part(at, len(d.text.Text))
}

// part encodes bytes [from, to) of the text, given the text before them.
func (d *document) part(from, to int) error {
	d.last = d.runs.Len()
	return d.pieces.Encode(&d.runs, &d.text, from, to, d.pieces.PrecedingContext(&d.text, from))
}

// check reports turns that are not trained, and rejects replies whose text does not hold what was
// sampled.
func (d *document) check() error {
	for i := range d.turns {
		t, where := &d.turns[i], rollout.Where{Turn: rollout.At(i)}
		if t.Message >= 0 {
			where.Message = rollout.At(t.Message)
		}
		switch {
		case t.Context.Unknown:
			d.unknownContext(where)
			continue
		case t.Incomplete != "":
			d.incomplete(where, t.Incomplete)
			continue
		case t.Message < 0:
			continue
		}
		reply, ok := d.found[i]
		if !ok {
			reply.Stop = len(d.text.Text)
		}
		if err := d.checkReplyWritten(&d.r.Messages[t.Message], completion.WrittenOf(&d.text, int32(t.Message), reply.Start, reply.Stop)); err != nil {
			return rollout.In(err, where)
		}
	}
	d.unwritten()
	d.report.Turns = len(d.turns)
	d.report.EmptyTurns = len(d.turns) - len(d.spans) - d.report.UnknownContext - d.report.Incomplete
	return nil
}

// mark sets for each token the turn that sampled it, and returns the identity of the row; its
// FirstTurn is −1 if no token was sampled.
func (d *document) mark() (rollout.Identity, error) {
	id := d.identity()
	id.Fidelity = rollout.FidelityRendered
	d.cols = d.runs.Slice(0, d.runs.Len())
	d.turn = slices.Repeat([]int32{-1}, d.cols.Len())
	for _, s := range d.spans {
		from, to := s.start, s.end
		if d.opts.Edges == edgesDocument {
			from, to = d.pieces.TokensWithin(d.last, from, to)
		}
		if from >= to { // its only token also has text from before it
			d.report.EmptyTurns++
			continue
		}
		t := &d.turns[s.turn]
		c := tokens.Completion{Message: int32(t.Message), Cols: d.cols.Slice(from, to)}
		c.Mark(d.model.IsStop)
		if err := c.CheckSampled(d.model.Tokenizer.Vocab(), d.model.IsStop); err != nil {
			return id, rollout.In(err, rollout.Where{Turn: rollout.At(s.turn), Message: rollout.At(t.Message)})
		}
		if c.Stopped(d.model.IsStop) {
			d.report.Stops++
		}
		for k := from; k < to; k++ {
			d.turn[k] = int32(s.turn)
		}
		if id.FirstTurn < 0 {
			id.FirstTurn, id.FirstStep = s.turn, t.Step
		}
		id.LastTurn, id.LastStep = s.turn, t.Step
		d.report.Sampled += to - from
		d.report.Trained += to - from
		d.report.Rendered += to - from
	}
	return id, nil
}

// giveBack leaves the memory to the next conversation.
func (d *document) giveBack(free *freed) {
	if d.runs.Len() > maxFreed {
		return
	}
	free.Scratch, free.prompt = render.Scratch{Result: d.render.Last, Fields: d.text.Fields[:0]}, d.runs.Emptied()
	d.freed.Put(free)
}
