package tokenize

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// frame is how a template surrounds a reply: the text it puts between the
// generation prompt and the message, between the message and the stop marker,
// and the stop marker.
type frame struct {
	lead, tail rendering
	stop       string
	follows    bool   // the reply stands right after what its prompt ends with
	quotes     string // recorded text of others between that and the reply
}

// recorded reports whether some of the frame is recorded text (a name, another
// message), so that it holds for one reply only.
func (f *frame) recorded() bool { return len(f.lead.fields)+len(f.tail.fields) > 0 }

// thinkTag matches markers that open or close reasoning in published templates.
var thinkTag = regexp.MustCompile(`(?i)[<\[]/?(seed:)?(think|thinking|thought|reasoning)[>\]]`)

// replyRule derives what the policy sampled from how a template writes an
// assistant message.
type replyRule struct {
	stops    map[string]rollout.TokenID // texts of the stop tokens
	specials []AddedToken
	opening  opening
}

// sampledText returns the completion for message m with index i.
//
// prompt is the text the model saw; with is the same conversation with m as its
// last message, rendered without a generation prompt. The reply is what with
// says after the generation prompt, up to and including the stop marker, save
// for what the model cannot have sampled: a reasoning block around nothing,
// which templates put before a message without reasoning; the trimming of
// content, which is taken as recorded; and what stands after a reply whose
// end (a tool call, mostly) the template does not write.
func (rr *replyRule) sampledText(m *rollout.Message, i int32, prompt, with *rendering, cut bool) (rendering, frame) {
	start, first, last, ok := rr.begin(prompt, with, i)
	if !ok && !plain(m) {
		return rendering{}, frame{follows: true}
	}
	goesOn, quotes := follows(prompt, with, start), with.quoted(i, len(prompt.text), start)
	if !ok {
		// Nothing of the reply is written: it is empty, or was trimmed away.
		behind := with.text[start:with.foreign(i, start)]
		stop := rr.stopIn(behind, m)
		lead, _, _ := strings.Cut(behind, stop)
		if stop == "" || emptyThink(lead) || strings.TrimSpace(lead) == "" {
			lead = ""
		}
		f := frame{lead: with.cut(start, start+len(lead)), stop: stop, follows: goesOn, quotes: quotes}
		return f.wrap(openerTrimmed(prompt.text, m.Content), i), f
	}
	behind := with.text[last:with.foreign(i, last)]
	f := frame{lead: with.cut(start, first), stop: rr.stopIn(behind, m), follows: goesOn, quotes: quotes}
	tail, _, _ := strings.Cut(behind, f.stop)
	if f.stop == "" {
		tail = strings.TrimRight(behind, " \t\r\n")
	}
	f.tail = with.cut(last, last+len(tail))
	if !hasFields(with, i, partReasoning, start) {
		head, rest, made := madeUp(f.lead.text)
		// The opener of text that holds its own.
		opener := thinkTag.FindStringIndex(f.lead.text)
		switch {
		case made:
			f.lead = with.cut(start, start+len(head))
			if !plain(m) {
				f.lead.take(with, first-len(rest), first)
			}
		case plain(m) && opener != nil:
			f.lead = with.cut(start, start+opener[0])
		}
	}
	if plain(m) {
		return f.wrap(openerTrimmed(prompt.text, m.Content), i), f
	}
	if !ended(m, func(p part) bool { return hasFields(with, i, p, start) }, cut) {
		f.tail, f.stop = rendering{}, ""
	}
	out := f.lead
	out.take(with, first, last)
	out.take(&f.tail, 0, len(f.tail.text))
	return out, f
}

// begin returns where the reply of message i that ends with begins: after the
// prompt, where with goes on from it, and after the header that some templates
// write before a reply to a tool result but not in the prompt; and the range
// of the message's text from there on, if it has any. Before it the message
// may be quoted, and its content may begin with what the prompt wrote already.
func (rr *replyRule) begin(prompt, with *rendering, i int32) (start, first, last int, written bool) {
	found := strings.HasPrefix(with.text, prompt.text)
	if found {
		start = len(prompt.text)
	}
	for _, t := range with.turns {
		if !found || t.Start > start {
			start, found = t.Start, true
		}
	}
	first, last, written = with.extent(i, partScaffold, start)
	if written {
		start += rr.alsoIn(prompt, with, start, first)
	}
	switch {
	case !found && written:
		start = first
	case !found:
		start = len(with.text)
	}
	return start, first, last, written
}

// alsoIn is how many bytes with writes before the reply, from start on, that the
// prompt holds at the same place, up to the first token there: what ends the message
// before, as some templates write it only with the next one.
func (rr *replyRule) alsoIn(prompt, with *rendering, start, first int) (n int) {
	if first <= start || start >= len(prompt.text) || prompt.text[:start] != with.text[:start] {
		return 0
	}
	lead, there := with.text[start:first], prompt.text[start:]
	for n < len(lead) && n < len(there) && lead[n] == there[n] {
		n++
	}
	for n > 0 && n < len(lead) && !utf8.RuneStart(lead[n]) {
		n--
	}
	if at := thinkTag.FindStringIndex(lead); at != nil {
		n = min(n, at[0])
	}
	for k := 0; n > 0 && k < len(rr.specials); k++ {
		for _, text := range []string{lead, there} {
			if at := strings.Index(text, rr.specials[k].Content); at >= 0 {
				n = min(n, at)
			}
		}
	}
	return n
}

// ended reports whether what the template writes after reply m ends it too, given
// which parts it wrote: not so where it left the last one out, or a limit cut it. A
// tool call that was read from a reply was complete.
func ended(m *rollout.Message, wrote func(part) bool, cut bool) bool {
	switch {
	case len(m.ToolCalls) > 0:
		return wrote(partToolCall)
	case cut:
		return false
	case m.Reasoning != "" && strings.TrimSpace(m.Content) == "" && wrote(partReasoning):
		return true
	default:
		return wrote(partContent)
	}
}

// wrap frames a plain reply of message i.
func (f frame) wrap(content string, i int32) rendering {
	at := len(f.lead.text)
	r := rendering{text: f.lead.text + content + f.tail.text, fields: slices.Clip(f.lead.fields)}
	if content != "" {
		r.fields = append(r.fields, field{start: at, end: at + len(content), message: i, part: partContent})
	}
	return r.with(f.tail.fields, at+len(content))
}

// plain reports whether m is text alone, in parts or not, so that its content is the
// whole reply.
func plain(m *rollout.Message) bool { return m.Reasoning == "" && len(m.ToolCalls) == 0 }

func hasFields(r *rendering, m int32, p part, from int) bool {
	_, _, ok := r.extent(m, p, from)
	return ok
}

// madeUp finds a reasoning block around nothing in a lead, which the template
// made up, and returns what stands before and after it. Its opener may be part
// of the generation prompt.
func madeUp(lead string) (head, rest string, ok bool) {
	tags := thinkTag.FindAllStringIndex(lead, -1)
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

// stopIn returns the text of the stop marker after a reply, in what the template writes
// there before any recorded text of others: the first stop token. Where the template
// writes none, the token for the next role is taken if it is a stop. "" is for none.
func (rr *replyRule) stopIn(tail string, m *rollout.Message) string {
	best, at := "", len(tail)
	for text := range rr.stops {
		if i := strings.Index(tail, text); i >= 0 && (i < at || i == at && len(text) > len(best)) {
			best, at = text, i
		}
	}
	if next := nextRole(m); best == "" {
		if _, ok := rr.stops[next]; ok {
			return next
		}
	}
	return best
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

// span returns the byte range of turn's reply in a rendered document, by the
// same rule as sampledText, but as the document writes it: content may be
// trimmed, and reasoning left out.
func (rr *replyRule) span(m *rollout.Message, doc *rendering, turn chat.Turn, cut bool) (start, end int) {
	i := int32(turn.Message)
	start, end = rr.afterHeader(doc, i, turn.Start, turn.Stop), turn.End
	first, last := -1, start
	var written parts
	for k := doc.after(start); k < len(doc.fields) && doc.fields[k].start < turn.Stop; k++ {
		if f := doc.fields[k]; f.message == i && f.part.text() {
			if first < 0 {
				first = max(f.start, start)
			}
			last = f.end
			written.add(f.part)
		}
	}
	if first < 0 {
		if !plain(m) || strings.TrimSpace(m.Content) != "" || cut {
			return start, start
		}
		first, last = turn.Stop, turn.Stop
		written.add(partContent)
	}
	if !written.has(partReasoning) {
		if head, rest, ok := madeUp(doc.text[start:first]); ok {
			start = first - len(rest)
			if strings.HasSuffix(doc.text[turn.Start:start], head) {
				start -= len(head)
			}
		}
	}
	switch {
	case !ended(m, written.has, cut):
		end = last
	case cut:
		end = turn.Stop
	}
	return start, end
}
