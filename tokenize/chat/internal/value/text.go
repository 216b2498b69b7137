package value

import (
	"strconv"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Run says where the next N bytes of a text come from: from the template (F is
// nil) or from the bytes [Off, End) of a field. Changed is set unless they are
// those bytes, unchanged.
type Run struct {
	F       *Field
	N       int32
	Off     int32
	End     int32
	Changed bool
	JSON    bool // the bytes are JSON string escapes of the field's bytes: see Pieces
}

// Span says where the bytes [Start, End) of a finished text come from. Field is
// nil for scaffold: text that the template or a kwarg wrote. Otherwise they come
// from the bytes [FieldStart, FieldEnd) of the field's text: exactly these bytes
// when Exact is set; else they stand for them (an escape, a changed case, a
// number).
type Span struct {
	Start, End           int
	Field                *Field
	FieldStart, FieldEnd int
	Exact                bool
	// Escaped is set for a text with JSON escapes as a whole, which is not Exact;
	// Result.Traced takes it apart.
	Escaped bool
}

// Text collects bytes together with their origin. The zero value records no
// origin; set Track for that.
type Text struct {
	B     []byte
	Runs  []Run // lengths add up to len(B), when Track is set and Final is not
	Spans []Span
	Track bool
	Final bool     // the text is nobody's input: record Spans, not Runs
	Gens  [][2]int // generation blocks, as byte ranges

	// A text that is expected to repeat another: as long as it does, base is set,
	// B is a part of it and nothing is copied.
	repeats bool
	base    *Shared
	idle    []byte // the memory that B had before
}

// Shared is a finished text whose memory a later text that begins like it may
// use. It is safe for concurrent use.
type Shared struct {
	b     []byte
	taken atomic.Bool // the memory behind b belongs to a later text
}

// String returns the bytes, which never change.
func (s *Shared) String() string { return unsafe.String(unsafe.SliceData(s.b), len(s.b)) }

// Share ends the writing of t and returns its bytes; t is to be Reset.
func (t *Text) Share() *Shared {
	if !t.repeats {
		return &Shared{b: append([]byte(nil), t.B...)}
	}
	s := &Shared{b: t.B}
	s.taken.Store(t.base != nil) // t ends inside base
	return s
}

// Repeat makes t, which is empty, expect the text of base.
func (t *Text) Repeat(base *Shared) {
	t.repeats, t.base, t.idle = true, base, t.B
	t.B = base.b[:0:0]
}

// Detach gives t memory of its own, for appending to B.
func (t *Text) Detach() {
	if t.base != nil {
		t.B, t.base = append([]byte(nil), t.B...), nil
	}
}

// put appends bytes.
func (t *Text) put(s string) {
	if t.base == nil {
		t.B = append(t.B, s...)
		return
	}
	n, b := len(t.B), t.base.b
	if end := n + len(s); end <= len(b) && string(b[n:end]) == s {
		t.B = b[:end:end]
		return
	}
	k := 0
	for n+k < len(b) && k < len(s) && b[n+k] == s[k] {
		k++
	}
	same := n + k
	if same == len(b) && t.base.taken.CompareAndSwap(false, true) {
		t.B = b
	} else {
		t.B = append(make([]byte, 0, same+same/8+len(s)), b[:same]...)
	}
	t.base = nil
	t.B = append(t.B, s[k:]...)
}

// Reset empties t and keeps its memory.
func (t *Text) Reset() {
	if t.repeats {
		t.B, t.repeats, t.base, t.idle = t.idle, false, nil, nil
	}
	t.B, t.Runs, t.Gens = t.B[:0], t.Runs[:0], nil
}

// Span returns the span of r for the bytes that start at at.
func (r Run) Span(at int) Span {
	s := Span{Start: at, End: at + int(r.N), Field: r.F}
	if r.F != nil {
		s.FieldStart, s.FieldEnd = int(r.Off), int(r.End)
		s.Exact, s.Escaped = !r.Changed && !r.JSON, r.JSON
	}
	return s
}

// Lit appends bytes of the template.
func (t *Text) Lit(s string) {
	t.put(s)
	if t.Track {
		t.scaffold(len(s))
	}
}

// Byte appends one byte of the template.
func (t *Text) Byte(c byte) {
	t.put(string([]byte{c}))
	if t.Track {
		t.scaffold(1)
	}
}

func (t *Text) scaffold(n int) {
	if t.Final {
		if k := len(t.Spans); k > 0 && t.Spans[k-1].Field == nil {
			t.Spans[k-1].End += n
		} else if n > 0 {
			at := t.spanned()
			t.Spans = append(t.Spans, Span{Start: at, End: at + n})
		}
		return
	}
	if k := len(t.Runs); k > 0 && t.Runs[k-1].F == nil {
		t.Runs[k-1].N += int32(n)
	} else if n > 0 {
		t.Runs = append(t.Runs, Run{N: int32(n)})
	}
}

// spanned is the number of bytes that have spans.
func (t *Text) spanned() int {
	if k := len(t.Spans); k > 0 {
		return t.Spans[k-1].End
	}
	return 0
}

// span is run for a final text.
func (t *Text) span(r Run) {
	if k := len(t.Spans); k > 0 {
		last := &t.Spans[k-1]
		if last.Field == r.F && (r.F == nil || (last.FieldEnd == int(r.Off) && !r.JSON && !last.Escaped && last.Exact == !r.Changed)) {
			last.End += int(r.N)
			if r.F != nil {
				last.FieldEnd = int(r.End)
			}
			return
		}
	}
	t.Spans = append(t.Spans, r.Span(t.spanned()))
}

func (t *Text) run(r Run) {
	if r.N == 0 {
		return
	}
	if t.Final {
		t.span(r)
		return
	}
	if k := len(t.Runs); k > 0 {
		last := &t.Runs[k-1]
		if last.F == r.F && last.Changed == r.Changed && !last.JSON && !r.JSON && (r.F == nil || last.End == r.Off) {
			last.N += r.N
			last.End = r.End
			return
		}
	}
	t.Runs = append(t.Runs, r)
}

// From appends bytes that stand for the bytes [off, end) of f without being
// those bytes; f may be nil.
func (t *Text) From(s string, f *Field, off, end int) {
	t.put(s)
	if t.Track {
		if f == nil {
			t.scaffold(len(s))
			return
		}
		t.run(Run{F: f, N: int32(len(s)), Off: int32(off), End: int32(end), Changed: true})
	}
}

// Str appends a string with its origin.
func (t *Text) Str(s *Str) {
	if s.Gens != nil {
		for _, g := range s.Gens {
			t.Gens = append(t.Gens, [2]int{len(t.B) + g[0], len(t.B) + g[1]})
		}
	}
	t.put(s.S)
	if !t.Track {
		return
	}
	if s.Runs == nil {
		if s.F == nil {
			t.scaffold(len(s.S))
		} else {
			t.run(Run{F: s.F, N: int32(len(s.S)), Off: int32(s.Off), End: int32(s.Off + len(s.S))})
		}
		return
	}
	for _, r := range s.Runs {
		t.run(r)
	}
}

// Part appends the bytes [i, j) of s with their origin.
func (t *Text) Part(s *Str, i, j int) {
	if i >= j {
		return
	}
	t.put(s.S[i:j])
	if t.Track {
		s.eachRun(i, j, t.run)
	}
}

// Changed appends text made out of the bytes [i, j) of s.
func (t *Text) Changed(text string, s *Str, i, j int) {
	if text == s.S[i:j] {
		t.Part(s, i, j)
		return
	}
	t.put(text)
	if !t.Track || text == "" {
		return
	}
	if s.Runs == nil {
		if s.F == nil {
			t.scaffold(len(text))
		} else {
			t.run(Run{F: s.F, N: int32(len(text)), Off: int32(s.Off + i), End: int32(s.Off + j), Changed: true})
		}
		return
	}
	// The origin of made-up bytes is the first field that took part in them.
	var from Run
	s.eachRun(i, j, func(r Run) {
		if from.F == nil {
			from = r
		} else if r.F == from.F && r.Off == from.End {
			from.End = r.End
		}
	})
	from.N, from.Changed = int32(len(text)), from.F != nil
	t.run(from)
}

// Text appends another text.
func (t *Text) Text(o *Text) {
	for _, g := range o.Gens {
		t.Gens = append(t.Gens, [2]int{len(t.B) + g[0], len(t.B) + g[1]})
	}
	t.put(unsafe.String(unsafe.SliceData(o.B), len(o.B)))
	if t.Track {
		for _, r := range o.Runs {
			t.run(r)
		}
	}
}

// Value returns what was collected as a string and leaves t unchanged.
func (t *Text) Value() *Str {
	s := &Str{S: string(t.B), Gens: t.Gens}
	switch {
	case len(t.Runs) == 0 || (len(t.Runs) == 1 && t.Runs[0].F == nil):
	case len(t.Runs) == 1 && !t.Runs[0].Changed && !t.Runs[0].JSON:
		s.F, s.Off = t.Runs[0].F, int(t.Runs[0].Off)
	default:
		s.Runs = append([]Run(nil), t.Runs...)
	}
	return s
}

// Pieces splits a run of JSON escapes, whose text is given, into unchanged runs
// and escapes. Any other run is one piece.
func (r Run) Pieces(text string, f func(Run)) {
	if !r.JSON {
		f(r)
		return
	}
	off := r.Off
	piece := func(n, field int, changed bool) {
		if n > 0 {
			f(Run{F: r.F, N: int32(n), Off: off, End: off + int32(field), Changed: changed})
			off += int32(field)
		}
	}
	from := 0
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			i++
			continue
		}
		piece(i-from, i-from, false)
		n, bytes := escapeSize(text[i:])
		piece(n, bytes, true)
		i += n
		from = i
	}
	piece(len(text)-from, len(text)-from, false)
}

// escapeSize returns the length of the JSON escape at the start of s and of the
// UTF-8 text it stands for.
func escapeSize(s string) (n, bytes int) {
	if len(s) < 6 || s[1] != 'u' {
		return min(2, len(s)), 1
	}
	v, err := strconv.ParseUint(s[2:6], 16, 16)
	if err != nil {
		return 6, 1
	}
	if utf16.IsSurrogate(rune(v)) {
		return min(12, len(s)), 4
	}
	return 6, utf8.RuneLen(rune(v))
}
