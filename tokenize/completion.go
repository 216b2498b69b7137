package tokenize

import (
	"regexp"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// frame is how a template surrounds a reply: the text it puts between the
// generation prompt and the message, between the message and the stop marker,
// and the stop marker.
type frame struct {
	lead, tail, stop string
}

// thinkTag matches markers that open or close reasoning in published templates.
var thinkTag = regexp.MustCompile(`(?i)[<\[]/?(seed:)?(think|thinking|thought|reasoning)[>\]]`)

// replyRule derives what the policy sampled from how a template writes an
// assistant message.
type replyRule struct {
	stops    map[string]rollout.TokenID // texts of the stop tokens
	specials []AddedToken
}

// sampledText returns the completion for message m with index i.
//
// prompt is the text the model saw; with is the same conversation with m as its
// last message, rendered without a generation prompt. The reply is what with
// says behind the generation prompt, up to and including the stop marker, save
// for two things the model cannot have sampled: a reasoning block around
// nothing, which templates put before a final message without reasoning, and
// the trimming of content, which is taken as recorded.
func (rr *replyRule) sampledText(m *rollout.Message, i int32, prompt, with *rendering) (rendering, frame) {
	first, last, ok := with.extent(i, partScaffold)
	if !ok {
		first = len(with.text)
	}
	start := behindPrompt(prompt, with, first)
	if !ok {
		// Nothing of the reply is written: it is empty, or was trimmed away.
		stop := rr.stopIn(with.text[start:], m)
		lead, _, _ := strings.Cut(with.text[start:], stop)
		if stop == "" || emptyThink(lead) || strings.TrimSpace(lead) == "" {
			lead = ""
		}
		f := frame{lead: lead, stop: stop}
		if plain(m) {
			return f.wrap(openerTrimmed(prompt.text, m.Content), i), f
		}
		return rendering{text: lead}, f
	}
	start = min(start, first)
	f := frame{lead: with.text[start:first], stop: rr.stopIn(with.text[last:], m)}
	f.tail, _, _ = strings.Cut(with.text[last:], f.stop)
	if f.stop == "" {
		f.tail = strings.TrimRight(with.text[last:], " \t\r\n")
	}
	if m.Reasoning == "" && !hasFields(with, i, partReasoning) {
		f.lead = withoutThink(f.lead, plain(m))
	}
	if plain(m) {
		return f.wrap(openerTrimmed(prompt.text, m.Content), i), f
	}
	out := rendering{text: f.lead}
	add := func(text string, p part) {
		if text == "" {
			return
		}
		out.fields = append(out.fields, field{len(out.text), len(out.text) + len(text), i, p})
		out.text += text
	}
	at := first
	for k := with.after(first - 1); k < len(with.fields) && with.fields[k].start < last; k++ {
		fd := with.fields[k]
		out.text += with.text[at:fd.start]
		add(with.text[fd.start:fd.end], fd.part)
		at = fd.end
	}
	out.text += f.tail
	return out, f
}

// behindPrompt returns where the reply begins in with, whose first byte from the
// reply's message is at first. Where the reply changes how the template writes
// the history, that is behind the generation prompt's text, if the same text
// follows the last message before the reply; else at first.
func behindPrompt(prompt, with *rendering, first int) int {
	if strings.HasPrefix(with.text, prompt.text) {
		return len(prompt.text)
	}
	saw, shown := prompt.lastMessage(len(prompt.text)), with.lastMessage(first)
	if saw.message != shown.message || !strings.HasPrefix(with.text[shown.end:first], prompt.text[saw.end:]) {
		return first
	}
	return shown.end + len(prompt.text) - saw.end
}

// wrap frames a plain reply of message i.
func (f frame) wrap(content string, i int32) rendering {
	r := rendering{text: f.lead + content + f.tail}
	if content != "" {
		r.fields = []field{{len(f.lead), len(f.lead) + len(content), i, partContent}}
	}
	return r
}

// plain reports whether m is text alone, so that its content is the whole reply.
func plain(m *rollout.Message) bool {
	return m.Reasoning == "" && len(m.ToolCalls) == 0 && m.Parts == nil
}

func hasFields(r *rendering, m int32, p part) bool {
	_, _, ok := r.extent(m, p)
	return ok
}

// withoutThink removes the reasoning markers from a lead. Before a plain reply
// all from the first one on goes: a block around nothing, or the opener of text
// that holds its own. Otherwise what follows the block (the opener of a tool
// call) was sampled and stays.
func withoutThink(lead string, plain bool) string {
	tags := thinkTag.FindAllStringIndex(lead, -1)
	if tags == nil {
		return lead
	}
	head := lead[:tags[0][0]]
	if plain {
		return head
	}
	return head + strings.TrimLeft(lead[tags[len(tags)-1][1]:], "\n")
}

func emptyThink(lead string) bool { return thinkTag.MatchString(lead) }

// openerTrimmed removes from content an opener that the generation prompt
// already wrote ("<think>\n").
func openerTrimmed(prompt, content string) string {
	at := strings.LastIndexByte(strings.TrimRight(prompt, "\n"), '<')
	if at < 0 || !thinkTag.MatchString(prompt[at:]) {
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

// stopIn returns the text of the stop marker in the scaffold behind a reply:
// the first stop token, else the first special token. Where the template writes
// none (the next role marker is the stop), the token for the next role is taken.
func (rr *replyRule) stopIn(tail string, m *rollout.Message) string {
	best, at := "", len(tail)
	for text := range rr.stops {
		if i := strings.Index(tail, text); i >= 0 && (i < at || i == at && len(text) > len(best)) {
			best, at = text, i
		}
	}
	if best != "" {
		return best
	}
	for _, a := range rr.specials {
		if !a.Special {
			continue
		}
		if i := strings.Index(tail, a.Content); i >= 0 && (i < at || i == at && len(a.Content) > len(best)) {
			best, at = a.Content, i
		}
	}
	if best != "" {
		return best
	}
	role := "user"
	if len(m.ToolCalls) > 0 {
		role = "observation"
	}
	for text := range rr.stops {
		if text == "<|"+role+"|>" {
			return text
		}
	}
	return ""
}

// partFlags gives scaffold inside a completion the flag of the part it frames,
// so that a policy that leaves reasoning or tool calls out leaves their markers
// out as well.
func partFlags(c *columns) {
	const parts = rollout.FlagContent | rollout.FlagReasoning | rollout.FlagToolCall
	for i := 0; i < len(c.flags); {
		if c.flags[i]&parts != 0 {
			i++
			continue
		}
		end := i
		for end < len(c.flags) && c.flags[end]&parts == 0 {
			end++
		}
		var before, after rollout.Flag
		if i > 0 {
			before = c.flags[i-1] & parts
		}
		if end < len(c.flags) {
			after = c.flags[end] & parts
		}
		frames := before
		switch {
		case before&rollout.FlagReasoning != 0 && after&rollout.FlagToolCall != 0:
			// Both have markers in between: the last one opens the call.
			last := end
			for k := i; k < end; k++ {
				if c.flags[k]&rollout.FlagSpecial != 0 {
					last = k
				}
			}
			for k := last; k < end; k++ {
				c.flags[k] |= rollout.FlagToolCall
			}
			frames, end = rollout.FlagReasoning, last
		case (before|after)&rollout.FlagReasoning != 0:
			frames = rollout.FlagReasoning
		case (before|after)&rollout.FlagToolCall != 0:
			frames = rollout.FlagToolCall
		}
		for ; i < end; i++ {
			c.flags[i] |= frames
		}
	}
}

// locate returns the byte range of a reply in a rendered document, given the
// first and last byte that came from its message.
func (rr *replyRule) locate(m *rollout.Message, doc *rendering, first, last int) (start, end int) {
	start, end = first, last
	if stop := rr.stopIn(upToNext(doc, last), m); stop != "" {
		if at := indexFrom(doc.text, stop, last); at >= 0 {
			end = at + len(stop)
		}
	}
	if lead := rr.leadBefore(doc, first); m.Reasoning != "" || len(m.ToolCalls) > 0 {
		start = first - len(lead)
	}
	return start, end
}

// upToNext is the scaffold behind a reply, through the first marker of what
// follows.
func upToNext(doc *rendering, last int) string {
	end := len(doc.text)
	if i := doc.after(last); i < len(doc.fields) {
		end = doc.fields[i].start
	}
	return doc.text[last:end]
}

func indexFrom(s, sub string, from int) int {
	if i := strings.Index(s[from:], sub); i >= 0 {
		return from + i
	}
	return -1
}

// leadBefore is the opening marker that stands directly before a reply's first
// own byte: an added token that is not special, with the text behind it.
func (rr *replyRule) leadBefore(doc *rendering, first int) string {
	begin := 0
	if i := doc.after(first - 1); i > 0 {
		begin = doc.fields[i-1].end
	}
	gap := doc.text[begin:first]
	best := ""
	for _, a := range rr.specials {
		if a.Special {
			continue
		}
		if at := strings.LastIndex(gap, a.Content); at >= 0 && len(gap)-at > len(best) {
			best = gap[at:]
		}
	}
	return best
}
