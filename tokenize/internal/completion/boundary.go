package completion

import (
	"context"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// This file draws the line between what a template writes to open a reply, which the model reads,
// and the reply, which the model samples. A reply begins at the end of the generation prompt. If a
// template opens a turn differently than its own prompt does, or has no prompt, the beginning is
// inferred, and the text to be trained is checked: a row is rejected rather than trained with part
// of a header.

// AsSampled returns reply m as the policy sampled it: its text parts as one text, since only later
// contexts join them, and without its name, which its generation prompt did not have. It returns
// nil if m is already in that form.
func AsSampled(m *rollout.Message) *rollout.Message {
	if len(m.Parts) < 2 && m.Name == "" {
		return nil
	}
	out := *m
	out.Name = ""
	if len(m.Parts) > 1 {
		out.Parts = nil
	}
	return &out
}

// opening says how a template opens a reply to a user.
type opening struct {
	prompt string // the generation prompt, "" if there is none
	known  bool   // the probe could be rendered
	Fault  error  // CheckLead's error for a plain reply to it
	// Lead is what the template writes before such a reply although the prompt lacks it, "" if it
	// varies: the header, in a conversation that shows it.
	Lead string
}

// learnOpening renders a question and its answer.
func (rr *Rule) learnOpening() *opening {
	o := &opening{}
	x, err := rr.Probe(context.Background(), render.User("x"))
	if x == nil || err != nil {
		return o
	}
	bare, _ := x.Run(x.All, x.Index, false) // as Probe did
	text := strings.Clone(bare.Text)
	with, err := x.Run(x.All, x.Index, true)
	if err != nil {
		return o
	}
	o.known = true
	o.prompt, _ = strings.CutPrefix(with.Text, text)
	if !strings.HasPrefix(with.Text, text) {
		o.prompt = with.Tail()
	}
	r := *x.R
	r.Messages = append(slices.Clip(r.Messages), render.Assistant("Reply."))
	if x, err = render.New(context.Background(), x.Template, &r, render.Options{Probe: true}); err != nil {
		return o
	}
	t := rollout.Turn{Message: 1}
	prompt, err := x.Prompt(&t)
	if err != nil {
		return o
	}
	f := Finder{Rule: rr, Render: x}
	answer, turn, err := f.Answered(&t, nil, &prompt)
	if err != nil {
		return o
	}
	_, frame := rr.SampledText(&r.Messages[1], 1, &prompt, &answer, turn, false)
	if o.Fault = o.CheckLead(&frame); o.Fault != nil && frame.quotes == "" && !frame.Recorded() {
		o.Lead = strings.Clone(frame.lead.Text)
	}
	return o
}

// header returns the generation prompt without the reasoning that it opens.
func (o *opening) header() string {
	if at := ThinkTag.FindStringIndex(o.prompt); at != nil {
		return o.prompt[:at[0]]
	}
	return o.prompt
}

// follows reports whether the text of with from start on comes after the same text of the template
// as a reply to prompt does.
func follows(prompt, with *render.Rendering, start int) bool {
	return strings.HasPrefix(with.Text, prompt.Text) && start >= len(prompt.Text) || strings.HasSuffix(with.Text[:start], prompt.Tail()) && prompt.Tail() != ""
}

// CheckLead rejects a frame whose lead, the template's text before a plain reply, is part of the
// reply's header: if the template writes no generation prompt, or the turn does not continue it,
// nothing shows that the policy sampled the lead.
func (o *opening) CheckLead(f *Frame) error {
	if f.quotes != "" {
		return headerError(f.quotes)
	}
	if f.follows && (o.prompt != "" || !o.known) {
		return nil
	}
	if lead := ownText(f.lead.Text); lead != "" {
		return headerError(lead)
	}
	return nil
}

// ownText returns what a template writes before a reply, without markers of reasoning.
func ownText(lead string) string {
	return strings.TrimSpace(ThinkTag.ReplaceAllString(lead, ""))
}

func headerError(text string) error {
	return rollout.Errorf(rollout.KindTemplate, rollout.Where{}, "the chat template writes %q before a reply that its generation prompt does not have, so where the reply begins is not known", excerptOf(text)).
		WithFix("use the chat template that the engine served, or record the engine's token ids")
}

func excerptOf(text string) string {
	const most = 48 // bytes
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// CheckReply rejects a reply of message i that has recorded text of others, or the message's own
// name; and one that does not follow its prompt, if nothing tells where its header ends or its lead
// has a control token of the header at the end of the prompt.
func (rr *Rule) CheckReply(out *render.Rendering, i int32, f *Frame, prompt *render.Rendering) error {
	for k := range out.Fields {
		x := &out.Fields[k]
		if err := foreignTo(x, i, out.Text[x.Start:x.End]); err != nil {
			return err
		}
	}
	tail := ThinkTag.ReplaceAllString(prompt.Tail(), "")
	for _, a := range rr.Added {
		if !f.follows && a.Special && strings.Contains(f.lead.Text, a.Content) && strings.Contains(tail, a.Content) {
			return headerError(f.lead.Text)
		}
	}
	return rr.Opening().checkHeader(f.lead.Text, f.guessed && !f.follows)
}

// foreignTo rejects text of a field that a reply of message i cannot contain.
func foreignTo(f *render.Field, i int32, text string) error {
	switch {
	case f.Part == render.PartName:
		return rollout.Errorf(rollout.KindTemplate, rollout.Where{}, "the chat template writes the name %q within a turn whose generation prompt has none, so where the reply begins is not known", excerptOf(text)).
			WithFix("make merged or per-step rows, or leave the names of replies out")
	case f.Message != i && f.Part != render.PartRole:
		return rollout.Errorf(rollout.KindTemplate, rollout.Where{}, "the chat template writes recorded text of others, %q, inside the reply", excerptOf(text)).
			WithFix("use the chat template that the engine served, or record the engine's token ids")
	}
	return nil
}

// CheckSpan is CheckReply for the bytes [start, end) of a whole conversation, which SpanIn found for
// turn.
func (rr *Rule) CheckSpan(doc *render.Rendering, turn Span, start, end int) error {
	i := int32(turn.Message)
	o, lead := rr.Opening(), doc.Text[start:end]
	for k := doc.FieldAfter(start); k < len(doc.Fields) && doc.Fields[k].Start < end; k++ {
		x := &doc.Fields[k]
		if err := foreignTo(x, i, doc.Text[max(start, x.Start):min(end, x.End)]); err != nil {
			return err
		}
	}
	if first, _, ok := doc.Extent(i, render.PartScaffold, start); ok && first < end {
		lead = doc.Text[start:first]
	}
	if doc.Text[max(0, start-len(o.Lead)):start] != o.Lead {
		return o.Fault
	}
	return o.checkHeader(lead, turn.Guessed && start == turn.Start)
}

// checkHeader rejects a lead that begins with a header: that of the generation prompt or, where the
// beginning of the reply is a guess, any word, since a tool call begins with a marker mostly.
func (o *opening) checkHeader(lead string, guessed bool) error {
	own, header := ownText(lead), strings.TrimSpace(o.header())
	if header != "" && strings.HasPrefix(own, header) || guessed && own != "" && own[0] != '<' && own[0] != '[' {
		return headerError(lead)
	}
	return nil
}

// afterHeader returns where the reply begins in a turn that begins at byte start: after a header
// that the generation prompt lacks or that has the name of message i, and then after what the
// generation prompt ends with. It returns start if there is neither, and if nothing of that prompt
// follows the name. The name may be before start and equal the end of the generation prompt, which
// the template then writes itself.
func (rr *Rule) afterHeader(doc *render.Rendering, i int32, start, stop int) int {
	o := rr.Opening()
	if lead := o.Lead; lead != "" && strings.HasPrefix(doc.Text[start:stop], lead) {
		return start + len(lead)
	}
	for k := doc.FieldAfter(start - len(o.prompt)); k < len(doc.Fields) && doc.Fields[k].Start < stop; k++ {
		x := doc.Fields[k]
		if own := x.Message == i && !x.Part.Text(); !own && x.End > start {
			break
		} else if !own || x.Part != render.PartName {
			continue
		}
		for _, opened := range []string{o.prompt, o.header()} {
			for n := range len(opened) { // the longest end first
				if strings.HasPrefix(doc.Text[x.End:stop], opened[n:]) {
					return max(start, x.End+len(opened)-n)
				}
			}
		}
	}
	return start
}
