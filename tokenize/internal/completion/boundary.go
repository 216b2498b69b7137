package completion

import (
	"context"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// This file holds the line between what a template writes to open a reply, which the
// model reads, and the reply, which it samples. A reply begins where the generation
// prompt ends. Where a template writes a turn otherwise than its own prompt, or none,
// that place is inferred, and what would then be trained is checked: a row is refused
// rather than trained with a part of a header.

// AsSampled is reply m as the policy sampled it: its text parts as one text, since
// only later contexts join them, and without its name, which the generation prompt that
// it was sampled after did not have. It is nil where m is that itself.
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

// opening is how a template opens a reply to a user.
type opening struct {
	prompt string // the generation prompt, "" for none
	known  bool   // it could be asked
	Fault  error  // what checkLead says of a plain reply to it
	// Lead is what the template writes before such a reply although the prompt lacks it,
	// "" where it varies: the header, in a conversation that shows it.
	Lead string
}

// learnOpening asks the template with a question and its answer.
func (rr *Rule) learnOpening() *opening {
	o := &opening{}
	if rr.Template == nil {
		return o
	}
	x, err := rr.Probe(context.Background(), render.User("x"))
	if x == nil || err != nil {
		return o
	}
	bare, err := x.Run(x.All, x.Index, false)
	if err != nil {
		return o
	}
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

// header is the generation prompt without reasoning that it opens.
func (o *opening) header() string {
	if at := ThinkTag.FindStringIndex(o.prompt); at != nil {
		return o.prompt[:at[0]]
	}
	return o.prompt
}

// follows reports whether what with says from start on stands after the same text of
// the template as a reply to prompt does.
func follows(prompt, with *render.Rendering, start int) bool {
	return strings.HasPrefix(with.Text, prompt.Text) && start >= len(prompt.Text) || strings.HasSuffix(with.Text[:start], prompt.Tail()) && prompt.Tail() != ""
}

// CheckLead refuses a frame whose lead, the text of the template before a plain reply,
// is a part of its header: where the template writes no generation prompt (or the turn
// does not go on from it), nothing tells that the policy sampled it.
func (o *opening) CheckLead(f *Frame) error {
	if f.quotes != "" {
		return headerError(f.quotes)
	}
	if f.follows && (o.prompt != "" || !o.known) {
		return nil
	}
	lead := strings.TrimSpace(ThinkTag.ReplaceAllString(f.lead.Text, ""))
	if lead == "" {
		return nil
	}
	return headerError(lead)
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

// CheckReply refuses a reply of message i that holds recorded text of others, or the
// message's own name; and one whose lead holds a control token of the header that the
// prompt ends with, where with does not go on from it.
func (rr *Rule) CheckReply(out *render.Rendering, i int32, f *Frame, prompt *render.Rendering) error {
	for k := range out.Fields {
		x := &out.Fields[k]
		if err := foreignTo(x, i, out.Text[x.Start:x.End]); err != nil {
			return err
		}
	}
	if f.follows {
		return nil
	}
	tail := ThinkTag.ReplaceAllString(prompt.Tail(), "")
	for _, a := range rr.Added {
		if a.Special && strings.Contains(f.lead.Text, a.Content) && strings.Contains(tail, a.Content) {
			return headerError(f.lead.Text)
		}
	}
	return nil
}

// foreignTo refuses text of a field that a reply of message i cannot hold.
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

// CheckSpan is checkReply for the bytes [start, end) of a whole conversation.
func (rr *Rule) CheckSpan(doc *render.Rendering, i int32, start, end int) error {
	o, lead := rr.Opening(), doc.Text[start:end]
	for k := doc.FieldAfter(start); k < len(doc.Fields) && doc.Fields[k].Start < end; k++ {
		x := &doc.Fields[k]
		if err := foreignTo(x, i, doc.Text[max(start, x.Start):min(end, x.End)]); err != nil {
			return err
		}
		if at := max(x.Start-start, 0); x.Part.Text() && at < len(lead) {
			lead = lead[:at]
		}
	}
	if o.Lead != "" && doc.Text[max(0, start-len(o.Lead)):start] != o.Lead {
		return o.Fault
	}
	if header := strings.TrimSpace(o.header()); header != "" && strings.HasPrefix(strings.TrimSpace(lead), header) {
		return headerError(lead)
	}
	return nil
}

// afterHeader returns where a reply begins whose turn begins at byte start: after a
// header that the generation prompt lacks, or that holds the name of message i, and
// then after what the generation prompt ends with. It is start for neither, and where
// nothing of that prompt stands after the name. The name may stand before start and
// read like the end of the generation prompt, which the template then writes itself.
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
			for n := range len(opened) { // the longest end of it first
				if strings.HasPrefix(doc.Text[x.End:stop], opened[n:]) {
					return max(start, x.End+len(opened)-n)
				}
			}
		}
	}
	return start
}
