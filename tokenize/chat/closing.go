package chat

// Where a turn ends.

import (
	"sort"
	"strings"
	"unicode"
)

// closed is a kind of message with the text of the template after it.
type closed struct {
	kind [2]bool
	rest string
}

// foreign returns where the first recorded text after byte at begins that is
// neither of message i nor a role, or the end of the text.
func (f *turnFinder) foreign(i, at int) int {
	runs := f.r.runs
	for k := sort.Search(len(runs), func(k int) bool { return int(runs[k].At+runs[k].N) > at }); k < len(runs); k++ {
		if f.c.at(runs[k].F.Message) != i && !header(runs[k].F) {
			return max(int(runs[k].At), at)
		}
	}
	return len(f.r.Text)
}

// kind is what the end of message i mostly depends on: whether it has tool calls, and
// whether a tool answers.
func (f *turnFinder) kind(i int) [2]bool {
	return [2]bool{f.c.has(i, "tool_calls"), i+1 < f.c.Len() && f.c.Role(i+1) == "tool"}
}

// closing is what the template writes after the last data of message i where
// the conversation ends with it; for the first message of its kind.
func (f *turnFinder) closing(i int) string {
	key := f.kind(i)
	if c, ok := f.closings[key]; ok {
		return c
	}
	c := ""
	for k := range i + 1 {
		if f.c.Role(k) == "assistant" && f.kind(k) == key && f.data(k).first >= 0 {
			f.glance(k+1, false, func(r *Result) { c = f.closingOf(k, 0, r) })
			break
		}
	}
	f.closings[key] = c
	return c
}

// closingBefore is what it writes there for message i itself, with rest after its last
// byte here; for messages without tool calls, for the first of its kind with the same rest.
func (f *turnFinder) closingBefore(i, last int, rest string) (c string) {
	key := closed{f.kind(i), rest}
	if c, ok := f.before[key]; ok {
		return c
	}
	f.glance(i+1, false, func(r *Result) { c = f.closingOf(i, last, r) })
	if !key.kind[0] { // calls can end in what is no data
		key.rest = strings.Clone(rest) // the text may be written over
		f.before[key] = c
	}
	return c
}

// closingOf is what the template writes after the last data of message i in r, which
// ends with it, in the pass of the message if it writes anything there. For a message
// without text it is what follows byte empty, if r is the same up to there.
func (f *turnFinder) closingOf(i, empty int, r *Result) string {
	g := newTurnFinder(f.ctx, f.t, f.c.Prefix(i+1), f.in, r, TurnOptions{}, i)
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

// firstStop returns where the first stop marker in text begins, and its length; −1 if
// there is none.
func (f *turnFinder) firstStop(text string) (at, n int) {
	at = -1
	for _, s := range f.opts.Stops {
		if j := strings.Index(text, s); s != "" && j >= 0 && (at < 0 || j < at || j == at && len(s) > n) {
			at, n = j, len(s)
		}
	}
	return at, n
}

// stopBefore returns where the first stop marker after start begins that the template
// wrote itself, or last if there is none before it: what a template writes of a
// message after that (content after results) was not sampled there.
func (f *turnFinder) stopBefore(start, last int) int {
	runs := f.r.runs
	for k := sort.Search(len(runs), func(k int) bool { return int(runs[k].At+runs[k].N) > start }); start < last && k < len(runs); k++ {
		if at := int(runs[k].At); start < at {
			if j, _ := f.firstStop(f.r.Text[start:min(at, last)]); j >= 0 {
				return start + j
			}
		}
		start = int(runs[k].At + runs[k].N)
	}
	return last
}

// end finds the stop marker after last.
func (f *turnFinder) end(i, last, hi int, looped bool, e Extent) (stop, end int) {
	rest := f.r.Text[last:hi]
	if at, n := f.firstStop(rest); at >= 0 {
		return last + at, last + at + n
	}
	closing := f.closing(i)
	if c := strings.TrimRightFunc(closing, unicode.IsSpace); c == "" || !strings.HasPrefix(rest, c) {
		closing = f.closingBefore(i, last, rest)
	}
	common := commonText(closing, rest)
	if n := len(strings.TrimRightFunc(rest[:common], unicode.IsSpace)); n > 0 {
		return last + n, last + n
	}
	if looped && e.End >= last && e.End < hi {
		hi = e.End
	}
	end = last + len(strings.TrimRightFunc(f.r.Text[last:hi], unicode.IsSpace))
	return end, end
}

// commonText is the length of the common beginning of two texts; where the first
// goes on, it does not end inside a marker.
func commonText(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) || n == len(b) {
		return n
	}
	if i := strings.LastIndexAny(a[:n], "<["); i >= 0 && !strings.ContainsAny(a[i:n], markerEnds) {
		return i
	}
	return n
}
