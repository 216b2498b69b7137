package chat

import (
	"iter"
	"slices"
	"sort"
	"unsafe"

	"github.com/turnpack/turnpack/tokenize/chat/internal/eval"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Span is the origin of the bytes [Start, End) of the rendered text. Field is nil for scaffold: text that the
// template or a kwarg wrote. Otherwise they come from the bytes [FieldStart, FieldEnd) of the field's text: with
// Exact set they are those bytes, else they stand for them (an escape, a changed case, a number).
type Span struct {
	Start, End           int
	Field                *Field
	FieldStart, FieldEnd int
	Exact                bool
}

// Extent is the part [Start, End) of the text that one pass of the template's outer loop over the messages wrote for
// message Message.
type Extent struct{ Message, Start, End int }

// Result is a rendered conversation.
type Result struct {
	Text string
	// Generation holds the byte ranges of the {% generation %} blocks, in the order in which they ended.
	Generation [][2]int
	// Extents are in text order. A message for which the loop wrote nothing, or that was rendered outside of a loop
	// over messages, has none.
	Extents []Extent

	runs []value.Run // the bytes that come from fields; the rest is scaffold
	buf  []byte      // all text written, including what truncate cut off
}

// newResult returns the result of a run. It reuses the memory of reuse, which may be nil.
func newResult(out *eval.Output, reuse *Result) *Result {
	m := out.Text.Finish()
	r := &Result{Text: textOf(m.B), Generation: slices.Clone(out.Text.Gens), runs: m.Runs, buf: m.B}
	if reuse != nil {
		r.Extents = reuse.Extents[:0]
	}
	r.Extents = appendExtents(r.Extents, out.Messages)
	return r
}

func appendExtents(to []Extent, from []eval.Extent) []Extent {
	for _, e := range from {
		to = append(to, Extent(e))
	}
	return to
}

// textOf returns b as a string without copying. b must not change while the string is in use.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Spans covers every byte of Text once, in order. JSON-escaped text is split into its escapes and the unchanged
// pieces between them.
func (r *Result) Spans() iter.Seq[Span] {
	return func(yield func(Span) bool) {
		at := 0
		for _, run := range r.runs {
			start := int(run.At)
			if at < start && !yield(Span{Start: at, End: start}) {
				return
			}
			at = start + int(run.N)
			if !run.JSON {
				if !yield(spanOf(run)) {
					return
				}
				continue
			}
			for p := range run.Pieces(r.Text[start:at]) {
				if !yield(spanOf(p)) {
					return
				}
			}
		}
		if at < len(r.Text) {
			yield(Span{Start: at, End: len(r.Text)})
		}
	}
}

// FieldSpans lists, in order, the spans of a result that come from a field. It is valid as long as the result is.
type FieldSpans struct{ runs []value.Run }

// FieldsFrom returns the field spans that start at byte at or later. Walking them is faster than walking Spans.
func (r *Result) FieldsFrom(at int) FieldSpans {
	first := 0
	if at > 0 {
		first = sort.Search(len(r.runs), func(i int) bool { return int(r.runs[i].At) >= at })
	}
	return FieldSpans{r.runs[first:]}
}

// Len returns the number of spans.
func (s FieldSpans) Len() int { return len(s.runs) }

// At returns the field of span i and its bytes [start, end) in the text; the field is nil for an i outside [0, Len).
func (s FieldSpans) At(i int) (field *Field, start, end int) {
	if uint(i) >= uint(len(s.runs)) {
		return nil, 0, 0
	}
	run := &s.runs[i]
	return run.F, int(run.At), int(run.At + run.N)
}

func spanOf(r value.Run) Span {
	return Span{int(r.At), int(r.At + r.N), r.F, int(r.Off), int(r.End), !r.Changed && !r.JSON}
}

// truncate cuts the text at byte n.
func (r *Result) truncate(n int) {
	r.Text = r.Text[:n]
	for i := range r.runs {
		run := &r.runs[i]
		start, over := int(run.At), int(run.At+run.N)-n
		if over <= 0 {
			continue
		}
		if start < n {
			if !run.Changed && !run.JSON {
				run.End -= int32(over)
			}
			if run.JSON {
				run.End = run.Off
				for p := range run.Pieces(r.Text[start:n]) {
					run.End = p.End
				}
			}
			run.N -= int32(over)
			i++
		}
		r.runs = r.runs[:i]
		break
	}
	clip := func(start, end *int) bool {
		*end = min(*end, n)
		return *start < n
	}
	gens := r.Generation[:0:0]
	for _, g := range r.Generation {
		if clip(&g[0], &g[1]) {
			gens = append(gens, g)
		}
	}
	r.Generation = gens
	var extents []Extent
	for _, e := range r.Extents {
		if clip(&e.Start, &e.End) {
			extents = append(extents, e)
		}
	}
	r.Extents = extents
}
