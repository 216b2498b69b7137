package bpe

import (
	"math"
	"slices"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/model"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/rx"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Encode implements [engine.Tokenizer].
func (t *Tokenizer) Encode(dst *engine.Encoding, text string, opts engine.EncodeOptions) error {
	if err := t.made(); err != nil {
		return err
	}
	e := t.pool.Get().(*encoder)
	defer e.release()
	e.ids, e.offsets, e.wide, e.first = dst.IDs, dst.Offsets, opts.Offsets, len(dst.IDs)
	if err := e.run(text, opts); err != nil {
		return err
	}
	dst.IDs = e.ids
	if opts.Offsets {
		dst.Offsets = e.offsets
	}
	return nil
}

// AppendIDs appends the ids of text to dst, with every added token honoured. It
// allocates nothing where dst has room.
func (t *Tokenizer) AppendIDs(dst []rollout.TokenID, text string) ([]rollout.TokenID, error) {
	if err := t.made(); err != nil {
		return dst, err
	}
	e := t.pool.Get().(*encoder)
	defer e.release()
	e.ids = dst
	if err := e.run(text, engine.EncodeOptions{}); err != nil {
		return dst, err
	}
	return e.ids, nil
}

// Count returns the number of ids of text, with every added token honoured. It
// keeps no ids.
func (t *Tokenizer) Count(text string) (int, error) {
	if err := t.made(); err != nil {
		return 0, err
	}
	e := t.pool.Get().(*encoder)
	defer e.release()
	e.ids, e.counting = e.own[:0], true
	err := e.run(text, engine.EncodeOptions{})
	e.own = e.ids[:0]
	return e.count + len(e.ids), err
}

// encoder is the working memory of one call.
type encoder struct {
	t        *Tokenizer
	ids      []rollout.TokenID
	offsets  []int32
	wide     bool // offsets are asked for
	counting bool // ids are thrown away now and then
	count    int
	first    int    // len(ids) when the call began
	text     string // given to Encode
	settled  bool   // the normalizer changes nothing in it
	grown    int    // bytes that normalizing and splitting have made so far
	began    time.Time
	own      []rollout.TokenID
	entry    *encoder // of a segment by itself

	src, seg    norm.Text
	early, late []engine.AddedSpan
	ahead       [8]stretch
	pieces      []norm.Text
	words       []model.Word
}

func (e *encoder) release() {
	t := e.t
	clear(e.pieces[:cap(e.pieces)])
	*e = encoder{t: t, own: e.own, entry: e.entry, early: e.early[:0], late: e.late[:0], pieces: e.pieces[:0], words: e.words[:0]}
	t.pool.Put(e)
}

// keeper adapts a caller's filter to positions in a text.
func keeper(tokens []engine.AddedToken, text *norm.Text, added func(engine.AddedMatch) bool) func(token, start, end int) bool {
	if added == nil {
		return nil
	}
	return func(token, start, end int) bool {
		a, b := text.Range(start, end)
		return added(engine.AddedMatch{Token: tokens[token], Start: a, End: b})
	}
}

func (e *encoder) run(text string, opts engine.EncodeOptions) error {
	if len(text) > math.MaxInt32 {
		return rollout.Errorf(rollout.KindLimit, rollout.Where{}, "the text has %d bytes, more than offsets can say (%d)", len(text), math.MaxInt32).
			WithFix("encode it in parts")
	}
	t := e.t
	e.text = text
	if t.timed {
		e.began = time.Now()
	}
	b := unsafe.Slice(unsafe.StringData(text), len(text))
	valid := false
	if f, ok := t.normalizer.(norm.Form); ok {
		valid, e.settled = f.Settled(t.u, b)
	} else {
		valid = utf8.Valid(b)
	}
	if valid {
		e.src = norm.Text{Buf: b}
	} else {
		e.src = norm.Lossy(b)
	}
	e.src.After = opts.After
	added := opts.Added
	e.early = t.earlyMatcher.Append(e.early[:0], e.src.Buf, keeper(t.early, &e.src, added))
	at := 0
	for _, s := range e.early {
		if err := e.between(at, s.Start, added); err != nil {
			return err
		}
		e.token(t.early[s.Token].ID, &e.src, s)
		at = s.End
	}
	return e.between(at, len(e.src.Buf), added)
}

func (e *encoder) token(id rollout.TokenID, text *norm.Text, s engine.AddedSpan) {
	e.ids = append(e.ids, id)
	if e.wide {
		a, b := text.Range(s.Start, s.End)
		e.offset(len(e.ids)-1, a, b, text.Buf[s.Start:s.End])
	}
}

// offset appends the range of id k, whose spelling matters only to
// post-processors that trim offsets; nil stands for the vocabulary's.
func (e *encoder) offset(k, a, b int, spelling []byte) {
	if len(e.t.trim) > 0 {
		if spelling == nil {
			spelling, _ = e.t.model.Vocab.Bytes(int(e.ids[k]))
		}
		a, b = e.trimmed(k, a, b, spelling)
	}
	e.offsets = append(e.offsets, int32(a), int32(b))
}

// between encodes the source from a to b, which holds no early token.
func (e *encoder) between(a, b int, added func(engine.AddedMatch) bool) error {
	if a >= b {
		return nil
	}
	t := e.t
	e.seg = e.src.Slice(a, b)
	if t.normalizer != nil && !e.settled {
		e.seg.Most = e.room()
		if err := t.normalizer.Apply(t.u, &e.seg); err != nil {
			return rollout.Errorf(rollout.KindTokenizer, rollout.Where{Byte: rollout.At(a)}, "the text cannot be normalised: %w", err)
		}
		e.grown += len(e.seg.Buf)
		if err := e.inTime(); err != nil {
			return err
		}
	}
	if t.lateMatcher.Len() == 0 {
		return e.encode(e.seg)
	}
	e.late = t.lateMatcher.Append(e.late[:0], e.seg.Buf, keeper(t.late, &e.seg, added))
	at := 0
	for _, s := range e.late {
		if at < s.Start {
			if err := e.encode(e.seg.Slice(at, s.Start)); err != nil {
				return err
			}
		}
		e.token(t.late[s.Token].ID, &e.seg, s)
		at = s.End
	}
	if at < len(e.seg.Buf) {
		return e.encode(e.seg.Slice(at, len(e.seg.Buf)))
	}
	return nil
}

const (
	// growth and growthSlack bound what normalizing and splitting make of a text (and
	// decoding of its tokens), at each step: so many times its bytes, and some more.
	// No published tokenizer comes near; a few lines of tokenizer.json could ask for
	// any number.
	growth      = 16
	growthSlack = 64 << 10
)

// inTime is an error where a tokenizer whose patterns may backtrack takes too long.
// A pattern that does has its own bound for each match; this one is for a text of
// many sections.
func (e *encoder) inTime() error {
	most := 2*time.Second + time.Duration(len(e.text))*rx.TimePerByte
	if !e.t.timed || time.Since(e.began) < most {
		return nil
	}
	return rollout.Errorf(rollout.KindTokenizer, rollout.Where{}, "encoding %d bytes takes more than %v: %w", len(e.text), most, rx.ErrTooComplex)
}

// room is how many bytes the text may still grow to.
func (e *encoder) room() int { return max(1, len(e.text)*growth+growthSlack-e.grown) }

// encode cuts a text without added tokens into pieces and encodes each.
func (e *encoder) encode(text norm.Text) error {
	t := e.t
	if t.splitter != nil {
		e.scan(&text)
		return nil
	}
	text.Most = e.room()
	e.pieces = append(e.pieces[:0], text)
	var err error
	total := 0
	for _, s := range t.stages {
		if e.pieces, err = s.Apply(t.u, e.pieces); err == nil {
			total = 0
			for i := range e.pieces {
				total += len(e.pieces[i].Buf)
			}
			if total > text.Most {
				err = norm.ErrTooLong
			}
		}
		if err != nil {
			return rollout.Errorf(rollout.KindTokenizer, rollout.Where{}, "the text cannot be split: %w", err)
		}
	}
	e.grown += total
	if err := e.inTime(); err != nil {
		return err
	}
	for i := range e.pieces {
		p := &e.pieces[i]
		if len(p.Buf) == 0 {
			continue
		}
		if t.raw {
			e.piece(p, 0, len(p.Buf))
			continue
		}
		if e.words, err = t.model.AppendWord(e.words[:0], p.Buf); err != nil {
			return rollout.Errorf(rollout.KindTokenizer, rollout.Where{}, "%w", err)
		}
		pos := 0
		for _, w := range e.words {
			e.ids = append(e.ids, w.ID)
			if e.wide {
				a, b := p.Range(pos, pos+int(w.Bytes))
				e.offset(len(e.ids)-1, a, b, nil)
			}
			pos += int(w.Bytes)
		}
		e.spill()
	}
	return nil
}

// segmenter is a scanner that knows stretches that stand for themselves.
type segmenter interface {
	Segment(s []byte, i, max int) int
}

// pieceRun is how far pieces are encoded one by one where no segment begins.
const pieceRun = 64

// scan encodes text with one scanner. Segments are looked for some at a time, and
// what the store has for them is asked for at once, since it waits for memory.
func (e *encoder) scan(text *norm.Text) {
	s, t := text.Buf, e.t
	segments := t.segmenter != nil && (!e.wide || text.Al == nil && len(t.trim) == 0)
	for i := 0; i < len(s); {
		ahead := e.ahead[:0]
		at := i
		for segments && len(ahead) < len(e.ahead) && len(s)-at > minSegment {
			end := t.segmenter.Segment(s, at, model.MaxSegment)
			if end == 0 {
				break
			}
			h := model.Hash(s[at:end])
			t.segments.Touch(h)
			ahead = append(ahead, stretch{at, end, h, nil})
			at = end
		}
		for k := range ahead {
			ahead[k].entry = t.segments.Candidate(ahead[k].hash)
		}
		for _, x := range ahead {
			e.segment(text, x)
			e.spill()
		}
		i = at
		if len(ahead) < len(e.ahead) && i < len(s) {
			i = e.pieceByPiece(text, i, min(len(s), i+pieceRun))
			e.spill()
		}
	}
}

// stretch is a segment of a text.
type stretch struct {
	from, to int
	hash     uint64
	entry    *model.Segment // may be another's
}

const (
	// minSegment is how much text must be left for a segment to be looked for.
	minSegment = 32
	// segmentBits makes room for 131,072 segments.
	segmentBits = 15
)

// segment encodes x by its own entry where it has one.
func (e *encoder) segment(text *norm.Text, x stretch) {
	b := text.Buf[x.from:x.to]
	base, plain := text.Unchanged(x.from, x.to)
	if e.wide && !plain {
		e.pieceByPiece(text, x.from, x.to)
		return
	}
	store := e.t.segments
	hit := x.entry
	if hit == nil || !hit.Is(b, x.hash) {
		hit = store.Find(b, x.hash)
	}
	if hit == nil {
		if !store.Wants(x.hash) {
			e.pieceByPiece(text, x.from, x.to)
			return
		}
		// met before: worth an entry, offsets included
		if e.entry == nil {
			e.entry = &encoder{t: e.t, wide: true}
		}
		own := e.entry
		own.ids, own.offsets = own.ids[:0], own.offsets[:0]
		own.pieceByPiece(&norm.Text{Buf: b}, 0, len(b))
		hit = store.Put(b, x.hash, own.ids, own.offsets)
	}
	e.ids = append(e.ids, hit.IDs()...)
	if !e.wide {
		return
	}
	more, n := 2*len(hit.IDs()), len(e.offsets)
	e.offsets = slices.Grow(e.offsets, more)[:n+more]
	hit.Offsets(e.offsets[n:], int32(base))
}

// pieceByPiece encodes pieces from i up to the first boundary at or behind end, which
// it returns.
func (e *encoder) pieceByPiece(text *norm.Text, i, end int) int {
	first, at := len(e.ids), i
	e.ids, i = e.t.model.AppendPieces(e.ids, text.Buf, i, end, e.t.splitter)
	if e.wide {
		e.ranges(text, first, at, i)
	}
	return i
}

// piece encodes text.Buf[i:j], plain bytes.
func (e *encoder) piece(text *norm.Text, i, j int) {
	first := len(e.ids)
	e.ids = e.t.model.AppendRaw(e.ids, text.Buf, i, j)
	if e.wide {
		e.ranges(text, first, i, j)
	}
	e.spill()
}

// ranges appends the offsets of the ids from first on, those of text.Buf[i:j].
func (e *encoder) ranges(text *norm.Text, first, i, j int) {
	s, m := text.Buf, e.t.model
	base, plain := text.Unchanged(i, j)
	if !plain || len(e.t.trim) > 0 {
		for k := first; k < len(e.ids); k++ {
			end := i + m.Width(e.ids[k])
			a, b := text.Range(i, end)
			e.offset(k, a, b, nil)
			i = end
		}
		return
	}
	for shift := base - i; first < len(e.ids); first++ {
		end := i + m.Width(e.ids[first])
		a, b := i, end
		if !e.t.exact { // the range of whole characters
			for inside(s, a) {
				a--
			}
			for inside(s, b) {
				b++
			}
		}
		e.offsets = append(e.offsets, int32(shift+a), int32(shift+b))
		i = end
	}
}

// inside reports whether byte i of s is in the middle of a character.
func inside(s []byte, i int) bool { return i < len(s) && s[i]&0xC0 == 0x80 }

// spillLen is how many ids a counting call holds before it forgets them.
const spillLen = 4096

func (e *encoder) spill() {
	if e.counting && len(e.ids) > spillLen {
		e.count += len(e.ids)
		e.ids = e.ids[:0]
	}
}

// trimmed applies the offset rule of post-processors to id k: white space at the
// ends of its spelling is left out of its range.
func (e *encoder) trimmed(k, a, b int, spelling []byte) (int, int) {
	for _, rule := range e.t.trim {
		lead, trail := spacesAround(e.t.u, spelling)
		if rule.prefixSpace && lead == 1 && e.src.After == engine.AfterNothing && (k == e.first || a == 0) {
			lead = 0 // the space put in front, which the text does not have
		}
		for ; lead > 0 && a < b; lead-- {
			_, size := utf8.DecodeRuneInString(e.text[a:])
			a += size
		}
		if b < utf8.UTFMax*trail && utf8.RuneCountInString(e.text[:b]) < trail {
			trail = 0
		}
		for ; trail > 0 && b > a; trail-- {
			_, size := utf8.DecodeLastRuneInString(e.text[:b])
			b -= size
		}
	}
	return a, b
}

// spacesAround counts the characters for white space at the ends of a spelling.
func spacesAround(u *uni.Tables, b []byte) (lead, trail int) {
	space := func(r rune) bool { return r == norm.ByteChar(' ') || u.Flags(r)&uni.Space != 0 }
	n := 0
	counting := true
	for i := 0; i < len(b); {
		r, size := uni.DecodeRune(b[i:])
		i += size
		n++
		if space(r) {
			if counting {
				lead = n
			}
			trail++
			continue
		}
		counting, trail = false, 0
	}
	return lead, trail
}

func sortAdded(list []engine.AddedToken) {
	slices.SortStableFunc(list, func(a, b engine.AddedToken) int { return int(a.ID) - int(b.ID) })
}
