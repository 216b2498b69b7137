package value

import (
	"sort"
	"unicode/utf8"
)

// Str is a string with the origin of its bytes: either all of them come from the bytes of one field from Off on (from
// the template if F is nil), or parts gives the origin piece by piece.
type Str struct {
	S      string
	F      *Field
	Off    int32
	Markup bool // result of the safe and escape filters
	parts  *parts
}

// parts holds what only computed strings have.
type parts struct {
	runs []Run
	gens [][2]int // generation blocks in the string, as byte ranges
}

// Runs returns the origins of the pieces of s, or nil if all of s has one origin.
func (s *Str) Runs() []Run {
	if s.parts == nil {
		return nil
	}
	return s.parts.runs
}

// compose sets the origins of the pieces of s, a new string, and its generation blocks. It keeps both slices.
func (s *Str) compose(runs []Run, gens [][2]int) {
	if len(runs) == 1 && int(runs[0].N) == len(s.S) && !runs[0].Changed && !runs[0].JSON {
		s.F, s.Off, runs = runs[0].F, runs[0].Off, nil
	}
	if len(runs)+len(gens) > 0 {
		s.parts = &parts{runs, gens}
	}
}

// Lit returns a string of the template, without origin.
func Lit(s string) *Str { return &Str{S: s} }

// Derived returns text computed from a scalar of field f, which is nil for the template's.
func Derived(text string, f *Field) *Str {
	s := &Str{S: text}
	if f != nil && text != "" {
		s.compose([]Run{{F: f, N: int32(len(text)), End: int32(len(text)), Changed: true}}, nil)
	}
	return s
}

// Tracked reports whether any byte of s comes from a field.
func (s *Str) Tracked() bool { return s.F != nil || s.Runs() != nil }

// Field returns the first field that s has bytes from, or nil.
func (s *Str) Field() *Field {
	if runs := s.Runs(); runs != nil {
		return runs[0].F
	}
	return s.F
}

// eachRun calls f for the runs of the bytes [i, j), with At relative to i.
func (s *Str) eachRun(i, j int, f func(Run)) {
	runs := s.Runs()
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

// within returns the part of r in the bytes [i, j), with At relative to i, or false if it is empty.
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

// Slice returns the bytes [i, j) of s.
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
	if s.Runs() == nil {
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

// Plain returns s as a plain str.
func (s *Str) Plain() *Str { return s.as(false) }

// Safe returns s as Markup.
func (s *Str) Safe() *Str { return s.as(true) }

func (s *Str) as(markup bool) *Str {
	if s.Markup == markup {
		return s
	}
	return &Str{S: s.S, F: s.F, Off: s.Off, parts: s.parts, Markup: markup}
}

// Like returns the content of t as a str or Markup, whichever s is. It takes over the memory of t.
func (s *Str) Like(t *Text) *Str {
	v := t.Own()
	v.Markup = s.Markup
	return v
}

// Concat concatenates strings to a plain str.
func Concat(l *Limits, parts ...*Str) *Str {
	n := 0
	for _, p := range parts {
		n += len(p.S)
	}
	l.Make(2 * StrSize)
	if !l.Text(n) {
		return Empty
	}
	t := Text{B: make([]byte, 0, n), Lim: l}
	for _, p := range parts {
		t.Str(p)
	}
	return t.Own()
}

func RuneLen(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// RuneCount implements Python's len().
func (s *Str) RuneCount() int { return utf8.RuneCountInString(s.S) }
