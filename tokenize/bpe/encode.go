package bpe

import (
	"math"
	"runtime"
	"slices"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/model"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/rx"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/added"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Encode implements [engine.Tokenizer].
func (t *tokenizer) Encode(dst *engine.Encoding, text string, opts engine.EncodeOptions) error {
	e := t.encoder()
	defer e.release()
	e.ids, e.offsets, e.wide, e.first = dst.IDs, dst.Offsets, opts.Offsets, len(dst.IDs)
	if len(t.trim) == 0 { // trimming needs the first token of the whole text
		e.section = opts.Section
	}
	if err := e.run(text, opts); err != nil {
		return err
	}
	dst.IDs = e.ids
	if opts.Offsets {
		dst.Offsets = e.offsets
	}
	return nil
}

// encoder is the working memory of one call.
type encoder struct {
	t       *tokenizer
	ids     []rollout.TokenID
	offsets []int32
	wide    bool // offsets are requested
	first   int  // len(ids) at the start of the call
	section func(*engine.Encoding) error
	text    string // the argument of Encode
	settled bool   // the normalizer does not change the text
	grown   int    // bytes made so far by normalizing and splitting
	until   *time.Time

	src, seg    norm.Text
	early, late []added.Span
	pieces      []norm.Text
	spare       []norm.Text // buffer for the pieces of the next stage
	words       []model.Word
	worker      *model.Worker
}

// encoder returns an encoder that no other call uses.
func (t *tokenizer) encoder() *encoder {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.idle) - 1; n >= 0 {
		e := t.idle[n]
		t.idle = t.idle[:n]
		return e
	}
	return &encoder{t: t, worker: t.model.NewWorker()}
}

// mostKept is the number of added tokens, pieces and words for which an encoder keeps room between calls.
const mostKept = 1 << 13

// release keeps e for a later call, up to as many encoders as can run at once, without the memory that only a long
// text needs.
func (e *encoder) release() {
	t := e.t
	if cap(e.early)+cap(e.late)+cap(e.pieces)+cap(e.spare)+cap(e.words) > mostKept {
		e.early, e.late, e.pieces, e.spare, e.words = nil, nil, nil, nil, nil
	}
	clear(e.pieces[:cap(e.pieces)])
	clear(e.spare[:cap(e.spare)])
	e.worker.Rest()
	*e = encoder{t: t, early: e.early[:0], late: e.late[:0], pieces: e.pieces[:0], spare: e.spare[:0], words: e.words[:0], worker: e.worker}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle) < runtime.GOMAXPROCS(0) {
		t.idle = append(t.idle, e)
	}
}

// keeper adapts the filter of a caller to positions in text. It returns nil for a nil filter.
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
	e.until = t.deadline(len(text))
	b := unsafe.Slice(unsafe.StringData(text), len(text))
	valid := false
	if t.form != nil {
		valid, e.settled = t.form.Settled(t.u, b)
	} else {
		valid = utf8.Valid(b)
	}
	if valid {
		e.src = norm.Text{Buf: b}
	} else {
		e.src = norm.Lossy(b)
	}
	e.src.After = opts.After
	if opts.Widths && valid && t.measured && (len(t.normalizers) == 0 || e.settled) {
		e.wide = false
	}
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

func (e *encoder) token(id rollout.TokenID, text *norm.Text, s added.Span) {
	e.ids = append(e.ids, id)
	if e.wide {
		a, b := text.Range(s.Start, s.End)
		e.offset(len(e.ids)-1, a, b, text.Buf[s.Start:s.End])
	}
}

// offset appends the range of id k. spelling matters only to post-processors that trim offsets; nil means the
// spelling in the vocabulary.
func (e *encoder) offset(k, a, b int, spelling []byte) {
	if len(e.t.trim) > 0 {
		if spelling == nil {
			spelling, _ = e.t.model.Vocab.Bytes(int(e.ids[k]))
		}
		a, b = e.trimmed(k, a, b, spelling)
	}
	e.offsets = append(e.offsets, int32(a), int32(b))
}

// between encodes the source from a to b, which contains no early token.
func (e *encoder) between(a, b int, added func(engine.AddedMatch) bool) error {
	if a >= b {
		return nil
	}
	t := e.t
	e.seg = e.src.Slice(a, b)
	if len(t.normalizers) > 0 && !e.settled {
		e.seg.Most, e.seg.Until = e.room(), e.until
		if err := t.normalize(&e.seg); err != nil {
			return rollout.Errorf(rollout.KindTokenizer, rollout.Where{Byte: rollout.At(a)}, "the text cannot be normalised: %w", err)
		}
		e.grown += len(e.seg.Buf)
		if err := e.checkDeadline(); err != nil {
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
	// growth and growthSlack bound the output of each step of normalizing, splitting and decoding: at most growth
	// times the input plus growthSlack bytes. No published tokenizer comes near, but a few lines of tokenizer.json
	// can ask for any amount.
	growth      = 16
	growthSlack = 64 << 10
)

// checkDeadline returns an error if a tokenizer whose patterns may backtrack exceeds its time. Each match of such a pattern
// has its own bound; this one is for texts of many sections.
func (e *encoder) checkDeadline() error {
	if e.until == nil || time.Now().Before(*e.until) {
		return nil
	}
	return rollout.Errorf(rollout.KindTokenizer, rollout.Where{}, "encoding %d bytes takes more than %v: %w", len(e.text), matchingTime(len(e.text)), rx.ErrTooComplex)
}

// matchingTime returns the time allowed for patterns that may backtrack in a text of n bytes.
func matchingTime(n int) time.Duration { return 2*time.Second + time.Duration(n)*rx.TimePerByte }

// deadline returns when to give up work on n bytes, or nil if t has no pattern that may backtrack.
func (t *tokenizer) deadline(n int) *time.Time {
	if !t.timed {
		return nil
	}
	until := time.Now().Add(matchingTime(n))
	return &until
}

// room returns how many more bytes normalizing and splitting may make.
func (e *encoder) room() int { return max(1, len(e.text)*growth+growthSlack-e.grown) }

// encode cuts a text without added tokens into pieces and encodes each.
func (e *encoder) encode(text norm.Text) error {
	t := e.t
	if t.splitter != nil {
		return e.scan(&text)
	}
	if err := e.split(text); err != nil {
		return rollout.Errorf(rollout.KindTokenizer, rollout.Where{}, "the text cannot be split: %w", err)
	}
	if err := e.checkDeadline(); err != nil {
		return err
	}
	for i := range e.pieces {
		p := &e.pieces[i]
		if len(p.Buf) == 0 {
			continue
		}
		if err := e.endSection(); err != nil {
			return err
		}
		if t.raw {
			first := len(e.ids)
			e.ids = e.worker.AppendPiece(e.ids, p.Buf)
			if e.wide {
				e.ranges(p, first, 0)
			}
			continue
		}
		var err error
		if e.words, err = e.worker.AppendWord(e.words[:0], p.Buf); err != nil {
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
	}
	return nil
}

// split cuts a text into pieces, stage by stage.
func (e *encoder) split(text norm.Text) (err error) {
	text.Most, text.Until = e.room(), e.until
	e.pieces = append(e.pieces[:0], text)
	total := 0
	for _, s := range e.t.stages {
		made := e.spare[:0]
		total = 0
		for i := range e.pieces {
			n := len(made)
			if made, err = s(e.t.u, made, &e.pieces[i]); err != nil {
				return err
			}
			for ; n < len(made); n++ {
				total += len(made[n].Buf)
			}
			if total > text.Most {
				return norm.ErrTooLong
			}
		}
		e.pieces, e.spare = made, e.pieces
	}
	e.grown += total
	return nil
}

// scan encodes text with one scanner.
func (e *encoder) scan(text *norm.Text) error {
	t, n := e.t, len(text.Buf)
	base, unchanged := text.Unchanged(0, n)
	for i := 0; i < n; {
		to := i + sectionBytes
		for e.wide && i < min(n, to) { // while the ids are in cache
			first, at := len(e.ids), i
			if e.ids, i = e.worker.Append(e.ids, text.Buf, i, i+rangedBytes, t.splitter); unchanged && len(t.trim) == 0 {
				e.offsets = t.model.AppendRanges(e.offsets, e.ids[first:], text.Buf, at, base)
			} else {
				e.ranges(text, first, at)
			}
		}
		e.ids, i = e.worker.Append(e.ids, text.Buf, i, to, t.splitter)
		if err := e.endSection(); err != nil {
			return err
		}
	}
	return nil
}

const (
	// sectionBytes is how much text is encoded before its tokens are passed on, rangedBytes how much is encoded
	// before the ranges of its tokens are computed.
	sectionBytes = 64 << 10
	rangedBytes  = 2 << 10
)

// endSection passes on the tokens so far if there are many.
func (e *encoder) endSection() error {
	if e.section == nil || len(e.ids) < sectionBytes/8 {
		return nil
	}
	made := engine.Encoding{IDs: e.ids, Offsets: e.offsets}
	err := e.section(&made)
	e.ids, e.offsets = made.IDs, made.Offsets
	return err
}

// ranges appends the offsets of the ids from first on, which cover text from byte i on.
func (e *encoder) ranges(text *norm.Text, first, i int) {
	for k := first; k < len(e.ids); k++ {
		end := i + e.t.model.Width(e.ids[k])
		a, b := text.Range(i, end)
		e.offset(k, a, b, nil)
		i = end
	}
}

// trimmed returns the range [a, b) of id k without the white space at the ends of its spelling, as post-processors
// require.
func (e *encoder) trimmed(k, a, b int, spelling []byte) (int, int) {
	for _, rule := range e.t.trim {
		lead, trail := spacesAround(e.t.u, spelling)
		if rule.prefixSpace && lead == 1 && e.src.After == engine.AfterNothing && (k == e.first || a == 0) {
			lead = 0 // the prepended space is not in the text
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

// spacesAround returns the number of characters for white space at each end of a spelling.
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
