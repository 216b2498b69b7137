package tokens

import (
	"sort"
	"strings"

	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/added"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// SegmentEncoder encodes the contexts of one rollout in segments. A segment ends with a
// control token that the template wrote; text after such a token is encoded independently,
// so a segment has the same tokens wherever it appears. Segments that a context no longer
// holds are cached, since a later one may show them again: so messages that move from
// context to context are encoded about once. It belongs to one goroutine.
type SegmentEncoder struct {
	*Encoder
	known map[segmentKey]*cachedSegment
	bytes int    // of text in known
	run   []byte // scratch: a run of scaffold
	spans []added.Span

	counting bool // only the number of tokens is kept

	// The last context: its text, the ends of its segments, its tokens and their number.
	last   render.Rendering
	list   []boundary
	Runs   Compact // empty while counting
	tokens int
	Bytes  int // of text that the rollout holds, about: for reserving memory
}

// boundary is a place in a context after which the encoding does not depend on what came
// before: the end of a segment or of a completion.
type boundary struct {
	At, Tokens int
	begin      int // first byte of the segment, −1 for a completion
	first      int // first token of the segment
	after      engine.After
	known      bool
}

// maxKnown bounds the bytes of the segments that are cached with their tokens.
const maxKnown = 4 << 20

// segmentKey is a text that ends with a control token. message is that of its first field,
// 0 for none, so that a text that many messages hold does not make one long chain.
type segmentKey struct {
	text    string
	after   engine.After
	message int32
}

// cachedSegment is the origin of the bytes of such a text, and its tokens.
type cachedSegment struct {
	fields  []render.Field // positions relative to the text
	sampled []bool         // by field
	runs    Compact        // empty while counting
	tokens  int
	next    *cachedSegment // with the same key
}

// NewSegmentEncoder returns a SegmentEncoder over p; with counting, only for Count.
func NewSegmentEncoder(p *Encoder, counting bool) *SegmentEncoder {
	return &SegmentEncoder{Encoder: p, known: map[segmentKey]*cachedSegment{}, counting: counting}
}

// encode appends the tokens of the segments of r.Text[from:to] to e.Runs, or counts them,
// and notes where the segments end.
func (e *SegmentEncoder) encode(r *render.Rendering, from, to int) error {
	after := e.PrecedingContext(r, from)
	for i := r.FieldAfter(from); from < to; i = r.FieldAfterNear(i, from) {
		s, end := e.find(r, i, from, to, after)
		b := boundary{begin: from, first: e.tokens, after: after, known: s != nil}
		if s != nil {
			e.Reserve(s.tokens, end)
			e.tokens += s.tokens
			e.Runs.replay(&s.runs, 0)
		} else {
			e.Reserve((end-from)/2, end)
			n := e.Runs.Len()
			if err := e.Encode(&e.Runs, r, from, end, after); err != nil {
				return err
			}
			e.tokens += e.Runs.Len() - n
		}
		if b.At, b.Tokens = end, e.tokens; end < to {
			if e.counting && s == nil {
				e.remember(r, b)
				b.known = true
			}
			e.list = append(e.list, b)
		}
		if e.counting {
			e.Runs.Truncate(0)
		}
		from, after = end, engine.AfterToken
	}
	return nil
}

// goOn makes r the last context and returns the last boundary that it shares with the
// context before. The segments after that boundary are cached.
func (e *SegmentEncoder) goOn(r render.Rendering) boundary {
	common := render.CommonPrefix(&e.last, &r)
	n := sort.Search(len(e.list), func(i int) bool { return e.list[i].At+e.Longest > common })
	keep := boundary{}
	if n > 0 {
		keep = e.list[n-1]
	}
	for _, b := range e.list[n:] {
		if !b.known && b.begin >= 0 {
			e.remember(&e.last, b)
		}
	}
	e.last, e.list, e.tokens = r, e.list[:n], keep.Tokens
	if !e.counting {
		e.Runs.Truncate(keep.Tokens)
	}
	return keep
}

// Restart forgets the last context; cached segments stay.
func (e *SegmentEncoder) Restart() { e.last, e.list = render.Rendering{}, nil }

// Count returns the number of tokens of r.
func (e *SegmentEncoder) Count(r render.Rendering) (int, error) {
	keep := e.goOn(r)
	err := e.encode(&r, keep.At, len(r.Text))
	return e.tokens, err
}

// Reserve makes room for n more tokens, which end at byte end of a context. If they are many
// it also makes room for those of the contexts to come, which would move them again.
func (e *SegmentEncoder) Reserve(n, end int) {
	have := e.Runs.Len() + n
	if have < hugeIDs/4 || cap(e.Runs.IDs) >= have {
		return
	}
	more := float64(have) * float64(max(0, e.Bytes-end)) / float64(max(1, end))
	e.Runs.grow(n + int(min(more, 8*float64(have)))*17/16)
}

// find returns the end of the segment at byte from, at most to, and the cached segment, nil
// if there is none. i is the first field that ends after from.
func (e *SegmentEncoder) find(r *render.Rendering, i, from, to int, after engine.After) (s *cachedSegment, end int) {
	end = e.end(r, i, from, to)
	for s := e.known[keyOf(r, i, from, end, after)]; s != nil; s = s.next {
		if e.sameOrigin(s, r, i, from, end) {
			return s, end
		}
	}
	return nil, end
}

// keyOf is the key of r.Text[from:end], whose first field is i.
func keyOf(r *render.Rendering, i, from, end int, after engine.After) segmentKey {
	k := segmentKey{text: r.Text[from:end], after: after}
	if i < len(r.Fields) && r.Fields[i].Start < end {
		k.message = r.Fields[i].Message
	}
	return k
}

// remember caches the segment of r that ends at b.
func (e *SegmentEncoder) remember(r *render.Rendering, b boundary) {
	text := r.Text[b.begin:b.At]
	if !e.counting && len(text) > maxKnown {
		return
	}
	i := r.FieldAfter(b.begin)
	key := keyOf(r, i, b.begin, b.At, b.after)
	key.text = strings.Clone(text) // the memory of a rendering is reused
	s := &cachedSegment{tokens: b.Tokens - b.first}
	for ; i < len(r.Fields) && r.Fields[i].Start < b.At; i++ {
		s.fields, s.sampled = append(s.fields, r.Fields[i].Within(b.begin, b.At)), append(s.sampled, e.byPolicy(r.Fields[i]))
	}
	if !e.counting {
		s.runs = e.Runs.Clone(b.first, b.Tokens)
	}
	if e.bytes += len(text); e.bytes > maxKnown && !e.counting {
		clear(e.known)
		e.bytes = len(text)
	}
	s.next = e.known[key]
	e.known[key] = s
}

// end returns the end of the first control token that the template wrote after byte from,
// or to if there is none. i is the first field that ends after from.
func (e *SegmentEncoder) end(r *render.Rendering, i, from, to int) int {
	for at := from; at < to; i++ {
		end := to // end of the scaffold before the next field
		if i < len(r.Fields) {
			end = min(to, max(at, r.Fields[i].Start))
		}
		e.run = append(e.run[:0], r.Text[at:end]...)
		if e.spans = e.cuts.Append(e.spans[:0], e.run, nil); len(e.spans) > 0 {
			return at + e.spans[0].End
		}
		if i == len(r.Fields) {
			break
		}
		at = r.Fields[i].End
	}
	return to
}

// sameOrigin reports whether r.Text[from:end], the text of s, has the same origin there. i
// is the first field that ends after from.
func (e *SegmentEncoder) sameOrigin(s *cachedSegment, r *render.Rendering, i, from, end int) bool {
	for k, own := range s.fields {
		if i+k == len(r.Fields) || r.Fields[i+k].Within(from, end) != own || e.byPolicy(r.Fields[i+k]) != s.sampled[k] {
			return false
		}
	}
	i += len(s.fields)
	return i == len(r.Fields) || r.Fields[i].Start >= end
}

func (e *SegmentEncoder) byPolicy(f render.Field) bool { return f.Message >= 0 && e.Sampled(f.Message) }
