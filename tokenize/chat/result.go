package chat

import (
	"slices"

	"github.com/turnpack/turnpack/tokenize/chat/internal/eval"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Span says where the bytes [Start, End) of the rendered text come from. Field is
// nil for scaffold: text that the template or a kwarg wrote. Otherwise they come
// from the bytes [FieldStart, FieldEnd) of the field's text: exactly these bytes
// when Exact is set; else they stand for them (an escape, a changed case, a
// number; with Escaped a text with JSON escapes, which Traced takes apart).
type Span = value.Span

// Extent is the part of the text that one pass of the template's outer loop over
// the messages wrote for a message.
type Extent struct {
	Message    int
	Start, End int
}

// Result is a rendered conversation.
type Result struct {
	Text string
	// Spans cover every byte of Text once, in order; nil without provenance.
	Spans []Span
	// Generation holds the byte ranges of the {% generation %} blocks, in the
	// order in which they ended.
	Generation [][2]int
	// Extents are in order of the text. A message that the loop wrote nothing
	// for, or that was not rendered by a loop over messages, has none.
	Extents []Extent

	shared *value.Shared // all of the text that was written
}

func newResult(out *eval.Output) *Result {
	shared := out.Text.Share()
	r := &Result{Text: shared.String(), Generation: slices.Clone(out.Text.Gens), shared: shared}
	if out.Text.Track {
		r.Spans = out.Text.Spans
		if spare := cap(r.Spans) - len(r.Spans); spare > 64+len(r.Spans)/4 {
			r.Spans = append(make([]Span, 0, len(r.Spans)), r.Spans...)
		}
	}
	if len(out.Messages) > 0 {
		r.Extents = make([]Extent, len(out.Messages))
		for i, e := range out.Messages {
			r.Extents[i] = Extent(e)
		}
	}
	return r
}

// Traced returns the spans with JSON-escaped text split into the pieces that are
// there byte for byte and the single escapes between them.
func (r *Result) Traced() []Span {
	out := make([]Span, 0, len(r.Spans))
	for _, s := range r.Spans {
		if !s.Escaped {
			out = append(out, s)
			continue
		}
		at := s.Start
		run := value.Run{F: s.Field, N: int32(s.End - s.Start), Off: int32(s.FieldStart), End: int32(s.FieldEnd), JSON: true}
		run.Pieces(r.Text[s.Start:s.End], func(p value.Run) {
			out = append(out, p.Span(at))
			at += int(p.N)
		})
	}
	return out
}

// truncate cuts the text at byte n.
func (r *Result) truncate(n int) {
	r.Text = r.Text[:n]
	for i := range r.Spans {
		s := &r.Spans[i]
		if s.End <= n {
			continue
		}
		if s.Start < n {
			if s.Exact {
				s.FieldEnd -= s.End - n
			}
			if s.Escaped {
				s.FieldEnd = s.FieldStart
				run := value.Run{N: int32(n - s.Start), Off: int32(s.FieldStart), JSON: true}
				run.Pieces(r.Text[s.Start:n], func(p value.Run) { s.FieldEnd = int(p.End) })
			}
			s.End = n
			i++
		}
		r.Spans = r.Spans[:i]
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

// relink gives a function name that stands beside the text of a tool message to
// that message, where the template fetched it from the call that the message
// answers: it is part of what the model reads there, not of what it sampled. The
// message holds the same name, so the bytes are its own, too.
func (r *Result) relink(links []link) {
	if len(links) == 0 {
		return
	}
	first := map[*Field]int{} // the call's own text
	byCall := map[*Field]bool{}
	for _, l := range links {
		byCall[l.call] = true
	}
	for i, s := range r.Spans {
		if byCall[s.Field] {
			if _, ok := first[s.Field]; !ok {
				first[s.Field] = i
			}
		}
	}
	for _, l := range links {
		for i := range r.Spans {
			s := &r.Spans[i]
			if s.Field == l.call && i > first[l.call] && r.beside(i, l.message) {
				s.Field = l.own
				break
			}
		}
	}
}

// beside reports whether the next data behind span i is of the message, or, if
// the message has no text, of a later one.
func (r *Result) beside(i int, message int32) bool {
	for _, s := range r.Spans[i+1:] {
		if s.Field != nil {
			return s.Field.Message >= message
		}
	}
	return true
}
