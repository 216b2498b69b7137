package tokenize

import (
	"hash/maphash"
	"strings"
)

// stretchEncoder encodes text in stretches, each up to and including a control
// token that the template wrote, and remembers them: what stands behind such a
// token is encoded by itself, so a stretch has the same tokens wherever it
// stands. Contexts of one rollout, which show the same messages again and again
// in other places, are so encoded about once. It belongs to one goroutine.
type stretchEncoder struct {
	*pieceEncoder
	seed  maphash.Seed
	known map[uint64]*stretch
	run   []byte // of scaffold
	spans []AddedSpan
}

// stretch is a text with the origin of its bytes, and its tokens.
type stretch struct {
	text    string
	after   After
	fields  []field // from the start of the text
	sampled []bool  // by field
	cols    columns
	next    *stretch // of the same hash
}

func newStretchEncoder(p *pieceEncoder) *stretchEncoder {
	return &stretchEncoder{pieceEncoder: p, seed: maphash.MakeSeed(), known: map[uint64]*stretch{}}
}

// each calls visit for the stretches of r.text[from:to] in order, with the byte
// at which each ends. Only the last may end elsewhere than behind a control token.
func (e *stretchEncoder) each(r *rendering, from, to int, visit func(cols *columns, end int)) error {
	after := e.after(r, from)
	next := func(end int) error {
		s, err := e.stretch(r, from, end, after)
		if err == nil {
			visit(&s.cols, end)
			from, after = end, AfterToken
		}
		return err
	}
	i := r.after(from)
	for at := from; at < to; i++ {
		end := to // of the scaffold in front of the next field
		if i < len(r.fields) {
			end = min(to, max(at, r.fields[i].start))
		}
		e.run = append(e.run[:0], r.text[at:end]...)
		e.spans = e.cuts.Append(e.spans[:0], e.run, nil)
		for _, s := range e.spans {
			if err := next(at + s.End); err != nil {
				return err
			}
		}
		if i == len(r.fields) {
			break
		}
		at = r.fields[i].end
	}
	if from < to {
		return next(to)
	}
	return nil
}

// stretch returns the tokens of r.text[from:to].
func (e *stretchEncoder) stretch(r *rendering, from, to int, after After) (*stretch, error) {
	text, first := r.text[from:to], r.after(from)
	last := first
	for last < len(r.fields) && r.fields[last].start < to {
		last++
	}
	fields := r.fields[first:last]
	hash := maphash.String(e.seed, text)
	for s := e.known[hash]; s != nil; s = s.next {
		if s.text == text && s.after == after && e.sameOrigin(s, fields, from, to) {
			return s, nil
		}
	}
	s := &stretch{text: strings.Clone(text), after: after, next: e.known[hash], fields: make([]field, len(fields)), sampled: make([]bool, len(fields))}
	for k, f := range fields {
		s.fields[k], s.sampled[k] = f.within(from, to), e.byPolicy(f)
	}
	if err := e.encode(&s.cols, r, from, to, after); err != nil {
		return nil, err
	}
	e.known[hash] = s
	return s, nil
}

// sameOrigin reports whether the bytes of s come from where fields say that
// those of [from, to) do.
func (e *stretchEncoder) sameOrigin(s *stretch, fields []field, from, to int) bool {
	if len(s.fields) != len(fields) {
		return false
	}
	for k, f := range fields {
		if s.fields[k] != f.within(from, to) || s.sampled[k] != e.byPolicy(f) {
			return false
		}
	}
	return true
}

func (e *stretchEncoder) byPolicy(f field) bool { return f.message >= 0 && e.sampled(f.message) }

// within is the part of f inside [from, to), counted from there.
func (f field) within(from, to int) field {
	f.start, f.end = max(f.start, from)-from, min(f.end, to)-from
	return f
}
