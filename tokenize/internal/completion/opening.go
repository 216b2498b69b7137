package completion

import (
	"strings"
	"unicode"

	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// The beginning of a reply.

// opened is what follows the last data when the beginning of a conversation is rendered with the
// generation prompt (tail), and the generation prompt alone (prompt), with which tail ends.
type opened struct {
	tail, prompt string

	of *chat.Conversation
	n  int // number of messages rendered; -1 = all
}

// afterPrompt returns the end of the conversation up to message i with the generation prompt, or
// with as much of it as a reply may have after it (see promptBeginnings), if the text begins like
// that. The end may be inside the message, if its content begins with the end of the prompt (a
// reasoning opener).
func (f *turnFinder) afterPrompt(i, lo, limit int, prompt string, written bool) (start int, ok bool) {
	if i == 0 || !written {
		return 0, false
	}
	look := func(with string) {
		ends := []int{len(with)}
		if strings.HasSuffix(with, prompt) {
			for _, p := range promptBeginnings(prompt) {
				ends = append(ends, len(with)-len(prompt)+len(p))
			}
		}
		for _, n := range ends {
			if lo <= n && n <= limit && strings.HasPrefix(f.r.Text, with[:n]) {
				start, ok = n, true
				return
			}
		}
	}
	f.tryRender(i, true, func(with *chat.Result) { look(with.Text) })
	return start, ok
}

// emptyBefore returns the end of the turn before message i if that turn has no text, so that its
// header is not taken for that of message i; else 0.
func (f *turnFinder) emptyBefore(i int) int {
	if f.c.Role(i-1) != "assistant" || f.data(i-1).first >= 0 {
		return 0
	}
	turn, _ := f.turn(i-1, f.emptyBefore(i-1))
	return turn.End
}

// completionStart returns where the sampled text begins, between lo and limit: after the generation
// prompt. It is a guess if only a part of the prompt is there that is no beginning of it.
func (f *turnFinder) completionStart(lo, limit int, o opened, data bool) (start int, ok, guessed bool) {
	text := f.r.Text
	between := text[lo:limit]
	if strings.HasPrefix(between, o.tail) && (o.tail != "" || data) {
		return lo + len(o.tail), true, false
	}
	beginnings := promptBeginnings(o.prompt)
	for _, p := range beginnings {
		if strings.HasPrefix(between, strings.TrimSuffix(o.tail, o.prompt)+p) {
			return lo + len(o.tail) - len(o.prompt) + len(p), true, false
		}
	}
	for _, p := range beginnings {
		if bare := strings.TrimLeftFunc(p, unicode.IsSpace); bare != "" {
			p = bare // history may have other white space between messages
		}
		j := strings.LastIndex(between, p)
		if !data {
			j = strings.Index(between, p)
		}
		if j >= 0 {
			return lo + j + len(p), true, false
		}
	}
	// The text after the prompt's last marker (a first line of reasoning) may be missing here. A
	// template may also write its prompt without being asked to.
	before := 0
	if o.prompt != "" {
		before = len(o.tail) - len(o.prompt)
	}
	if n := commonMarkers(o.tail, between); data && n > before && strings.ContainsAny(o.tail[before:n], markerEnds) {
		return lo + n, true, o.prompt != ""
	}
	return 0, false, false
}

// markerEnds are the characters that end a marker (<think>, [THINK]).
const markerEnds = ">]"

// promptBeginnings returns the prompt and those of its prefixes that end before a marker (<think>,
// [THINK]) or before a line of text after the last marker, longest first; none is only white space.
func promptBeginnings(prompt string) []string {
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

// opened renders the conversation up to the first assistant message that follows the same kind of
// message, or all of it if the template rejects that.
func (f *turnFinder) opened(tool bool, i int) opened {
	o, ok := f.openings[tool]
	if ok && (f.history || o.of == f.c) {
		return o
	}
	n := i
	for k := 1; k < i; k++ {
		if f.c.Role(k) == "assistant" && (f.c.Role(k-1) == "tool") == tool {
			n = k
			break
		}
	}
	if !ok || n != o.n || !f.c.StartsLike(o.of, n) {
		if o = (opened{}); n > 0 {
			o = f.ask(n)
		}
		o.n = n
		if o.tail == "" && !tool {
			o = f.ask(f.c.Len())
			o.tail, o.n = o.prompt, -1
		}
	}
	o.of = f.c
	f.openings[tool] = o
	return o
}

// ask renders the first n messages with and without the generation prompt.
func (f *turnFinder) ask(n int) (o opened) {
	f.tryRender(n, true, func(with *chat.Result) {
		o.tail = strings.Clone(afterData(with))
		f.tryRender(n, false, func(without *chat.Result) {
			o.prompt = strings.Clone(with.Text[commonMarkers(with.Text, without.Text):])
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

// tryRender renders the first n messages and, if the template accepts them, calls look with the
// result, whose memory is reused afterwards.
func (f *turnFinder) tryRender(n int, prompt bool, look func(*chat.Result)) {
	if prompt && f.prompt != nil && n == f.c.Len()-1 {
		look(f.prompt)
		return
	}
	in := f.in
	in.ContinueFinalMessage, in.AddGenerationPrompt = false, prompt
	in.Reuse, f.scratch = f.scratch, nil
	if r, err := f.t.Render(f.ctx, f.c.Prefix(n), in); err == nil {
		look(r)
		f.scratch = r
	}
}

// afterData returns the text after the last data.
func afterData(r *chat.Result) string {
	runs := r.FieldsFrom(0)
	for k := runs.Len() - 1; k >= 0; k-- {
		if field, _, end := runs.At(k); !ofHeader(field) {
			return r.Text[end:]
		}
	}
	return r.Text
}

// commonMarkers returns the length of the common prefix of two texts; if the first continues, the
// prefix does not end inside a marker.
func commonMarkers(a, b string) int {
	n := render.CommonText(a, b)
	if n == len(a) || n == len(b) {
		return n
	}
	if i := strings.LastIndexAny(a[:n], "<["); i >= 0 && !strings.ContainsAny(a[i:n], markerEnds) {
		return i
	}
	return n
}
