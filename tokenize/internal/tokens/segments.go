package tokens

import (
	"hash/maphash"
	"strings"

	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// SegmentEncoder encodes text in stretches, each up to and including a control
// token that the template wrote, and remembers them: what stands after such a
// token is encoded by itself, so a stretch has the same tokens wherever it
// stands. Contexts of one rollout, which show the same messages again and again
// in other places, are so encoded about once. It belongs to one goroutine.
type SegmentEncoder struct {
	*Encoder
	seed  maphash.Seed
	known map[uint64]*CachedSegment
	bytes int    // of what is known
	run   []byte // of scaffold
	spans []engine.AddedSpan

	// The stretches as they were met, and the one of them to be expected next: what
	// stood after a stretch the last time mostly stands there again.
	history  []*CachedSegment
	expected int

	counting bool     // stretches keep the number of their tokens only
	passing  Columns  // of the last one that was encoded
	into     *Compact // takes the tokens of those that are not remembered, when not counting
}

const (
	// maxMet bounds stretchEncoder.met, which is then begun anew.
	maxHistory = 1 << 16
	// maxKnown bounds the bytes of the stretches that are remembered with their tokens.
	maxKnown = 4 << 20
	// longestKnown bounds those of each: what is remembered costs its tokens once more, and
	// few models read as much at one turn.
	longestKnown = 1 << 20
)

// CachedSegment is a text with the origin of its bytes, and its tokens.
type CachedSegment struct {
	text    string
	closed  bool // it ends after a control token
	after   engine.After
	fields  []render.Field // from the start of the text
	sampled []bool         // by field
	runs    Compact        // when not counting
	Tokens  int
	next    *CachedSegment // of the same hash
	at      int            // for the last time: where it is in stretchEncoder.met
}

func NewSegmentEncoder(p *Encoder, counting bool) *SegmentEncoder {
	return &SegmentEncoder{Encoder: p, seed: maphash.MakeSeed(), known: map[uint64]*CachedSegment{}, counting: counting}
}

// Each calls visit for the stretches of r.text[from:to] in order, with the byte
// at which each ends. Only the last may end elsewhere than after a control token.
func (e *SegmentEncoder) Each(r *render.Rendering, from, to int, visit func(s *CachedSegment, end int)) error {
	after := e.PrecedingContext(r, from)
	for i := r.FieldAfter(from); from < to; i = r.FieldAfterNear(i, from) {
		s, err := e.segment(r, i, from, to, after)
		if err != nil {
			return err
		}
		if len(e.history) == maxHistory {
			e.history = e.history[:0]
		}
		if e.remembers(s.text) {
			s.at, e.history = len(e.history), append(e.history, s)
		}
		from, after = from+len(s.text), engine.AfterToken
		visit(s, from)
		if cap(e.passing.IDs) > maxKnown {
			e.passing = Columns{}
		}
	}
	return nil
}

// segment returns the stretch at byte from, which ends at byte to at the latest. i is the
// first field that ends after from.
func (e *SegmentEncoder) segment(r *render.Rendering, i, from, to int, after engine.After) (*CachedSegment, error) {
	e.expected++
	if k := e.expected - 1; k < len(e.history) {
		s := e.history[k]
		if end := from + len(s.text); end == to || s.closed && end < to {
			if s.is(r.Text[from:end], after) && e.sameOrigin(s, r, i, from) {
				return s, nil
			}
		}
	}
	end, closed := e.end(r, i, from, to)
	text := r.Text[from:end]
	hash := maphash.String(e.seed, text)
	if i < len(r.Fields) && r.Fields[i].Start < end { // the same text in many messages: each has a chain of its own
		hash ^= uint64(r.Fields[i].Message) * 0x9E3779B97F4A7C15
	}
	for s := e.known[hash]; s != nil; s = s.next {
		if s.is(text, after) && e.sameOrigin(s, r, i, from) {
			e.expected = s.at + 1
			return s, nil
		}
	}
	s := &CachedSegment{text: text, closed: closed, after: after}
	for _, f := range r.Fields[i:] {
		if f.Start >= end {
			break
		}
		s.fields, s.sampled = append(s.fields, f.Within(from, end)), append(s.sampled, e.byPolicy(f))
	}
	if !e.remembers(text) {
		return s, e.into.encode(e.Encoder, r, from, end, after)
	}
	e.passing.Truncate(0)
	if err := e.Encode(&e.passing, r, from, end, after); err != nil {
		return nil, err
	}
	if s.Tokens = e.passing.Len(); !e.counting {
		s.runs = CompactOf(e.passing)
	}
	if e.bytes += len(text); e.bytes > maxKnown && !e.counting {
		clear(e.known)
		e.history, e.expected, e.bytes = nil, 0, len(text)
	}
	s.text = strings.Clone(text) // the memory of a rendering is used again
	s.next = e.known[hash]
	e.known[hash] = s
	return s, nil
}

// remembers reports whether a stretch of that text is kept for contexts to come.
func (e *SegmentEncoder) remembers(text string) bool { return e.counting || len(text) <= longestKnown }

// end returns the end of the first control token of the template after byte from, or
// to if there is none.
func (e *SegmentEncoder) end(r *render.Rendering, i, from, to int) (end int, closed bool) {
	for at := from; at < to; i++ {
		end := to // of the scaffold before the next field
		if i < len(r.Fields) {
			end = min(to, max(at, r.Fields[i].Start))
		}
		e.run = append(e.run[:0], r.Text[at:end]...)
		if e.spans = e.cuts.Append(e.spans[:0], e.run, nil); len(e.spans) > 0 {
			return at + e.spans[0].End, true
		}
		if i == len(r.Fields) {
			break
		}
		at = r.Fields[i].End
	}
	return to, false
}

func (s *CachedSegment) is(text string, after engine.After) bool {
	return s.after == after && s.text == text
}

// sameOrigin reports whether the bytes of r from byte from on, in whose text s stands,
// come from where those of s do. i is the first field that ends after from.
func (e *SegmentEncoder) sameOrigin(s *CachedSegment, r *render.Rendering, i, from int) bool {
	end := from + len(s.text)
	for k, own := range s.fields {
		if i+k == len(r.Fields) || r.Fields[i+k].Within(from, end) != own || e.byPolicy(r.Fields[i+k]) != s.sampled[k] {
			return false
		}
	}
	i += len(s.fields)
	return i == len(r.Fields) || r.Fields[i].Start >= end
}

func (e *SegmentEncoder) byPolicy(f render.Field) bool { return f.Message >= 0 && e.Sampled(f.Message) }
