package completion

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Written holds what a range of a rendering contains of one message.
type Written struct {
	text   string
	fields []render.Field
}

// WrittenOf returns what r.Text[from:to] contains of message m.
func WrittenOf(r *render.Rendering, m int32, from, to int) Written {
	w := Written{text: r.Text}
	for k := r.FieldAfter(from); k < len(r.Fields) && r.Fields[k].Start < to; k++ {
		if r.Fields[k].Message == m {
			w.fields = append(w.fields, r.Fields[k])
		}
	}
	return w
}

// Calls returns how many of a message's first n tool calls are written.
func (w Written) Calls(n int) (count int) {
	seen := make([]bool, n)
	for _, f := range w.fields {
		if k := int(f.Call); f.Part == render.PartToolCall && k < n && !seen[k] {
			count, seen[k] = count+1, true
		}
	}
	return count
}

// Lacks reports whether some of a recorded text is left out: more than white space and the markers
// of reasoning, which templates rewrite.
func (w Written) Lacks(p render.Part, recorded string) bool {
	size, trimmed := 0, strings.TrimSpace(recorded)
	for _, f := range w.fields {
		if f.Part != p {
			continue
		}
		if strings.TrimSpace(w.text[f.Start:f.End]) == trimmed { // the usual case
			return false
		}
		size += f.End - f.Start
	}
	if size >= len(recorded) {
		return false
	}
	left := visibleLen(recorded)
	for _, f := range w.fields {
		if f.Part == p {
			left -= visibleLen(w.text[f.Start:f.End])
		}
	}
	return left > 0
}

// visibleLen returns the size of a text without white space and markers of reasoning.
func visibleLen(text string) (n int) {
	for text != "" {
		end := strings.IndexAny(text[1:], "<[") + 1 // where the next marker may begin
		if end == 0 {
			end = len(text)
		}
		if beginsTag(text[:end]) {
			if at := ThinkTag.FindStringIndex(text[:min(end, longestTag)]); at != nil {
				text = text[at[1]:]
				continue
			}
		}
		n += end
		for _, r := range text[:end] {
			if unicode.IsSpace(r) {
				n -= utf8.RuneLen(r)
			}
		}
		text = text[end:]
	}
	return n
}
