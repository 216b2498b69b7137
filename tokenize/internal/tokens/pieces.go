package tokens

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/added"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// AddedTokens answers what encoding asks about the added tokens of a vocabulary.
type AddedTokens struct {
	byID map[rollout.TokenID]engine.AddedToken
	// lowest is the first added id and is a bit set of all of them: a quick test, since
	// nearly no token is an added one.
	lowest rollout.TokenID
	is     []uint64
	// text holds the added tokens that ordinary text can also encode to.
	text map[rollout.TokenID]bool
	// Longest is the length in bytes of the longest added token: how far a match may look ahead.
	Longest int
	// byContent finds a token by its content. lengths holds, for each last byte, the
	// lengths of the tokens that end with it.
	byContent map[string]engine.AddedToken
	lengths   [256][]int
	// cuts finds the tokens after which the text is encoded independently.
	cuts *added.Matcher
	cut  map[rollout.TokenID]bool
	// widths holds the number of bytes of each token, nil where the tokenizer does not tell.
	widths []uint16
}

// NewAddedTokens reads the added tokens of tok's vocabulary.
func NewAddedTokens(tok engine.Tokenizer) (*AddedTokens, error) {
	v := tok.Vocab()
	t := &AddedTokens{byID: map[rollout.TokenID]engine.AddedToken{}, text: map[rollout.TokenID]bool{}, byContent: map[string]engine.AddedToken{}}
	all := v.Added()
	highest := rollout.TokenID(0)
	t.lowest = math.MaxInt32
	for _, a := range all {
		t.lowest, highest = min(t.lowest, a.ID), max(highest, a.ID)
	}
	t.is = make([]uint64, highest/64+1) // the vocabulary of no model has every id
	alone := standAlone(all)
	var plain engine.Encoding
	var cuts []engine.AddedToken
	for i, a := range all {
		t.byID[a.ID] = a
		t.is[a.ID/64] |= 1 << (a.ID % 64)
		t.Longest = max(t.Longest, len(a.Content))
		if n := len(a.Content); n > 0 {
			t.byContent[a.Content] = a
			if last := &t.lengths[a.Content[n-1]]; !slices.Contains(*last, n) {
				*last = append(*last, n)
			}
		}
		if !a.Special {
			plain.Reset()
			if err := tok.Encode(&plain, a.Content, engine.EncodeOptions{Added: engine.NoAdded}); err != nil {
				return nil, err
			}
			if slices.Contains(plain.IDs, a.ID) {
				t.text[a.ID] = true
			}
		}
		if a.Special && !a.RStrip && !a.SingleWord && !a.Normalized && alone[i] {
			cuts = append(cuts, a)
		}
	}
	if m, ok := tok.(engine.Measured); ok {
		t.widths = m.Widths()
	}
	t.cuts, t.cut = added.New(cuts, nil), map[rollout.TokenID]bool{}
	for _, a := range cuts {
		t.cut[a.ID] = true
	}
	return t, nil
}

// Cuts reports whether the text after token id is encoded independently.
func (t *AddedTokens) Cuts(id rollout.TokenID) bool { return t.cut[id] }

// Find returns the added token with this id.
func (t *AddedTokens) Find(id rollout.TokenID) (engine.AddedToken, bool) {
	if !t.has(id) {
		return engine.AddedToken{}, false
	}
	return t.byID[id], true
}

func (t *AddedTokens) has(id rollout.TokenID) bool {
	return id >= t.lowest && int(id/64) < len(t.is) && t.is[id/64]&(1<<(id%64)) != 0
}

// Encoder turns rendered text into columns. It belongs to one goroutine.
type Encoder struct {
	*AddedTokens
	tok    engine.Tokenizer
	parity bool
	// Sampled reports whether the policy wrote message m.
	Sampled func(m int32) bool
	// Written collects the parts of each message that were encoded; nil to collect none.
	Written []render.Parts
	// Buf holds the tokens of the last call: all of them where Whole is set, else the
	// last section of a long text.
	Buf   engine.Encoding
	Whole bool // Buf must hold the whole text, with offsets

	call    call
	added   func(engine.AddedMatch) bool
	section func(*engine.Encoding) error
}

// NewEncoder returns an Encoder for tok and its added tokens. With parity, every
// occurrence of an added token counts, whoever wrote it.
func NewEncoder(tok engine.Tokenizer, added *AddedTokens, parity bool) *Encoder {
	p := &Encoder{AddedTokens: added, tok: tok, parity: parity}
	if !parity {
		p.added = p.mayAdd
	}
	p.section = p.takeSection
	return p
}

// call is the request of one Encode and its progress.
type call struct {
	dst   *Compact
	n     int // length of dst at the beginning
	r     *render.Rendering
	from  int
	to    int
	at    int // where the next token begins
	field int // first field that may hold the next token
	match int // first field that may hold the next added token
}

// Encode appends the tokens of r.Text[from:to] to dst; after says what precedes the text.
func (p *Encoder) Encode(dst *Compact, r *render.Rendering, from, to int, after engine.After) error {
	p.Buf.Reset()
	first := r.FieldAfter(from)
	for i := first; p.Written != nil && i < len(r.Fields) && r.Fields[i].Start < to; i++ {
		if f := r.Fields[i]; f.Message >= 0 && int(f.Message) < len(p.Written) {
			p.Written[f.Message].Add(f.Part)
		}
	}
	p.call = call{dst: dst, n: dst.Len(), r: r, from: from, to: to, at: from, field: first, match: first}
	opts := engine.EncodeOptions{Offsets: true, Widths: !p.Whole && p.widths != nil, After: after, Added: p.added, Section: p.section}
	if p.Whole {
		opts.Section = nil
	}
	err := p.tok.Encode(&p.Buf, r.Text[from:to], opts)
	if err == nil {
		err = p.take(&p.Buf, to)
	}
	if err != nil {
		dst.Truncate(p.call.n)
	}
	p.call.dst, p.call.r = nil, nil
	return err
}

// EncodeAll returns the tokens of r after what precedes it.
func (p *Encoder) EncodeAll(r *render.Rendering) (Columns, error) {
	var runs Compact
	err := p.Encode(&runs, r, 0, len(r.Text), p.PrecedingContext(r, 0))
	return runs.Slice(0, runs.Len()), err
}

// mayAdd is the guard in the form that the tokenizer calls.
func (p *Encoder) mayAdd(m engine.AddedMatch) bool {
	c := &p.call
	c.match = c.r.FieldAfterNear(c.match, c.from+m.Start)
	return p.trusted(c.r, c.match, c.from+m.End, m.Token)
}

// takeSection takes the tokens of a section of a long text.
func (p *Encoder) takeSection(section *engine.Encoding) error {
	c := &p.call
	if cap(c.dst.IDs)-c.dst.Len() < len(section.IDs) {
		// Estimate the rest from the part so far, but never a long rest from a short part.
		made, done := c.dst.Len()-c.n, c.at-c.from
		c.dst.grow(max(len(section.IDs), min(8*made, made*(c.to-c.at)/max(1, done)*17/16)))
	}
	err := p.take(section, -1)
	section.Reset()
	return err
}

// take appends the next tokens. They end at byte to, or -1 where that is unknown.
func (p *Encoder) take(part *engine.Encoding, to int) error {
	have, dst, r := &p.call, p.call.dst, p.call.r
	ids, measured := part.IDs, len(part.Offsets) == 0
	n := dst.Len()
	dst.grow(len(ids))
	dst.IDs = append(dst.IDs, ids...)
	f, flags := field(r, have.field)
	same := run{source: -1} // the run before token i, not yet put
	tried := -1             // the last field that firstAfter was tried for
	for i := 0; i < len(ids); i++ {
		start := have.at
		if measured {
			have.at += int(p.widths[ids[i]])
		} else {
			start, have.at = have.from+int(part.Offsets[2*i]), have.from+int(part.Offsets[2*i+1])
		}
		if start >= f.End {
			have.field = r.FieldAfterNear(have.field, start)
			f, flags = field(r, have.field)
		}
		own := run{source: -1}
		if have.at > f.Start {
			own = run{source: f.Message, flags: flags}
		}
		special := p.has(ids[i])
		if special {
			own.flags |= rollout.FlagSpecial
			if token := p.byID[ids[i]]; have.at > f.Start && p.forged(r, have.field, start, have.at, token) {
				return forgedError(token, own.source)
			}
		}
		if own.source != same.source || own.flags != same.flags {
			if i > 0 {
				dst.put(same)
			}
			same = own
		}
		if measured && to >= 0 && tried != have.field && have.at > f.Start && to-f.End < f.End-have.at && !special {
			// A long field needs no look at its inner tokens: count back from the end of the text.
			tried = have.field
			if k, at := p.firstAfter(ids[i+1:], f.End, to); k > 0 {
				i, have.at = i+k, at
			}
		}
		same.end = n + i + 1
	}
	if len(ids) > 0 {
		dst.put(same)
	}
	return nil
}

// firstAfter returns the index of the first token that begins at or after byte at, and where
// it begins; the last token ends at byte to. It returns 0 if an added token precedes it.
func (p *Encoder) firstAfter(ids []rollout.TokenID, at, to int) (k, begin int) {
	k, begin = len(ids), to
	for k > 0 && begin-int(p.widths[ids[k-1]]) >= at {
		k--
		begin -= int(p.widths[ids[k]])
	}
	for _, id := range ids[:k] {
		if id >= p.lowest && p.has(id) {
			return 0, 0
		}
	}
	return k, begin
}

func forgedError(token engine.AddedToken, message int32) error {
	var where rollout.Where
	if message >= 0 {
		where.Message = rollout.At(int(message))
	}
	return rollout.Errorf(rollout.KindTokenizer, where, "the vocabulary spells the added token %q as ordinary text, too, so recorded text cannot be kept apart from it", token.Content).
		WithFix("leave the rollout out, or encode with the special tokens of parity")
}

// PrecedingContext says what precedes byte at of r, as the tokenizer asks it.
func (p *Encoder) PrecedingContext(r *render.Rendering, at int) engine.After {
	switch {
	case at == 0 && r.Before == nil:
		return engine.AfterNothing
	case at == 0:
		return p.PrecedingContext(r.Before, len(r.Before.Text))
	case p.tokenBefore(r, at, false), p.tokenBefore(r, len(strings.TrimRightFunc(r.Text[:at], unicode.IsSpace)), true):
		return engine.AfterToken
	}
	return engine.AfterText
}

// tokenBefore reports whether an added token ends at byte at of r; with strips, only a
// token that takes the white space after it along counts.
func (p *Encoder) tokenBefore(r *render.Rendering, at int, strips bool) bool {
	if at == 0 {
		return false
	}
	for _, n := range p.lengths[r.Text[at-1]] {
		if n > at {
			continue
		}
		t, ok := p.byContent[r.Text[at-n:at]]
		if ok && (t.RStrip || !strips) && (p.parity || p.trusted(r, r.FieldAfter(at-len(t.Content)), at, t)) {
			return true
		}
	}
	return false
}

// forged reports whether text that the guard refused as an added token was encoded to that
// token all the same, by the ordinary vocabulary. at is the first field that ends after start.
func (p *Encoder) forged(r *render.Rendering, at, start, end int, t engine.AddedToken) bool {
	return !p.parity && r.Text[start:end] == t.Content && !p.trusted(r, at, end, t)
}

// trusted is the guard: it reports whether an occurrence of t that ends at byte end counts.
// at is the first field that ends after the start of the occurrence.
func (p *Encoder) trusted(r *render.Rendering, at, end int, t engine.AddedToken) bool {
	if !t.Special && p.text[t.ID] {
		return true
	}
	for i := at; i < len(r.Fields) && r.Fields[i].Start < end; i++ {
		f := r.Fields[i]
		policyText := !t.Special && f.Message >= 0 && (f.Part == render.PartContent || f.Part == render.PartReasoning) && p.Sampled(f.Message)
		if !policyText {
			return false
		}
	}
	return true
}

// field returns field i of r and the flags of its tokens; past the last field, one that no
// token reaches.
func field(r *render.Rendering, i int) (render.Field, rollout.Flag) {
	if i < len(r.Fields) {
		return r.Fields[i], flagOf(r.Fields[i].Part)
	}
	return render.Field{Start: math.MaxInt, End: math.MaxInt}, 0
}

// flagOf returns the flag of the tokens of a part.
func flagOf(p render.Part) rollout.Flag {
	switch p {
	case render.PartContent:
		return rollout.FlagContent
	case render.PartReasoning:
		return rollout.FlagReasoning
	case render.PartToolCall:
		return rollout.FlagToolCall
	}
	return 0
}

// TokensWithin returns the range of tokens of the last text, numbered from base, that lie
// wholly inside its bytes [from, to). A token across an edge is outside. Whole must be set.
func (e *Encoder) TokensWithin(base, from, to int) (int, int) {
	first, last, offsets := -1, -1, e.Buf.Offsets
	for i := 0; i+1 < len(offsets); i += 2 {
		if int(offsets[i]) >= from && int(offsets[i+1]) <= to && offsets[i] < offsets[i+1] {
			if first < 0 {
				first = i / 2
			}
			last = i/2 + 1
		}
	}
	if first < 0 {
		return 0, 0
	}
	return base + first, base + last
}
