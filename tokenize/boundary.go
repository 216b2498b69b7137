package tokenize

import (
	"context"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// This file holds the line between what a template writes to open a reply, which the
// model reads, and the reply, which it samples. A reply begins where the generation
// prompt ends. Where a template writes a turn otherwise than its own prompt, or none,
// that place is inferred, and what would then be trained is checked: a row is refused
// rather than trained with a part of a header.

// replyAsSampled is reply m as the policy sampled it: its text parts as one text, since
// only later contexts join them, and without its name, which the generation prompt that
// it was sampled after did not have. It is nil where m is that itself.
func replyAsSampled(m *rollout.Message) *rollout.Message {
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
	fault  error  // what checkLead says of a plain reply to it
	// lead is what the template writes before such a reply although the prompt lacks it,
	// "" where it varies: the header, in a conversation that shows it.
	lead string
}

// openingOf asks the template of m.
func openingOf(m *Model) (o opening) {
	x, err := m.probe(context.Background(), user("x"))
	if x == nil || err != nil {
		return o
	}
	bare, err := x.document()
	if err != nil {
		return o
	}
	text := strings.Clone(bare.text)
	with, err := x.run(x.all, x.index, true)
	if err != nil {
		return o
	}
	o.known = true
	o.prompt, _ = strings.CutPrefix(with.text, text)
	if !strings.HasPrefix(with.text, text) {
		o.prompt = with.tail()
	}
	m.reply.opening = o
	r := *x.r
	r.Messages = append(slices.Clip(r.Messages), assistant("Reply."))
	if x, err = newRenderer(context.Background(), m, &r, Options{}); err != nil {
		return o
	}
	t := rollout.Turn{Message: 1}
	prompt, err := x.prompt(&t)
	if err != nil {
		return o
	}
	prompt.text = strings.Clone(prompt.text)
	answer, err := x.answered(&t, nil)
	if err != nil {
		return o
	}
	_, f := m.reply.sampledText(&r.Messages[1], 1, &prompt, &answer, false)
	if o.fault = m.reply.checkLead(&f); o.fault != nil && f.quotes == "" && !f.recorded() {
		o.lead = strings.Clone(f.lead.text)
	}
	return o
}

// header is the generation prompt without reasoning that it opens.
func (o *opening) header() string {
	if at := thinkTag.FindStringIndex(o.prompt); at != nil {
		return o.prompt[:at[0]]
	}
	return o.prompt
}

// follows reports whether what with says from start on stands after the same text of
// the template as a reply to prompt does.
func follows(prompt, with *rendering, start int) bool {
	return strings.HasPrefix(with.text, prompt.text) && start >= len(prompt.text) || strings.HasSuffix(with.text[:start], prompt.tail()) && prompt.tail() != ""
}

// quoted is recorded text in the bytes [from, to) that is not of message i, nor a role.
func (r *rendering) quoted(i int32, from, to int) string {
	for k := r.after(from); k < len(r.fields) && r.fields[k].start < to; k++ {
		if x := r.fields[k]; x.message != i && x.part != partRole {
			return r.text[max(from, x.start):min(to, x.end)]
		}
	}
	return ""
}

// checkLead refuses a frame whose lead, the text of the template before a plain reply,
// is a part of its header: where the template writes no generation prompt (or the turn
// does not go on from it), nothing tells that the policy sampled it.
func (rr *replyRule) checkLead(f *frame) error {
	if f.quotes != "" {
		return headerError(f.quotes)
	}
	if f.follows && (rr.opening.prompt != "" || !rr.opening.known) {
		return nil
	}
	lead := strings.TrimSpace(thinkTag.ReplaceAllString(f.lead.text, ""))
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
	if len(text) <= 2*excerptSize {
		return text
	}
	return strings.ToValidUTF8(text[:2*excerptSize], "") + "…"
}

// checkReply refuses a reply of message i that holds recorded text of others, or the
// message's own name; and one whose lead holds a control token of the header that the
// prompt ends with, where with does not go on from it.
func (rr *replyRule) checkReply(out *rendering, i int32, f *frame, prompt *rendering) error {
	for k := range out.fields {
		x := &out.fields[k]
		if err := x.foreignTo(i, out.text[x.start:x.end]); err != nil {
			return err
		}
	}
	if f.follows {
		return nil
	}
	tail := thinkTag.ReplaceAllString(prompt.tail(), "")
	for _, a := range rr.specials {
		if a.Special && strings.Contains(f.lead.text, a.Content) && strings.Contains(tail, a.Content) {
			return headerError(f.lead.text)
		}
	}
	return nil
}

// foreignTo refuses text of a field that a reply of message i cannot hold.
func (f *field) foreignTo(i int32, text string) error {
	switch {
	case f.part == partName:
		return rollout.Errorf(rollout.KindTemplate, rollout.Where{}, "the chat template writes the name %q within a turn whose generation prompt has none, so where the reply begins is not known", excerptOf(text)).
			WithFix("make merged or per-step rows, or leave the names of replies out")
	case f.message != i && f.part != partRole:
		return rollout.Errorf(rollout.KindTemplate, rollout.Where{}, "the chat template writes recorded text of others, %q, inside the reply", excerptOf(text)).
			WithFix("use the chat template that the engine served, or record the engine's token ids")
	}
	return nil
}

// checkSpan is checkReply for the bytes [start, end) of a whole conversation.
func (rr *replyRule) checkSpan(doc *rendering, i int32, start, end int) error {
	lead := doc.text[start:end]
	for k := doc.after(start); k < len(doc.fields) && doc.fields[k].start < end; k++ {
		x := &doc.fields[k]
		if err := x.foreignTo(i, doc.text[max(start, x.start):min(end, x.end)]); err != nil {
			return err
		}
		if at := max(x.start-start, 0); x.part.text() && at < len(lead) {
			lead = lead[:at]
		}
	}
	if rr.opening.lead != "" && doc.text[max(0, start-len(rr.opening.lead)):start] != rr.opening.lead {
		return rr.opening.fault
	}
	if header := strings.TrimSpace(rr.opening.header()); header != "" && strings.HasPrefix(strings.TrimSpace(lead), header) {
		return headerError(lead)
	}
	return nil
}

// afterHeader returns where a reply begins whose turn begins at byte start: after a
// header that the generation prompt lacks, or that holds the name of message i, and
// then after what the generation prompt ends with. It is start for neither, and where
// nothing of that prompt stands after the name.
func (rr *replyRule) afterHeader(doc *rendering, i int32, start, stop int) int {
	if lead := rr.opening.lead; lead != "" && strings.HasPrefix(doc.text[start:stop], lead) {
		return start + len(lead)
	}
	for k := doc.after(start); k < len(doc.fields) && doc.fields[k].start < stop; k++ {
		x := doc.fields[k]
		if x.message != i || x.part.text() {
			break
		}
		if x.part != partName {
			continue
		}
		for _, opened := range []string{rr.opening.prompt, rr.opening.header()} {
			for n := range len(opened) { // the longest end of it first
				if strings.HasPrefix(doc.text[x.end:stop], opened[n:]) {
					return x.end + len(opened) - n
				}
			}
		}
	}
	return start
}

// checkSampled refuses a completion from text that holds a stop token before its end:
// the model would have stopped there.
func (c *completion) checkSampled(m *Model) error {
	for k, id := range c.cols.ids[:max(0, c.cols.len()-1)] {
		if c.cols.flags[k]&rollout.FlagSpecial != 0 && m.IsStop(id) {
			text, _ := m.Tokenizer.Vocab().Token(id)
			return rollout.Errorf(rollout.KindTemplate, rollout.Where{}, "the chat template writes the stop token %q inside the reply, which no model samples there", text).
				WithFix("use the chat template that the engine served, or record the engine's token ids")
		}
	}
	return nil
}
