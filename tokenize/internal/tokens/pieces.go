package tokens

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// AddedTokens is what encoding asks about the added tokens of a vocabulary.
type AddedTokens struct {
	byID map[rollout.TokenID]engine.AddedToken
	is   []uint64 // bit set of ids: nearly all tokens are not added ones
	// text holds those that the vocabulary spells without them, too.
	text map[rollout.TokenID]bool
	// Longest is the longest added token in bytes: how far a match may look ahead.
	Longest int
	// byContent holds the tokens by what they are spelled like, and lengths the
	// different lengths of those that end with a byte.
	byContent map[string]engine.AddedToken
	lengths   [256][]int
	// cuts finds the tokens after which text is encoded by itself.
	cuts *engine.AddedMatcher
	cut  map[rollout.TokenID]bool
}

func NewAddedTokens(tok engine.Tokenizer) (*AddedTokens, error) {
	v := tok.Vocab()
	t := &AddedTokens{byID: map[rollout.TokenID]engine.AddedToken{}, text: map[rollout.TokenID]bool{}, byContent: map[string]engine.AddedToken{}}
	added := v.Added()
	highest := rollout.TokenID(0)
	for _, a := range added {
		highest = max(highest, a.ID)
	}
	t.is = make([]uint64, highest/64+1) // the vocabulary of no model has every id
	alone := standAlone(added)
	var plain engine.Encoding
	var cuts []engine.AddedToken
	for i, a := range added {
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
	t.cuts, t.cut = engine.NewAddedMatcher(cuts, nil), map[rollout.TokenID]bool{}
	for _, a := range cuts {
		t.cut[a.ID] = true
	}
	return t, nil
}

// Cuts reports whether what stands after token id is encoded by itself.
func (t *AddedTokens) Cuts(id rollout.TokenID) bool { return t.cut[id] }

func (t *AddedTokens) Find(id rollout.TokenID) (engine.AddedToken, bool) {
	if int(id/64) >= len(t.is) || t.is[id/64]&(1<<(id%64)) == 0 {
		return engine.AddedToken{}, false
	}
	return t.byID[id], true
}

// Encoder turns rendered text into columns. It belongs to one goroutine.
type Encoder struct {
	*AddedTokens
	tok    engine.Tokenizer
	parity bool
	// Sampled reports whether the policy wrote message m.
	Sampled func(m int32) bool
	// Written are the parts that were met, by message; nil when nobody asks.
	Written []render.Parts
	// Buf is the result of one call, or of the last section of a long text where no
	// more is asked for.
	Buf   engine.Encoding
	Whole bool     // buf is to hold the whole text
	into  *Compact // takes what is encoded, section by section
}

// NewEncoder returns one for tok and its added tokens; parity honours every
// occurrence of them.
func NewEncoder(tok engine.Tokenizer, added *AddedTokens, parity bool) *Encoder {
	return &Encoder{AddedTokens: added, tok: tok, parity: parity}
}

// Encode appends the tokens of r.text[from:to], which stands after what after
// says, to dst.
func (p *Encoder) Encode(dst *Columns, r *render.Rendering, from, to int, after engine.After) error {
	p.Buf.Reset()
	for i := r.FieldAfter(from); p.Written != nil && i < len(r.Fields) && r.Fields[i].Start < to; i++ {
		if f := r.Fields[i]; f.Message >= 0 && int(f.Message) < len(p.Written) {
			p.Written[f.Message].Add(f.Part)
		}
	}
	opts := engine.EncodeOptions{Offsets: true, After: after}
	if !p.parity {
		at := r.FieldAfter(from)
		opts.Added = func(m engine.AddedMatch) bool {
			at = r.FieldAfterNear(at, from+m.Start)
			return p.trusted(r, at, from+m.End, m.Token)
		}
	}
	n, at, held := dst.Len(), r.FieldAfter(from), 0
	if p.into != nil {
		held = p.into.Len()
	}
	if !p.Whole {
		opts.Section = func(section *engine.Encoding) (err error) {
			done := int(section.Offsets[len(section.Offsets)-1])
			room := func(have int) int {
				// As many more as the part so far tells, but no guess from a short one for a long one.
				made := have + len(section.IDs)
				return len(section.IDs) + min(8*made, made*(to-from-done)/max(1, done)*17/16)
			}
			if p.into != nil {
				if c := p.into; cap(c.IDs)-c.Len() < len(section.IDs) {
					c.grow(room(c.Len() - held))
				}
				at, err = p.take(dst, section, r, from, at)
				p.into.append(*dst)
				dst.Truncate(0)
				section.Reset()
				return err
			}
			if cap(dst.IDs)-dst.Len() < len(section.IDs) {
				dst.grow(room(dst.Len() - n))
			}
			at, err = p.take(dst, section, r, from, at)
			section.Reset()
			return err
		}
	}
	err := p.tok.Encode(&p.Buf, r.Text[from:to], opts)
	if err == nil {
		_, err = p.take(dst, &p.Buf, r, from, at)
	}
	if err != nil {
		dst.Truncate(n)
	}
	return err
}

// take appends the tokens of a part of r's text from byte from on to dst. No token of
// it begins in a field before at, and none of the next part in one before next.
func (p *Encoder) take(dst *Columns, part *engine.Encoding, r *render.Rendering, from, at int) (next int, err error) {
	ids, offsets := part.IDs, part.Offsets
	source, flags := dst.extend(ids)
	for i := 0; i < len(ids); {
		at = r.FieldAfterNear(at, from+int(offsets[2*i]))
		f := render.Field{Start: math.MaxInt, End: math.MaxInt} // after the last
		if at < len(r.Fields) {
			f = r.Fields[at]
		}
		flag := flagOf(f.Part)
		for ; i < len(ids); i++ { // tokens before f and in it
			start, end := from+int(offsets[2*i]), from+int(offsets[2*i+1])
			if start >= f.End {
				break
			}
			source[i], flags[i] = -1, 0
			if end > f.Start {
				source[i], flags[i] = f.Message, flag
			}
			if token, special := p.Find(ids[i]); special {
				flags[i] |= rollout.FlagSpecial
				if end > f.Start && p.forged(r, at, start, end, token) {
					return at, forgedError(token, source[i])
				}
			}
		}
	}
	return at, nil
}

func forgedError(token engine.AddedToken, message int32) error {
	var where rollout.Where
	if message >= 0 {
		where.Message = rollout.At(int(message))
	}
	return rollout.Errorf(rollout.KindTokenizer, where, "the vocabulary spells the added token %q as ordinary text, too, so recorded text cannot be kept apart from it", token.Content).
		WithFix("leave the rollout out, or encode with SpecialsParity")
}

// PrecedingContext is what stands before byte at of r.
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

// tokenBefore reports whether an added token ends at byte at of r; with strips
// set, one that takes the white space after it along.
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

// forged reports whether the model's own vocabulary made an added token of text
// that the guard refused. at is the first field that ends after start.
func (p *Encoder) forged(r *render.Rendering, at, start, end int, t engine.AddedToken) bool {
	return !p.parity && r.Text[start:end] == t.Content && !p.trusted(r, at, end, t)
}

// trusted applies the guard to an occurrence that ends at byte end. at is the
// first field that ends after its start.
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

// flagOf is the flag of the tokens of a part.
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
