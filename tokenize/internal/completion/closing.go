package completion

// The end of a reply.

import (
	"strings"
	"unicode"

	"github.com/turnpack/turnpack/tokenize/chat"
)

// closed is a kind of message with the template's text after it.
type closed struct {
	kind [2]bool
	rest string
}

// foreign returns the beginning of the first recorded text after byte at that is neither of message
// i nor a role, or the end of the text.
func (f *turnFinder) foreign(i, at int) int {
	for k := f.runAfter(at); k < f.runs.Len(); k++ {
		if field, start, _ := f.runs.At(k); f.c.Place(int(field.Message)) != i && !ofHeader(field) {
			return max(start, at)
		}
	}
	return len(f.r.Text)
}

// kind returns what the end of message i mostly depends on: whether it has tool calls, and whether
// a tool answers.
func (f *turnFinder) kind(i int) [2]bool {
	return [2]bool{f.c.Has(i, "tool_calls"), f.c.Role(i+1) == "tool"}
}

// closing returns what the template writes after the last data of a final message of i's kind,
// taken from the first such message.
func (f *turnFinder) closing(i int) string {
	key := f.kind(i)
	if c, ok := f.closings[key]; ok {
		return c
	}
	c := ""
	for k := range i + 1 {
		if f.c.Role(k) == "assistant" && f.kind(k) == key && f.data(k).first >= 0 {
			f.tryRender(k+1, false, func(r *chat.Result) { c = f.closingOf(k, 0, r) })
			break
		}
	}
	f.closings[key] = c
	return c
}

// closingBefore returns the same for message i itself, which is followed here by rest; for messages
// without tool calls, for the first of its kind with the same rest.
func (f *turnFinder) closingBefore(i, last int, rest string) (c string) {
	key := closed{f.kind(i), rest}
	if c, ok := f.before[key]; ok {
		return c
	}
	f.tryRender(i+1, false, func(r *chat.Result) { c = f.closingOf(i, last, r) })
	if !key.kind[0] { // calls can end in text that is not data
		key.rest = strings.Clone(rest) // the text's memory is reused
		f.before[key] = c
	}
	return c
}

// closingOf returns what the template writes after the last data of message i in r, which ends with
// that message; only text of the message's loop pass, if there is any. For a message without text
// it is the text after byte empty, if r is the same up to there.
func (f *turnFinder) closingOf(i, empty int, r *chat.Result) string {
	g := newTurnFinder(f.ctx, f.t, f.c.Prefix(i+1), f.in, r, nil, i, &turnMemory{history: true})
	last, e := g.data(i).last, g.extents[0]
	if g.data(i).first < 0 {
		if !strings.HasPrefix(r.Text, f.r.Text[:empty]) {
			return ""
		}
		last = empty
	}
	end := g.foreign(i, last)
	if e.Message >= 0 && e.End > last && e.End < end && strings.TrimSpace(r.Text[last:e.End]) != "" {
		end = e.End
	}
	return strings.Clone(r.Text[last:end])
}

// stopBefore returns where the first stop marker after start begins that the template wrote itself,
// or last if there is none before it: text of the message after that (content after results) was
// not sampled there.
func (f *turnFinder) stopBefore(start, last int) int {
	for k := f.runAfter(start); start < last && k < f.runs.Len(); k++ {
		_, at, end := f.runs.At(k)
		if start < at {
			if stop, j := FirstOf(f.stops, f.r.Text[start:min(at, last)]); stop != "" {
				return start + j
			}
		}
		start = end
	}
	return last
}

// completionEnd finds the stop marker after byte last.
func (f *turnFinder) completionEnd(i, last, hi int, looped bool, e chat.Extent) (stop, end int) {
	rest := f.r.Text[last:hi]
	if text, at := FirstOf(f.stops, rest); text != "" {
		return last + at, last + at + len(text)
	}
	closing := f.closing(i)
	if c := strings.TrimRightFunc(closing, unicode.IsSpace); c == "" || !strings.HasPrefix(rest, c) {
		closing = f.closingBefore(i, last, rest)
	}
	common := commonMarkers(closing, rest)
	if n := len(strings.TrimRightFunc(rest[:common], unicode.IsSpace)); n > 0 {
		return last + n, last + n
	}
	if looped && e.End >= last && e.End < hi {
		hi = e.End
	}
	end = last + len(strings.TrimRightFunc(f.r.Text[last:hi], unicode.IsSpace))
	return end, end
}

// FirstOf returns which of texts comes first in s, and where, the longest of those at one place; ""
// if none does.
func FirstOf(texts []string, s string) (first string, at int) {
	at = len(s)
	for _, t := range texts {
		if i := strings.Index(s, t); t != "" && i >= 0 && (i < at || i == at && len(t) > len(first)) {
			first, at = t, i
		}
	}
	return first, at
}
