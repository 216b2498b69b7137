package tokenize

import (
	"hash/maphash"
	"strings"
)

// stretchEncoder encodes text in stretches, each up to and including a control
// token that the template wrote, and remembers them: what stands after such a
// token is encoded by itself, so a stretch has the same tokens wherever it
// stands. Contexts of one rollout, which show the same messages again and again
// in other places, are so encoded about once. It belongs to one goroutine.
type stretchEncoder struct {
	*pieceEncoder
	seed  maphash.Seed
	known map[uint64]*stretch
	bytes int    // of what is known
	run   []byte // of scaffold
	spans []AddedSpan

	// The stretches as they were met, and the one of them to be expected next: what
	// stood after a stretch the last time mostly stands there again.
	met      []*stretch
	expected int

	counting bool    // stretches keep the number of their tokens only
	passing  columns // of the last one that is not remembered, or counted only
	into     *stack  // takes the tokens of those that are not remembered, nil = nobody
}

const (
	// maxMet bounds stretchEncoder.met, which is then begun anew.
	maxMet = 1 << 16
	// maxKnown bounds the bytes of the stretches that are remembered with their tokens,
	// and of each: no model reads more at one turn.
	maxKnown = 4 << 20
)

// stretch is a text with the origin of its bytes, and its tokens.
type stretch struct {
	text    string
	closed  bool // it ends after a control token
	after   After
	fields  []field // from the start of the text
	sampled []bool  // by field
	cols    columns
	tokens  int
	next    *stretch // of the same hash
	met     int      // for the last time: where it is in stretchEncoder.met
}

func newStretchEncoder(p *pieceEncoder, counting bool) *stretchEncoder {
	return &stretchEncoder{pieceEncoder: p, seed: maphash.MakeSeed(), known: map[uint64]*stretch{}, counting: counting}
}

// each calls visit for the stretches of r.text[from:to] in order, with the byte
// at which each ends. Only the last may end elsewhere than after a control token.
func (e *stretchEncoder) each(r *rendering, from, to int, visit func(s *stretch, end int)) error {
	after := e.after(r, from)
	for i := r.after(from); from < to; i = r.afterNear(i, from) {
		s, err := e.stretch(r, i, from, to, after)
		if err != nil {
			return err
		}
		if len(e.met) == maxMet {
			e.met = e.met[:0]
		}
		if e.remembers(s.text) {
			s.met, e.met = len(e.met), append(e.met, s)
		}
		from, after = from+len(s.text), AfterToken
		visit(s, from)
		if cap(e.passing.ids) > maxKnown {
			e.passing = columns{}
		}
	}
	return nil
}

// stretch returns the stretch at byte from, which ends at byte to at the latest. i is the
// first field that ends after from.
func (e *stretchEncoder) stretch(r *rendering, i, from, to int, after After) (*stretch, error) {
	e.expected++
	if k := e.expected - 1; k < len(e.met) {
		s := e.met[k]
		if end := from + len(s.text); end == to || s.closed && end < to {
			if s.is(r.text[from:end], after) && e.sameOrigin(s, r, i, from) {
				return s, nil
			}
		}
	}
	end, closed := e.end(r, i, from, to)
	text := r.text[from:end]
	hash := maphash.String(e.seed, text)
	for s := e.known[hash]; s != nil; s = s.next {
		if s.is(text, after) && e.sameOrigin(s, r, i, from) {
			e.expected = s.met + 1
			return s, nil
		}
	}
	s := &stretch{text: text, closed: closed, after: after}
	for _, f := range r.fields[i:] {
		if f.start >= end {
			break
		}
		s.fields, s.sampled = append(s.fields, f.within(from, end)), append(s.sampled, e.byPolicy(f))
	}
	if e.into != nil && !e.remembers(text) {
		return s, e.into.encode(e.pieceEncoder, r, from, end, after)
	}
	cols := &s.cols
	if e.counting || !e.remembers(text) {
		cols = &e.passing
		cols.truncate(0)
	}
	if err := e.encode(cols, r, from, end, after); err != nil {
		return nil, err
	}
	s.tokens = cols.len()
	if !e.remembers(text) {
		s.cols = *cols
		return s, nil
	}
	if e.bytes += len(text); e.bytes > maxKnown && !e.counting {
		clear(e.known)
		e.met, e.expected, e.bytes = nil, 0, len(text)
	}
	s.text = strings.Clone(text) // the memory of a rendering is used again
	s.next = e.known[hash]
	e.known[hash] = s
	return s, nil
}

// remembers reports whether a stretch of that text is kept for contexts to come.
func (e *stretchEncoder) remembers(text string) bool { return e.counting || len(text) <= maxKnown }

// end returns the end of the first control token of the template after byte from, or
// to if there is none.
func (e *stretchEncoder) end(r *rendering, i, from, to int) (end int, closed bool) {
	for at := from; at < to; i++ {
		end := to // of the scaffold before the next field
		if i < len(r.fields) {
			end = min(to, max(at, r.fields[i].start))
		}
		e.run = append(e.run[:0], r.text[at:end]...)
		if e.spans = e.cuts.Append(e.spans[:0], e.run, nil); len(e.spans) > 0 {
			return at + e.spans[0].End, true
		}
		if i == len(r.fields) {
			break
		}
		at = r.fields[i].end
	}
	return to, false
}

func (s *stretch) is(text string, after After) bool { return s.after == after && s.text == text }

// sameOrigin reports whether the bytes of r from byte from on, in whose text s stands,
// come from where those of s do. i is the first field that ends after from.
func (e *stretchEncoder) sameOrigin(s *stretch, r *rendering, i, from int) bool {
	end := from + len(s.text)
	for k, own := range s.fields {
		if i+k == len(r.fields) || r.fields[i+k].within(from, end) != own || e.byPolicy(r.fields[i+k]) != s.sampled[k] {
			return false
		}
	}
	i += len(s.fields)
	return i == len(r.fields) || r.fields[i].start >= end
}

func (e *stretchEncoder) byPolicy(f field) bool { return f.message >= 0 && e.sampled(f.message) }

// within is the part of f inside [from, to), counted from there.
func (f field) within(from, to int) field {
	f.start, f.end = max(f.start, from)-from, min(f.end, to)-from
	return f
}
