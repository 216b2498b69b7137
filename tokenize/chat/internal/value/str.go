package value

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// Str is a string that knows where its bytes come from: all of them from the
// bytes of one field starting at Off (or from the template where F is nil), or
// piece by piece.
type Str struct {
	S      string
	F      *Field
	Off    int32
	Markup bool // what the safe and escape filters give
	parts  *parts
}

// parts are what only computed strings have.
type parts struct {
	runs []Run
	gens [][2]int // generation blocks inside
}

// runs are the origins of s piece by piece; nil for a string that has none or one.
func (s *Str) runs() []Run {
	if s.parts == nil {
		return nil
	}
	return s.parts.runs
}

func (s *Str) gens() [][2]int {
	if s.parts == nil {
		return nil
	}
	return s.parts.gens
}

// compose gives s, which is new, the origins of its pieces and its generation
// blocks. It keeps both.
func (s *Str) compose(runs []Run, gens [][2]int) {
	if len(runs) == 1 && int(runs[0].N) == len(s.S) && !runs[0].Changed && !runs[0].JSON {
		s.F, s.Off, runs = runs[0].F, runs[0].Off, nil
	}
	if len(runs)+len(gens) > 0 {
		s.parts = &parts{runs, gens}
	}
}

// Identical reports whether two strings have the same text and origin.
func (s *Str) Identical(o *Str) bool {
	return s.S == o.S && s.F == o.F && s.Off == o.Off && s.Markup == o.Markup &&
		slices.Equal(s.runs(), o.runs()) && slices.Equal(s.gens(), o.gens())
}

// Lit returns a string of the template.
func Lit(s string) *Str { return &Str{S: s} }

// Derived returns text that was made out of a scalar of f; nil for the template's.
func Derived(text string, f *Field) *Str {
	s := &Str{S: text}
	if f != nil && text != "" {
		s.compose([]Run{{F: f, N: int32(len(text)), End: int32(len(text)), Changed: true}}, nil)
	}
	return s
}

// tracked says whether s has any origin but the template.
func (s *Str) tracked() bool { return s.F != nil || s.runs() != nil }

// Field returns the first field that s has bytes from, nil for none.
func (s *Str) Field() *Field {
	if runs := s.runs(); runs != nil {
		return runs[0].F
	}
	return s.F
}

// NewText returns an empty Text that records origins if one of the strings has
// any.
func (l *Limits) NewText(of ...*Str) *Text {
	t := &Text{Lim: l}
	for _, s := range of {
		t.Track = t.Track || s.tracked()
	}
	return t
}

// eachRun calls f for what the bytes [i, j) have from fields, with places that
// count from i.
func (s *Str) eachRun(i, j int, f func(Run)) {
	runs := s.runs()
	if runs == nil {
		if s.F != nil && i < j {
			f(Run{F: s.F, N: int32(j - i), Off: s.Off + int32(i), End: s.Off + int32(j)})
		}
		return
	}
	first := sort.Search(len(runs), func(k int) bool { return int(runs[k].At+runs[k].N) > i })
	for _, r := range runs[first:] {
		at, end := int(r.At), int(r.At+r.N)
		if at >= j {
			return
		}
		if r.JSON && (at < i || end > j) {
			for p := range r.Pieces(s.S[at:end]) {
				if p, ok := p.within(i, j); ok {
					f(p)
				}
			}
			continue
		}
		r, _ = r.within(i, j)
		f(r)
	}
}

// within is the part of r in the bytes [i, j), with a place that counts from i;
// false when there is none.
func (r Run) within(i, j int) (Run, bool) {
	a, b := max(i, int(r.At)), min(j, int(r.At+r.N))
	if a >= b {
		return r, false
	}
	if !r.Changed && !r.JSON {
		r.Off += int32(a) - r.At
		r.End = r.Off + int32(b-a)
	}
	r.At, r.N = int32(a-i), int32(b-a)
	return r, true
}

// Slice returns the bytes [i, j).
func (s *Str) Slice(i, j int) *Str {
	if i == 0 && j == len(s.S) {
		return s
	}
	if i >= j {
		if s.Markup {
			return &Str{Markup: true}
		}
		return Empty
	}
	out := &Str{S: s.S[i:j], Markup: s.Markup}
	if s.runs() == nil {
		out.F, out.Off = s.F, s.Off
		if s.F != nil {
			out.Off += int32(i)
		}
		return out
	}
	var runs []Run
	s.eachRun(i, j, func(r Run) { runs = append(runs, r) })
	out.compose(runs, nil)
	return out
}

// Plain returns s as a str proper, never Markup.
func (s *Str) Plain() *Str {
	if !s.Markup {
		return s
	}
	return &Str{S: s.S, F: s.F, Off: s.Off, parts: s.parts}
}

// Safe returns s as Markup.
func (s *Str) Safe() *Str {
	if s.Markup {
		return s
	}
	return &Str{S: s.S, F: s.F, Off: s.Off, parts: s.parts, Markup: true}
}

// like gives t's text the kind (str or Markup) of s.
func (s *Str) like(t *Text) *Str {
	v := t.Own()
	v.Markup = s.Markup
	return v
}

// Concat joins strings; the result is a plain str.
func Concat(l *Limits, parts ...*Str) (*Str, *Fault) {
	n := 0
	tracked := 0
	for _, p := range parts {
		n += len(p.S)
		if p.tracked() || p.gens() != nil {
			tracked++
		}
	}
	if n > l.Bytes {
		return nil, limitError("string of %d bytes, more than %d", n, l.Bytes)
	}
	if tracked == 0 {
		if !l.Make(n) {
			return nil, l.Over()
		}
		if len(parts) == 2 {
			return &Str{S: parts[0].S + parts[1].S}, nil
		}
		var b strings.Builder
		b.Grow(n)
		for _, p := range parts {
			b.WriteString(p.S)
		}
		return &Str{S: b.String()}, nil
	}
	if !l.Room() {
		return nil, l.Over()
	}
	t := Text{B: make([]byte, 0, n), Track: true, Lim: l}
	for _, p := range parts {
		t.Str(p)
	}
	return t.Own(), nil
}

// Escape is markupsafe.escape.
func (s *Str) Escape(l *Limits) *Str {
	if s.Markup {
		return s
	}
	if !l.Spend(4 * len(s.S)) {
		return s
	}
	if !strings.ContainsAny(s.S, `&<>'"`) {
		return s.Safe()
	}
	t := l.NewText(s)
	from := 0
	for i := 0; i < len(s.S); i++ {
		var r string
		switch s.S[i] {
		case '&':
			r = "&amp;"
		case '<':
			r = "&lt;"
		case '>':
			r = "&gt;"
		case '\'':
			r = "&#39;"
		case '"':
			r = "&#34;"
		default:
			continue
		}
		t.Part(s, from, i)
		t.Changed(r, s, i, i+1)
		from = i + 1
	}
	t.Part(s, from, len(s.S))
	return t.Own().Safe()
}

func runeLen(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// RuneCount is Python's len().
func (s *Str) RuneCount() int { return utf8.RuneCountInString(s.S) }

// forward returns the offset n characters after byte i.
func forward(s string, i, n int) int {
	for ; n > 0 && i < len(s); n-- {
		i += runeLen(s[i:])
	}
	return i
}

// backward returns the offset n characters before byte i and how many
// characters were missing.
func backward(s string, i, n int) (int, int) {
	for ; n > 0 && i > 0; n-- {
		if s[i-1] < utf8.RuneSelf {
			i--
			continue
		}
		_, w := utf8.DecodeLastRuneInString(s[:i])
		i -= w
	}
	return i, n
}

// Char returns the character with index n, which counts from the end when
// negative; nil when there is none.
func (s *Str) Char(l *Limits, n int64) *Str {
	if n >= int64(len(s.S)) || n < -int64(len(s.S)) {
		return nil
	}
	l.Spend(4 * int(max(n, -n)))
	if n >= 0 {
		i := forward(s.S, 0, int(n))
		if i >= len(s.S) {
			return nil
		}
		return s.Slice(i, i+runeLen(s.S[i:]))
	}
	i, missing := backward(s.S, len(s.S), int(-n))
	if missing > 0 {
		return nil
	}
	return s.Slice(i, i+runeLen(s.S[i:]))
}

// bound is the byte offset of slice bound n.
func (l *Limits) bound(s string, n int64) int {
	l.Spend(4 * int(min(max(n, -n), int64(len(s)))))
	if n >= 0 {
		return forward(s, 0, int(min(n, int64(len(s)))))
	}
	i, _ := backward(s, len(s), int(min(-n, int64(len(s)))))
	return i
}

// Substring is s[start:stop:step]; nil bounds are open. step is not 0.
func (s *Str) Substring(l *Limits, start, stop *int64, step int64) *Str {
	if step == 1 {
		i, j := 0, len(s.S)
		if start != nil {
			i = l.bound(s.S, *start)
		}
		if stop != nil {
			j = l.bound(s.S, *stop)
		}
		return s.Slice(i, max(i, j))
	}
	if !l.Make(8 * len(s.S)) {
		return s
	}
	offs := make([]int, 0, len(s.S)+1)
	for i := 0; i < len(s.S); i += runeLen(s.S[i:]) {
		offs = append(offs, i)
	}
	offs = append(offs, len(s.S))
	t := l.NewText(s)
	first, n := SliceIndices(len(offs)-1, start, stop, step)
	for k, i := 0, first; k < n; k, i = k+1, i+int(step) {
		t.Part(s, offs[i], offs[i+1])
	}
	return s.like(t)
}

// SliceIndices returns the first index and the number of items of a Python
// slice of a sequence of length n.
func SliceIndices(n int, start, stop *int64, step int64) (first, count int) {
	a, b := SliceBounds(n, start, stop, step)
	if step > 0 {
		if a >= b {
			return 0, 0
		}
		return int(a), int((b-a-1)/step) + 1
	}
	if a <= b {
		return 0, 0
	}
	if step == -1<<63 {
		return int(a), 1
	}
	return int(a), int((a-b-1)/-step) + 1
}

// SliceBounds is Python's slice.indices for a sequence of length n.
func SliceBounds(n int, start, stop *int64, step int64) (a, b int64) {
	clamp := func(p *int64, open, lo, hi int64) int64 {
		if p == nil {
			return open
		}
		v := *p
		if v < 0 {
			v += int64(n)
		}
		return min(max(v, lo), hi)
	}
	if step > 0 {
		return clamp(start, 0, 0, int64(n)), clamp(stop, int64(n), 0, int64(n))
	}
	return clamp(start, int64(n)-1, -1, int64(n)-1), clamp(stop, -1, -1, int64(n)-1)
}
