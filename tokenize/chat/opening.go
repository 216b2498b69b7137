package chat

// Where a turn begins.

import (
	"slices"
	"strings"
	"unicode"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// opening is what follows the last data of a prefix that is rendered with the
// generation prompt; prompt is the generation prompt alone, a suffix of it.
type opening struct {
	tail, prompt string

	of []value.Value // the messages of the conversation
	n  int           // that it was found with the first of; -1 for all of them
}

// asked is the end of the conversation up to message i with the generation prompt, or
// with as much of it as a reply may have after it (see cuts), if the text begins like
// that. It may lie inside the message, whose content holds what the prompt ends in (a
// reasoning opener).
func (f *turnFinder) asked(i, lo, limit int, prompt string, written bool) (start int, ok bool) {
	if i == 0 || !written {
		return 0, false
	}
	f.glance(i, true, func(with *Result) {
		ends := []int{len(with.Text)}
		if strings.HasSuffix(with.Text, prompt) {
			for _, p := range cuts(prompt) {
				ends = append(ends, len(with.Text)-len(prompt)+len(p))
			}
		}
		for _, n := range ends {
			if lo <= n && n <= limit && strings.HasPrefix(f.r.Text, with.Text[:n]) {
				start, ok = n, true
				return
			}
		}
	})
	return start, ok
}

// emptyBefore is the end of the turn before message i if that has no text, so
// that its header is not taken for the one of message i; else 0.
func (f *turnFinder) emptyBefore(i int) int {
	if i == 0 || f.c.Role(i-1) != "assistant" || f.data(i-1).first >= 0 {
		return 0
	}
	turn, _ := f.turn(i-1, f.emptyBefore(i-1))
	return turn.End
}

// start finds the end of the generation prompt between lo and limit.
func (f *turnFinder) start(lo, limit int, o opening, data bool) (int, bool) {
	text := f.r.Text
	between := text[lo:limit]
	if strings.HasPrefix(between, o.tail) && (o.tail != "" || data) {
		return lo + len(o.tail), true
	}
	for _, p := range cuts(o.prompt) {
		if strings.HasPrefix(between, strings.TrimSuffix(o.tail, o.prompt)+p) {
			return lo + len(o.tail) - len(o.prompt) + len(p), true
		}
	}
	for _, p := range cuts(o.prompt) {
		if bare := strings.TrimLeftFunc(p, unicode.IsSpace); bare != "" {
			p = bare // a history may have other white space between messages
		}
		j := strings.LastIndex(between, p)
		if !data {
			j = strings.Index(between, p)
		}
		if j >= 0 {
			return lo + j + len(p), true
		}
	}
	// What follows the last marker of the prompt (a first line of reasoning) may be
	// missing here. A template may also write its prompt unasked.
	before := 0
	if o.prompt != "" {
		before = len(o.tail) - len(o.prompt)
	}
	if n := commonText(o.tail, between); data && n > before && strings.ContainsAny(o.tail[before:n], markerEnds) {
		return lo + n, true
	}
	return 0, false
}

// markerEnds are the characters that end a marker (<think>, [THINK]).
const markerEnds = ">]"

// cuts returns the prompt and its beginnings that end before a marker
// (<think>, [THINK]) or a line of text after the last one, longest first; a
// beginning is not just white space.
func cuts(prompt string) []string {
	if prompt == "" {
		return nil
	}
	out := []string{prompt}
	marked := false
	for i := len(prompt) - 1; i > 0; i-- {
		marker := prompt[i] == '<' || prompt[i] == '['
		marked = marked || marker
		if (marker || !marked && prompt[i-1] == '\n') && strings.TrimSpace(prompt[:i]) != "" {
			out = append(out, prompt[:i])
		}
	}
	if trimmed := strings.TrimRightFunc(prompt, unicode.IsSpace); trimmed != prompt && trimmed != "" {
		out = append(out, trimmed)
	}
	return out
}

// opening renders the conversation up to the first assistant message with the
// same kind of message before it, or, where the template refuses that, all
// of it.
func (f *turnFinder) opening(tool bool, i int) opening {
	items := f.c.messages.Items
	o, ok := f.openings[tool]
	if ok && sameStart(o.of, items) {
		return o
	}
	n := i
	for k := 1; k < i; k++ {
		if f.c.Role(k) == "assistant" && (f.c.Role(k-1) == "tool") == tool {
			n = k
			break
		}
	}
	if !ok || n != o.n || !slices.Equal(o.of[:n], items[:n]) {
		if o = (opening{}); n > 0 {
			o = f.ask(n)
		}
		o.n = n
		if o.tail == "" && !tool {
			o = f.ask(f.c.Len())
			o.tail, o.n = o.prompt, -1
		}
	}
	o.of = items
	f.openings[tool] = o
	return o
}

// ask renders the first n messages with and without the generation prompt.
func (f *turnFinder) ask(n int) (o opening) {
	f.glance(n, true, func(with *Result) {
		o.tail = strings.Clone(tail(with))
		f.glance(n, false, func(without *Result) {
			o.prompt = strings.Clone(with.Text[commonText(with.Text, without.Text):])
			if k := len(with.Extents) - 1; o.prompt == "" && k >= 0 && with.Extents[k].Message == n-1 {
				if unasked := with.Text[with.Extents[k].End:]; strings.TrimSpace(unasked) != "" {
					o.prompt = strings.Clone(unasked)
				}
			}
			if !strings.HasSuffix(o.tail, o.prompt) {
				o.prompt = o.tail
			}
		})
	})
	return o
}

// glance renders the first n messages, if the template does, for a look at the result.
func (f *turnFinder) glance(n int, prompt bool, look func(*Result)) {
	in := f.in
	in.ContinueFinalMessage, in.AddGenerationPrompt = false, prompt
	_ = f.t.glance(f.ctx, f.c.Prefix(n), in, look)
}

// tail is what follows the last data.
func tail(r *Result) string {
	for k := len(r.runs) - 1; k >= 0; k-- {
		if run := r.runs[k]; !header(run.F) {
			return r.Text[run.At+run.N:]
		}
	}
	return r.Text
}
