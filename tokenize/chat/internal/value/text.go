package value

import (
	"iter"
	"slices"
	"strings"
	"unsafe"
)

// Run is the origin of the N bytes of a text at At: the bytes [Off, End) of a field. Changed is set unless the text
// has those bytes unchanged.
type Run struct {
	F        *Field
	At, N    int32
	Off, End int32
	Changed  bool
	JSON     bool // the bytes are the field's bytes as JSON string content: see Pieces
}

// Text collects bytes together with their origin.
type Text struct {
	B     []byte
	Runs  []Run    // in order; bytes between them are the template's
	Gens  [][2]int // generation blocks, as byte ranges
	Lim   *Limits  // counts what is written; may be nil
	Grown int64    // bytes allocated so far

	lent, idle Memory // memory lent until Reset, and the text's own memory meanwhile
}

// Memory is the memory that a Text writes to.
type Memory struct {
	B    []byte
	Runs []Run
}

// Lend makes t, which is empty, write to memory that the result of Finish takes over. If m.B is nil, Finish copies
// the bytes. m.Runs must not be nil.
func (t *Text) Lend(m Memory) {
	t.lent, t.idle = m, Memory{t.B, t.Runs}
	t.Runs = m.Runs[:0]
	if m.B != nil {
		t.B = m.B[:0]
	}
}

// largeText is the size in bytes from which a buffer is handed over instead of copied, and not kept for later writes.
const largeText = 256 << 10

// Finish returns what was written to t, which has lent memory. t does not change the result any more and must be
// Reset.
func (t *Text) Finish() Memory {
	switch {
	case t.lent.B != nil:
		return Memory{t.B, t.Runs}
	case len(t.B) >= largeText:
		t.idle.B = nil
		m := Memory{t.B, t.Runs}
		t.B = nil
		return m
	}
	// make and copy in this form do not zero the copy first; append would zero its rounded-up capacity.
	from := t.B
	b := make([]byte, len(from))
	copy(b, from)
	if cap(t.Runs) > 2*len(t.Runs) {
		return Memory{b, slices.Clone(t.Runs)}
	}
	return Memory{b, t.Runs}
}

// put appends bytes. Unlike append, it does not write the pointer of t.B when there is room, which avoids a write
// barrier.
func (t *Text) put(s string) {
	if t.Lim != nil && !t.Lim.Spend(len(s)) {
		return // the run ends
	}
	n := len(t.B)
	if len(s) > cap(t.B)-n && !t.grow(len(s)) {
		return
	}
	t.B = t.B[:n+len(s)]
	copy(t.B[n:], s)
}

// grow makes room for n more bytes, unless the limits are exceeded.
func (t *Text) grow(n int) bool {
	room := max(2*cap(t.B), len(t.B)+n, 64)
	if room > largeText {
		room = len(t.B) + n
		if n >= len(t.B) { // a long text: one eighth more leaves room for what a template writes around it
			room += room / 8
		} else {
			room += room / 2
		}
	}
	if t.Grown += int64(room); t.Lim != nil && !t.Lim.Make(room) {
		return false
	}
	t.B = append(make([]byte, 0, room), t.B...)
	return true
}

// growRuns makes room for n more runs, unless the limits are exceeded.
func (t *Text) growRuns(n int) bool {
	if n <= cap(t.Runs)-len(t.Runs) {
		return true
	}
	room := max(2*cap(t.Runs), len(t.Runs)+n)
	if t.Grown += int64(RunSize * room); t.Lim != nil && !t.Lim.Make(RunSize*room) {
		return false
	}
	t.Runs = append(make([]Run, 0, room), t.Runs...)
	return true
}

// Reset empties t. It keeps the memory but drops all references from it.
func (t *Text) Reset() {
	if t.lent.Runs == nil {
		clear(t.Runs)
	} else {
		if t.lent.B != nil {
			t.B = t.idle.B
		}
		t.Runs, t.lent, t.idle = t.idle.Runs, Memory{}, Memory{}
	}
	if cap(t.B) > largeText {
		t.B = nil
	}
	t.B, t.Runs, t.Gens = t.B[:0], t.Runs[:0], nil
}

// Lit appends bytes of the template.
func (t *Text) Lit(s string) { t.put(s) }

// Byte appends one byte of the template.
func (t *Text) Byte(c byte) {
	if len(t.B) < cap(t.B) || t.grow(1) {
		t.B = append(t.B, c)
	}
}

// Blanks appends n spaces of the template.
func (t *Text) Blanks(n int) {
	const blanks = "                                                                "
	for ; n > len(blanks) && t.room(); n -= len(blanks) {
		t.put(blanks)
	}
	if n > 0 {
		t.put(blanks[:min(n, len(blanks))])
	}
}

func (t *Text) room() bool { return t.Lim == nil || t.Lim.Err == nil }

// RunSize is the memory of a Run in bytes.
const RunSize = 32

// run records the origin of the bytes at r.At, at least one, which are appended next or were appended last.
func (t *Text) run(r Run) {
	if !t.grows(&r, 0) {
		t.begin(&r)
	}
}

// begin is run for bytes that do not extend the last run.
func (t *Text) begin(r *Run) {
	if !t.growRuns(1) {
		return
	}
	k := len(t.Runs)
	t.Runs = t.Runs[:k+1]
	// Assigned by field: copying a struct that was just written would stall.
	last := &t.Runs[k]
	last.F, last.At, last.N, last.Off, last.End, last.Changed, last.JSON = r.F, r.At, r.N, r.Off, r.End, r.Changed, r.JSON
}

// grows extends the last run by r, whose At is relative to at, and reports whether that is possible.
func (t *Text) grows(r *Run, at int32) bool {
	k := len(t.Runs)
	if k == 0 {
		return false
	}
	last := &t.Runs[k-1]
	if last.F != r.F || last.At+last.N != at+r.At || last.End != r.Off || last.Changed != r.Changed || last.JSON || r.JSON {
		return false
	}
	last.N += r.N
	last.End = r.End
	return true
}

// runs records the runs of a text whose bytes from index from on are appended. No run in list extends the one before
// it.
func (t *Text) runs(list []Run, from int) {
	at := int32(len(t.B) - from)
	if len(list) > 0 && t.grows(&list[0], at) {
		list = list[1:]
	}
	if !t.growRuns(len(list)) {
		return
	}
	// Places are set after the copy: copying places just written would stall.
	first := len(t.Runs)
	t.Runs = append(t.Runs, list...)
	for i := first; i < len(t.Runs); i++ {
		t.Runs[i].At += at
	}
}

// From appends bytes that stand for the bytes [off, end) of f without being equal to them; f may be nil.
func (t *Text) From(s string, f *Field, off, end int) {
	if f != nil && s != "" {
		t.run(Run{F: f, At: int32(len(t.B)), N: int32(len(s)), Off: int32(off), End: int32(end), Changed: true})
	}
	t.put(s)
}

// Str appends a string with its origin.
func (t *Text) Str(s *Str) {
	if s.parts != nil {
		t.gens(s.parts.gens)
		t.runs(s.parts.runs, 0)
	}
	if s.F != nil && s.S != "" {
		n := int32(len(s.S))
		t.run(Run{F: s.F, At: int32(len(t.B)), N: n, Off: s.Off, End: s.Off + n})
	}
	t.put(s.S)
}

func (t *Text) gens(list [][2]int) {
	if t.Lim != nil && !t.Lim.Make(16*len(list)) {
		return
	}
	for _, g := range list {
		t.Gens = append(t.Gens, [2]int{len(t.B) + g[0], len(t.B) + g[1]})
	}
}

// Part appends the bytes [i, j) of s with their origin.
func (t *Text) Part(s *Str, i, j int) {
	if i >= j {
		return
	}
	at := int32(len(t.B))
	s.eachRun(i, j, func(r Run) {
		r.At += at
		t.run(r)
	})
	t.put(s.S[i:j])
}

// Changed appends text derived from the bytes [i, j) of s.
func (t *Text) Changed(text string, s *Str, i, j int) {
	if text == s.S[i:j] {
		t.Part(s, i, j)
		return
	}
	if text != "" {
		// The origin of derived bytes is the first field that contributed.
		from := Run{F: s.F, Off: s.Off + int32(i), End: s.Off + int32(j)}
		if s.Runs() != nil {
			from = Run{}
			s.eachRun(i, j, func(r Run) {
				if from.F == nil {
					from = r
				} else if r.F == from.F && r.Off == from.End {
					from.End = r.End
				}
			})
		}
		if from.F != nil {
			from.At, from.N, from.Changed = int32(len(t.B)), int32(len(text)), true
			t.run(from)
		}
	}
	t.put(text)
}

// Mapped appends s with some characters replaced. f receives the rest of s and returns the replacement text for its
// first n bytes: either those bytes unchanged, or text for a single character. Mapped reports whether any was
// replaced.
func (t *Text) Mapped(s *Str, f func(rest string) (n int, text string)) (changed bool) {
	from := 0
	for i := 0; i < len(s.S) && t.room(); {
		n, text := f(s.S[i:])
		if text != s.S[i:i+n] {
			t.Part(s, from, i)
			t.Changed(text, s, i, i+n)
			from, changed = i+n, true
		}
		i += n
	}
	t.Part(s, from, len(s.S))
	return changed
}

// Text appends the bytes of o; the places of o's runs are relative to from.
func (t *Text) Text(o *Text, from int) {
	t.gens(o.Gens)
	t.runs(o.Runs, from)
	t.put(unsafe.String(unsafe.SliceData(o.B), len(o.B)))
}

// Own returns the collected text as a string that takes over the memory of t, which must not be used any more.
func (t *Text) Own() *Str {
	if !t.room() {
		return &Str{} // the run ends
	}
	s := &Str{S: unsafe.String(unsafe.SliceData(t.B), len(t.B))}
	s.compose(t.Runs, t.Gens)
	return s
}

// Value returns the collected text as a string. t must be Reset before it is written again.
func (t *Text) Value() *Str {
	if len(t.B) >= largeText {
		s := t.Own()
		t.B, t.Runs = nil, nil
		return s
	}
	if t.Lim != nil && !t.Lim.Make(len(t.B)+RunSize*len(t.Runs)) {
		return &Str{} // the run ends
	}
	s := &Str{S: string(t.B)}
	s.compose(append([]Run(nil), t.Runs...), t.Gens)
	return s
}

// Pieces splits a run of JSON escapes, whose text is given, into unchanged pieces and escapes. It yields any other
// run as a single piece.
func (r Run) Pieces(text string) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		if !r.JSON {
			yield(r)
			return
		}
		next := Run{F: r.F, At: r.At, End: r.Off}
		piece := func(n, field int, changed bool) bool {
			if n == 0 {
				return true
			}
			next.At, next.N = next.At+next.N, int32(n)
			next.Off, next.End, next.Changed = next.End, next.End+int32(field), changed
			return yield(next)
		}
		from := 0
		for i := 0; i < len(text); {
			if text[i] != '\\' {
				i++
				continue
			}
			n := 2 // an escape stands for one byte
			if strings.HasPrefix(text[i:], `\u`) {
				n = 6
			}
			if n = min(n, len(text)-i); !piece(i-from, i-from, false) || !piece(n, 1, true) {
				return
			}
			i += n
			from = i
		}
		piece(len(text)-from, len(text)-from, false)
	}
}
