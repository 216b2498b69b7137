package completion

import (
	"regexp"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Frame is the template's text around a reply: between the generation prompt and the message,
// between the message and the stop marker, and the stop marker.
type Frame struct {
	lead, Tail render.Rendering
	Stop       string
	follows    bool   // the reply is right after the end of its prompt
	guessed    bool   // the template opens the reply otherwise than its prompt
	quotes     string // recorded text of others between prompt and reply
}

// Recorded reports whether some of the frame is recorded text (a name, another message), so that
// the frame is valid for one reply only.
func (f *Frame) Recorded() bool { return len(f.lead.Fields)+len(f.Tail.Fields) > 0 }

// ThinkTag matches markers that open or close reasoning in published templates: <think>, [THINK],
// and those with a word of the family, such as <seed:think> or <think:opensource>.
var ThinkTag = regexp.MustCompile(`(?i)[<\[]/?([a-z]{1,8}:)?(think|thinking|thought|reasoning)(:[a-z]{1,16})?[>\]]`)

// longestTag is more than the bytes of any marker of reasoning; the word before the colon is at
// most a third of it.
const longestTag = 96

// thinkTags returns the matches of ThinkTag in text. The expression runs only if a tag can begin in
// text, which is rare.
func thinkTags(text string) [][]int {
	for i := range len(text) {
		if beginsTag(text[i:]) {
			return ThinkTag.FindAllStringIndex(text, -1)
		}
	}
	return nil
}

// beginsTag reports whether text may begin with a marker of reasoning.
func beginsTag(text string) bool {
	if text == "" || text[0] != '<' && text[0] != '[' {
		return false
	}
	name := strings.TrimPrefix(text[1:], "/")
	if _, rest, ok := strings.Cut(name[:min(len(name), longestTag/3)], ":"); ok && strings.IndexByte("tTrR", name[0]) < 0 {
		name = rest
	}
	return name != "" && strings.IndexByte("tTrR", name[0]) >= 0
}

// LeavesReasoningOpen reports whether a reply does not close the reasoning that the end of its
// prompt opens.
func LeavesReasoningOpen(prompt, reply string) bool {
	closing := func(text string) func([]int) bool {
		return func(at []int) bool { return text[at[0]+1] == '/' }
	}
	tags := thinkTags(prompt)
	return len(tags) > 0 && !closing(prompt)(tags[len(tags)-1]) && !slices.ContainsFunc(thinkTags(reply), closing(reply))
}

// SampledText returns the completion for message m with index i, and its frame.
//
// prompt is the text the model saw; with is the same conversation with m as its last message,
// rendered without a generation prompt; turn is the reply found in it, nil if none was found. The
// completion is the text of with after the generation prompt, up to and including the stop marker,
// except for what the model cannot have sampled: an empty reasoning block, which templates put
// before a message without reasoning; trimmed content, which is taken as recorded; and text after a
// reply whose end (a tool call, mostly) the template does not write.
func (rr *Rule) SampledText(m *rollout.Message, i int32, prompt, with *render.Rendering, turn *Span, cut bool) (render.Rendering, Frame) {
	start, first, last, ok := rr.begin(prompt, with, turn, i)
	if !ok && !PlainText(m) {
		return render.Rendering{}, Frame{follows: true}
	}
	goesOn, quotes := follows(prompt, with, start), with.Quoted(i, len(prompt.Text), start)
	if !ok {
		// The reply is not written: it is empty, or was trimmed away.
		after := with.Text[start:with.Foreign(i, start)]
		_, stop := rr.endIn(after, m)
		lead, _, _ := strings.Cut(after, stop)
		if stop == "" || ThinkTag.MatchString(lead) || strings.TrimSpace(lead) == "" {
			lead = ""
		}
		f := Frame{lead: with.Cut(start, start+len(lead)), Stop: stop, follows: goesOn, quotes: quotes}
		return f.Wrap(OpenerTrimmed(prompt.Text, m.Content), i), f
	}
	after := with.Text[last:with.Foreign(i, last)]
	f := Frame{lead: with.Cut(start, first), follows: goesOn, guessed: turn != nil && turn.Guessed, quotes: quotes}
	tail, stop := rr.endIn(after, m)
	f.Stop = stop
	written := render.CommonText(after, tail)
	f.Tail = with.Cut(last, last+written)
	f.Tail.Text += tail[written:]
	if !hasFields(with, i, render.PartReasoning, start) {
		head, rest, made := emptyReasoning(f.lead.Text)
		// The opener of text that has its own.
		opener := ThinkTag.FindStringIndex(f.lead.Text)
		switch {
		case made:
			f.lead = with.Cut(start, start+len(head))
			if !PlainText(m) {
				f.lead.Take(with, first-len(rest), first)
			}
		case PlainText(m) && opener != nil:
			f.lead = with.Cut(start, start+opener[0])
		}
	}
	if PlainText(m) {
		return f.Wrap(OpenerTrimmed(prompt.Text, m.Content), i), f
	}
	if !ended(m, func(p render.Part) bool { return hasFields(with, i, p, start) }, cut) {
		f.Tail, f.Stop = render.Rendering{}, ""
	}
	out := f.lead
	out.Take(with, first, last)
	out.Take(&f.Tail, 0, len(f.Tail.Text))
	return out, f
}

// begin returns where the reply of message i, the last of with, begins: after the prompt, if with
// continues it, and after the header that some templates write before a reply to a tool result but
// not in the prompt. It also returns the range of the message's text from there on, if it has any.
// The message may be quoted before, and its content may begin with text that the prompt already
// wrote.
func (rr *Rule) begin(prompt, with *render.Rendering, turn *Span, i int32) (start, first, last int, written bool) {
	found := strings.HasPrefix(with.Text, prompt.Text)
	if found {
		start = len(prompt.Text)
	}
	if turn != nil && (!found || turn.Start > start) {
		start, found = turn.Start, true
	}
	first, last, written = with.Extent(i, render.PartScaffold, start)
	switch {
	case !found && written:
		start = first
	case !found:
		start = len(with.Text)
	}
	return start, first, last, written
}

// ended reports whether what the template writes after reply m also ends it, given the parts it
// wrote: not if the template left the last part out, or a limit truncated the reply. A tool call
// that was parsed from a reply was complete.
func ended(m *rollout.Message, wrote func(render.Part) bool, cut bool) bool {
	switch {
	case len(m.ToolCalls) > 0:
		return wrote(render.PartToolCall)
	case cut:
		return false
	case m.Reasoning != "" && strings.TrimSpace(m.Content) == "" && wrote(render.PartReasoning):
		return true
	default:
		return wrote(render.PartContent)
	}
}

// Wrap puts the frame around a plain reply of message i.
func (f Frame) Wrap(content string, i int32) render.Rendering {
	at := len(f.lead.Text)
	r := render.Rendering{Text: f.lead.Text + content + f.Tail.Text, Fields: slices.Clip(f.lead.Fields)}
	if content != "" {
		r.Fields = append(r.Fields, render.Field{Start: at, End: at + len(content), Message: i, Part: render.PartContent})
	}
	return r.WithFields(f.Tail.Fields, at+len(content))
}

// PlainText reports whether m is text only, in parts or not, so that its content is the whole
// reply.
func PlainText(m *rollout.Message) bool { return m.Reasoning == "" && len(m.ToolCalls) == 0 }

func hasFields(r *render.Rendering, m int32, p render.Part, from int) bool {
	_, _, ok := r.Extent(m, p, from)
	return ok
}

// emptyReasoning finds an empty reasoning block in a lead, which the template made up, and returns
// the text before and after it. Its opener may be in the generation prompt.
func emptyReasoning(lead string) (head, rest string, ok bool) {
	tags := ThinkTag.FindAllStringIndex(lead, -1)
	if tags == nil {
		return "", "", false
	}
	begin, end := tags[0], tags[len(tags)-1]
	if lead[end[0]+1] != '/' {
		return "", "", false
	}
	if lead[begin[0]+1] != '/' {
		head = lead[:begin[0]]
	}
	return head, strings.TrimLeft(lead[end[1]:], "\n"), true
}

// OpenerTrimmed removes from content an opener that the generation prompt already wrote
// ("<think>\n").
func OpenerTrimmed(prompt, content string) string {
	at := strings.LastIndexByte(strings.TrimRight(prompt, "\n"), '<')
	if at < 0 || len(thinkTags(prompt[at:])) == 0 {
		return content
	}
	opener := prompt[at:]
	if rest, ok := strings.CutPrefix(content, opener); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(content, strings.TrimRight(opener, "\n")); ok {
		return rest
	}
	return content
}

// StopIn returns the text of the stop marker after a reply, which is the first stop token in tail,
// the template's text before any recorded text of others. If there is none, it is the marker of the
// next role, if that is a stop; else "".
func (rr *Rule) StopIn(tail string, m *rollout.Message) string {
	e := rr.Ends()
	best, _ := FirstOf(e.texts, tail)
	if next := nextRole(m); best == "" {
		if _, ok := e.Stops[next]; ok {
			return next
		}
	}
	return best
}

// blanks are what templates write between a reply and its end.
const blanks = " \t\r\n"

// endIn returns the stop marker after reply m and the text before it in after, which the template
// writes there. If the template writes no marker because the conversation ends, it is the marker of
// a conversation that continues.
func (rr *Rule) endIn(after string, m *rollout.Message) (tail, stop string) {
	if stop = rr.StopIn(after, m); stop != "" {
		tail, _, _ = strings.Cut(after, stop)
		return tail, stop
	}
	later := rr.Ends().later[kindOf(m)]
	return strings.TrimRight(after, blanks) + later.tail, later.stop
}

// SpanIn returns the byte range of a turn's reply in a rendered document, by the same rule as
// SampledText, but as the document writes it: content may be trimmed, and reasoning left out.
func (rr *Rule) SpanIn(m *rollout.Message, i int32, doc *render.Rendering, turn Span, cut bool) (start, end int) {
	start, end = rr.afterHeader(doc, i, turn.Start, turn.Stop), turn.End
	first, last := -1, start
	var written render.Parts
	for k := doc.FieldAfter(start); k < len(doc.Fields) && doc.Fields[k].Start < turn.Stop; k++ {
		if f := doc.Fields[k]; f.Message == i && f.Part.Text() {
			if first < 0 {
				first = max(f.Start, start)
			}
			last = f.End
			written.Add(f.Part)
		}
	}
	if first < 0 {
		if !PlainText(m) || strings.TrimSpace(m.Content) != "" || cut {
			return start, start
		}
		first, last = turn.Stop, turn.Stop
		written.Add(render.PartContent)
	}
	if !written.Has(render.PartReasoning) {
		if head, rest, ok := emptyReasoning(doc.Text[start:first]); ok {
			start = first - len(rest)
			if strings.HasSuffix(doc.Text[turn.Start:start], head) {
				start -= len(head)
			}
		}
	}
	switch {
	case !ended(m, written.Has, cut):
		end = last
	case cut:
		end = turn.Stop
	}
	return start, end
}
