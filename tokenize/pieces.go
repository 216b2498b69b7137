package tokenize

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/turnpack/turnpack/rollout"
)

// Specials says which occurrences of added tokens count.
type Specials uint8

// The rules.
const (
	// SpecialsGuard honours an added token only where the template wrote it and,
	// for tokens that are not special (<think>, <tool_call>), where the policy
	// itself wrote it into content or reasoning that it sampled. Text of users,
	// tools, tool schemas, names, arguments and a rollout's template variables never
	// makes one. A role with a meaning of its own (user, tool, …) is of the template's
	// frame: <|{{ role }}|> can be a token. What the vocabulary spells by itself, as Gemma's does with runs of
	// white space, is text even where it is an added token, too. A combining
	// mark after a token that is looked for in normalized text makes another
	// character of its end, as in Hugging Face tokenizers: text can hide such a token.
	SpecialsGuard Specials = iota
	// SpecialsParity honours every occurrence, as transformers' tokenize=True does,
	// injections included.
	SpecialsParity
)

var specialsNames = []string{"guard", "parity"}

// String returns the name used on command lines.
func (s Specials) String() string { return nameOf(specialsNames, int(s)) }

// ParseSpecials reads a name that String wrote.
func ParseSpecials(s string) (Specials, error) {
	return parseName[Specials](specialsNames, s, "specials")
}

// addedTokens is what encoding asks about the added tokens of a vocabulary.
type addedTokens struct {
	byID map[rollout.TokenID]AddedToken
	is   []uint64 // bit set of ids: nearly all tokens are not added ones
	// text holds those that the vocabulary spells without them, too.
	text map[rollout.TokenID]bool
	// longest is the longest added token in bytes: how far a match may look ahead.
	longest int
	// byContent holds the tokens by what they are spelled like, and lengths the
	// different lengths of those that end with a byte.
	byContent map[string]AddedToken
	lengths   [256][]int
	// cuts finds the tokens after which text is encoded by itself.
	cuts *AddedMatcher
}

func newAddedTokens(tok Tokenizer) (*addedTokens, error) {
	v := tok.Vocab()
	t := &addedTokens{byID: map[rollout.TokenID]AddedToken{}, text: map[rollout.TokenID]bool{}, is: make([]uint64, v.Size()/64+1), byContent: map[string]AddedToken{}}
	added := v.Added()
	alone := standAlone(added)
	var plain Encoding
	var cuts []AddedToken
	for i, a := range added {
		t.byID[a.ID] = a
		t.is[a.ID/64] |= 1 << (a.ID % 64)
		t.longest = max(t.longest, len(a.Content))
		if n := len(a.Content); n > 0 {
			t.byContent[a.Content] = a
			if last := &t.lengths[a.Content[n-1]]; !slices.Contains(*last, n) {
				*last = append(*last, n)
			}
		}
		if !a.Special {
			plain.Reset()
			if err := tok.Encode(&plain, a.Content, EncodeOptions{Added: NoAdded}); err != nil {
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
	t.cuts = NewAddedMatcher(cuts, nil)
	return t, nil
}

func (t *addedTokens) find(id rollout.TokenID) (AddedToken, bool) {
	if t.is[id/64]&(1<<(id%64)) == 0 {
		return AddedToken{}, false
	}
	return t.byID[id], true
}

// pieceEncoder turns rendered text into columns. It belongs to one goroutine.
type pieceEncoder struct {
	*addedTokens
	tok      Tokenizer
	specials Specials
	// sampled reports whether the policy wrote message m.
	sampled func(m int32) bool
	// written are the parts that were met, by message; nil when nobody asks.
	written []parts
	// buf is the result of one call, or of the last section of a long text where no
	// more is asked for.
	buf   Encoding
	whole bool  // buf is to hold the whole text
	spent spent // of a conversation that was encoded as a whole
}

// pieces returns an encoder of pieces; release it when it is not used any more.
func (e *Encoder) pieces(sampled func(int32) bool) *pieceEncoder {
	p, _ := e.idle.Get().(*pieceEncoder)
	if p == nil {
		p = &pieceEncoder{addedTokens: e.added, tok: e.model.Tokenizer, specials: e.opts.Specials}
	}
	p.sampled = sampled
	return p
}

// release keeps the memory of p for the next rollout.
func (e *Encoder) release(p *pieceEncoder) {
	p.sampled, p.written, p.whole = nil, nil, false
	e.idle.Put(p)
}

// encode appends the tokens of r.text[from:to], which stands after what after
// says, to dst.
func (p *pieceEncoder) encode(dst *columns, r *rendering, from, to int, after After) error {
	p.buf.Reset()
	for i := r.after(from); p.written != nil && i < len(r.fields) && r.fields[i].start < to; i++ {
		if f := r.fields[i]; f.message >= 0 && int(f.message) < len(p.written) {
			p.written[f.message].add(f.part)
		}
	}
	opts := EncodeOptions{Offsets: true, After: after}
	if p.specials == SpecialsGuard {
		at := r.after(from)
		opts.Added = func(m AddedMatch) bool {
			at = r.afterNear(at, from+m.Start)
			return p.trusted(r, at, from+m.End, m.Token)
		}
	}
	n, at := dst.len(), r.after(from)
	if !p.whole {
		opts.Section = func(section *Encoding) (err error) {
			done := int(section.Offsets[len(section.Offsets)-1])
			if cap(dst.ids)-dst.len() < len(section.IDs) {
				// As many more as the part so far tells, but no guess from a short one for a long one.
				made := dst.len() - n + len(section.IDs)
				dst.grow(len(section.IDs) + min(8*made, made*(to-from-done)/max(1, done)*17/16))
			}
			at, err = p.take(dst, section, r, from, at)
			section.Reset()
			return err
		}
	}
	err := p.tok.Encode(&p.buf, r.text[from:to], opts)
	if err == nil {
		_, err = p.take(dst, &p.buf, r, from, at)
	}
	if err != nil {
		dst.truncate(n)
	}
	return err
}

// take appends the tokens of a part of r's text from byte from on to dst. No token of
// it begins in a field before at, and none of the next part in one before next.
func (p *pieceEncoder) take(dst *columns, part *Encoding, r *rendering, from, at int) (next int, err error) {
	ids, offsets := part.IDs, part.Offsets
	source, flags := dst.extend(ids)
	for i := 0; i < len(ids); {
		at = r.afterNear(at, from+int(offsets[2*i]))
		f := field{start: math.MaxInt, end: math.MaxInt} // after the last
		if at < len(r.fields) {
			f = r.fields[at]
		}
		flag := f.part.flag()
		for ; i < len(ids); i++ { // tokens before f and in it
			start, end := from+int(offsets[2*i]), from+int(offsets[2*i+1])
			if start >= f.end {
				break
			}
			source[i], flags[i] = -1, 0
			if end > f.start {
				source[i], flags[i] = f.message, flag
			}
			if token, special := p.find(ids[i]); special {
				flags[i] |= rollout.FlagSpecial
				if end > f.start && p.forged(r, at, start, end, token) {
					return at, forgedError(token, source[i])
				}
			}
		}
	}
	return at, nil
}

func forgedError(token AddedToken, message int32) error {
	var where rollout.Where
	if message >= 0 {
		where.Message = rollout.At(int(message))
	}
	return rollout.Errorf(rollout.KindTokenizer, where, "the vocabulary spells the added token %q as ordinary text, too, so recorded text cannot be kept apart from it", token.Content).
		WithFix("leave the rollout out, or encode with SpecialsParity")
}

// after is what stands before byte at of r.
func (p *pieceEncoder) after(r *rendering, at int) After {
	switch {
	case at == 0 && r.behind == nil:
		return AfterNothing
	case at == 0:
		return p.after(r.behind, len(r.behind.text))
	case p.tokenBefore(r, at, false), p.tokenBefore(r, len(strings.TrimRightFunc(r.text[:at], unicode.IsSpace)), true):
		return AfterToken
	}
	return AfterText
}

// tokenBefore reports whether an added token ends at byte at of r; with strips
// set, one that takes the white space after it along.
func (p *pieceEncoder) tokenBefore(r *rendering, at int, strips bool) bool {
	if at == 0 {
		return false
	}
	for _, n := range p.lengths[r.text[at-1]] {
		if n > at {
			continue
		}
		t, ok := p.byContent[r.text[at-n:at]]
		if ok && (t.RStrip || !strips) && (p.specials == SpecialsParity || p.trusted(r, r.after(at-len(t.Content)), at, t)) {
			return true
		}
	}
	return false
}

func (p part) flag() rollout.Flag {
	switch p {
	case partContent:
		return rollout.FlagContent
	case partReasoning:
		return rollout.FlagReasoning
	case partToolCall:
		return rollout.FlagToolCall
	}
	return 0
}

// forged reports whether the model's own vocabulary made an added token of text
// that the guard refused. at is the first field that ends after start.
func (p *pieceEncoder) forged(r *rendering, at, start, end int, t AddedToken) bool {
	return p.specials == SpecialsGuard && r.text[start:end] == t.Content && !p.trusted(r, at, end, t)
}

// trusted applies the guard to an occurrence that ends at byte end. at is the
// first field that ends after its start.
func (p *pieceEncoder) trusted(r *rendering, at, end int, t AddedToken) bool {
	if !t.Special && p.text[t.ID] {
		return true
	}
	for i := at; i < len(r.fields) && r.fields[i].start < end; i++ {
		f := r.fields[i]
		policyText := !t.Special && f.message >= 0 && (f.part == partContent || f.part == partReasoning) && p.sampled(f.message)
		if !policyText {
			return false
		}
	}
	return true
}
