package tokenize

import (
	"context"
	"sort"
	"strings"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/internal/completion"
	"github.com/turnpack/turnpack/tokenize/internal/origin"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Text is a rendered text with the recorded origins of its bytes, in ascending order without
// overlap. Everything between them was written by the chat template.
type Text struct {
	Text    string
	Origins []Origin
}

// Origin says that the bytes [Start, End) of a text come from the bytes [From, To) of a recorded
// field. They are the same bytes if Exact is set, else a rewritten form: an escape, a changed case,
// a number, or a window's note for what it left out.
type Origin struct {
	Start, End int
	Message    int // index into Rollout.Messages, −1 = tool schemas and notes
	// Field is the path in the message as templates see it, such as content or
	// tool_calls/0/function/arguments/command; outside messages it is the path in {messages,
	// tools}.
	Field    string
	From, To int
	Exact    bool
}

// Texts renders, as Encode does, the prompt that the model read at a turn, with its generation
// prompt, and the reply as the policy sampled it, stop marker included. With Whole, prompt is the
// whole conversation. For a turn with captured ids the texts are what the template gives, which
// need not be what was sampled: compare before trusting them.
func (e *Encoder) Texts(ctx context.Context, r *rollout.Rollout, turn int) (prompt, reply Text, err error) {
	if err := e.checkMade(); err != nil {
		return prompt, reply, err
	}
	if r == nil {
		return prompt, reply, zero.Rollout()
	}
	j := &job{Encoder: e, ctx: ctx, r: r, turns: rollout.TurnsOf(r)}
	prompt, reply, err = textsOf(j, turn)
	return prompt, reply, rollout.In(err, rollout.Where{Rollout: r.ID})
}

// textsOf is Texts for a job that has not begun.
func textsOf(j *job, turn int) (prompt, reply Text, err error) {
	if turn < 0 || turn >= len(j.turns) {
		return prompt, reply, rollout.Errorf(rollout.KindInput, rollout.Where{}, "turn %d asked for, the rollout has %d", turn, len(j.turns))
	}
	if err := j.prepare(); err != nil {
		return prompt, reply, err
	}
	x, r, t := j.render, j.r, &j.turns[turn]
	if x == nil || t.Message < 0 || t.Context.Unknown {
		return prompt, reply, rollout.Errorf(rollout.KindInput, rollout.Where{Turn: rollout.At(turn)}, "the turn has token ids only: no message or context to render")
	}
	if j.opts.Mode == Whole {
		res, err := x.Result(x.All, false)
		if err != nil {
			return prompt, reply, err
		}
		return textOf(res, x.Index, 0, len(res.Text)), reply, nil
	}
	c, index, err := x.Context(t)
	if err != nil {
		return prompt, reply, err
	}
	res, err := x.Result(c, true)
	if err != nil {
		return prompt, reply, err
	}
	prompt = textOf(res, index, 0, len(res.Text))
	for _, p := range t.Context.Parts {
		if p.Message != nil && p.From < len(r.Messages) && x.Stands(&p) {
			prompt.shortened(p.From, p.Message, &r.Messages[p.From])
		}
	}
	a, err := x.Answered(t, completion.AsSampled(&r.Messages[t.Message]))
	if err != nil {
		return prompt, reply, err
	}
	at, ok, err := completion.FindLast(j.ctx, x.Template.Chat, a.Conversation, x.Input(false), a.Result, j.replies.Stops(), nil, nil)
	if err != nil || !ok {
		return prompt, reply, err
	}
	start, end := j.rule.SpanIn(&r.Messages[t.Message], int32(t.Message), &a.Rendering, at, j.unstopped(t))
	return prompt, textOf(a.Result, a.Index, start, max(start, end)), nil
}

// textOf returns bytes [from, to) of a result; index maps its messages to those of the rollout.
func textOf(res *chat.Result, index []int32, from, to int) Text {
	out := Text{Text: res.Text[from:to]}
	for s := range res.Spans() {
		if s.Field == nil || s.End <= from || s.Start >= to {
			continue
		}
		o := Origin{Start: s.Start, End: s.End, Message: -1, Field: strings.TrimPrefix(s.Field.Path(), "/"), From: s.FieldStart, To: s.FieldEnd, Exact: s.Exact}
		if o.Exact { // exact spans may be cut
			o.Start, o.End = max(o.Start, from), min(o.End, to)
			o.From, o.To = o.From+o.Start-s.Start, o.To-(s.End-o.End)
		}
		if m := int(s.Field.Message); m >= 0 {
			o.Message = int(index[m])
			if parts := strings.SplitN(o.Field, "/", 3); len(parts) == 3 {
				o.Field = parts[2]
			}
		}
		o.Start, o.End = max(o.Start, from)-from, min(o.End, to)-from
		out.Origins = append(out.Origins, o)
	}
	return out
}

// shortened converts the origins in message m, which the model saw as shown, to origins in the
// message as recorded.
func (t *Text) shortened(m int, shown, recorded *rollout.Message) {
	var out []Origin
	for _, o := range t.Origins {
		has, had := shown.Content, recorded.Content
		switch {
		case o.Message != m || !o.Exact:
			out = append(out, o)
			continue
		case partOfMessage(o.Field) == origin.PartReasoning:
			has, had = shown.Reasoning, recorded.Reasoning
		case partOfMessage(o.Field) != origin.PartContent:
			out = append(out, o)
			continue
		}
		head := render.CommonText(has, had)
		tail := 0
		for tail < min(len(has), len(had))-head && has[len(has)-1-tail] == had[len(had)-1-tail] {
			tail++
		}
		for _, piece := range []struct {
			from, to, moved int
			exact           bool
		}{{0, head, 0, true}, {head, len(has) - tail, 0, false}, {len(has) - tail, len(has), len(had) - len(has), true}} {
			from, to := max(o.From, piece.from), min(o.To, piece.to)
			if from >= to {
				continue
			}
			cut := o
			cut.Start, cut.End, cut.Exact = o.Start+from-o.From, o.Start+to-o.From, piece.exact
			cut.From, cut.To = from+piece.moved, to+piece.moved
			if !piece.exact { // the note replaces all that is left out
				cut.From, cut.To = head, len(had)-tail
			}
			out = append(out, cut)
		}
	}
	t.Origins = out
}

// partOfMessage returns the part of a message that a field belongs to.
func partOfMessage(field string) origin.Part {
	key, _, _ := strings.Cut(field, "/")
	return origin.PartOf(key)
}

// At returns the origins of the bytes [start, end) of t; exact origins are cut to that range.
func (t *Text) At(start, end int) []Origin {
	var out []Origin
	first := sort.Search(len(t.Origins), func(i int) bool { return t.Origins[i].End > start })
	for _, o := range t.Origins[first:] {
		if o.Start >= end {
			break
		}
		if o.Exact {
			from, to := max(o.Start, start), min(o.End, end)
			o.From, o.To = o.From+from-o.Start, o.To-(o.End-to)
			o.Start, o.End = from, to
		}
		out = append(out, o)
	}
	return out
}
