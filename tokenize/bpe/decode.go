package bpe

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/norm"
	"github.com/turnpack/turnpack/tokenize/bpe/internal/pretok"
)

// Decode implements [engine.Tokenizer]. Bytes that are not valid UTF-8 become U+FFFD, as in the reference.
func (t *tokenizer) Decode(ids []rollout.TokenID) (string, error) {
	if t.bytes != nil {
		buf, err := t.bytes().append(nil, ids)
		if err != nil {
			return "", err
		}
		return lossy(buf), nil
	}
	tokens, room := make([]string, len(ids)), growthSlack
	for i, id := range ids {
		b, ok := t.facts.printing(id)
		if !ok {
			return "", unknownID(id, i)
		}
		tokens[i] = string(b)
		room += growth * len(b)
	}
	text, err := t.decoder.decode(tokens, limit{room, t.deadline(room / growth)})
	if err != nil {
		return "", rollout.Errorf(rollout.KindTokenizer, rollout.Where{}, "the ids cannot be decoded: %w", err)
	}
	return text, nil
}

func unknownID(id rollout.TokenID, i int) error {
	return rollout.Errorf(rollout.KindTokenizer, rollout.Where{Token: rollout.At(i)}, "id %d is not in the vocabulary", id).
		WithFix("check that the ids come from this tokenizer")
}

func lossy(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string(norm.Lossy(b).Buf)
}

// byteTable holds the bytes of every id.
type byteTable struct {
	data []byte
	at   []uint32 // 2 per id: begin, end+1; 0, 0 if the id has no bytes
}

func newByteTable(t *tokenizer) *byteTable {
	n := t.facts.Size()
	b := &byteTable{at: make([]uint32, 2*n)}
	for id := range n {
		s, ok := t.facts.printing(rollout.TokenID(id))
		if !ok {
			continue
		}
		begin := len(b.data)
		_, added := t.facts.byID[rollout.TokenID(id)]
		raw := false
		if !added || !t.exact {
			b.data, raw = unspell(b.data, s)
		}
		if !raw {
			b.data = append(b.data, s...)
		}
		b.at[2*id], b.at[2*id+1] = uint32(begin), uint32(len(b.data)+1)
	}
	return b
}

func (b *byteTable) append(dst []byte, ids []rollout.TokenID) ([]byte, error) {
	for i, id := range ids {
		if id < 0 || 2*int(id) >= len(b.at) || b.at[2*id+1] == 0 {
			return nil, unknownID(id, i)
		}
		dst = append(dst, b.data[b.at[2*id]:b.at[2*id+1]-1]...)
	}
	return dst, nil
}

// step is a decoder step, which maps a list of tokens to another.
type step struct {
	kind string // as in tokenizer.json
	// apply fails if the result exceeds most. Only steps that insert text or match patterns check it.
	apply func(tokens []string, most limit) ([]string, error)
}

// limit bounds the cost of decoding.
type limit struct {
	bytes int        // total size of all tokens
	until *time.Time // when to give up matching patterns, nil for never
}

// chain is a decoder; an empty chain joins tokens with spaces.
type chain []step

func (c chain) decode(tokens []string, most limit) (string, error) {
	if len(c) == 0 {
		return strings.Join(tokens, " "), nil
	}
	for _, s := range c {
		var err error
		if tokens, err = s.apply(tokens, most); err != nil {
			return "", err
		}
	}
	return strings.Join(tokens, ""), nil
}

// spells reports whether the chain decodes byte-level spellings.
func (c chain) spells() bool {
	return slices.ContainsFunc(c, func(s step) bool { return s.kind == byteLevel.kind })
}

// plainBytes reports whether decoding only joins the bytes of each id.
func (c chain) plainBytes() bool {
	for i, s := range c {
		if i == 0 && s.kind != byteLevel.kind || i > 0 && s.kind != fuse.kind {
			return false
		}
	}
	return len(c) > 0
}

// The steps without settings.
var (
	byteLevel    = step{"ByteLevel", decodeByteLevel}
	byteFallback = step{"ByteFallback", decodeByteFallback}
	fuse         = step{"Fuse", func(tokens []string, _ limit) ([]string, error) { return []string{strings.Join(tokens, "")}, nil }}
)

func decodeByteLevel(tokens []string, _ limit) ([]string, error) {
	var buf []byte
	for _, s := range tokens {
		var ok bool
		if buf, ok = unspell(buf, []byte(s)); !ok {
			buf = append(buf, s...)
		}
	}
	return []string{lossy(buf)}, nil
}

func fallbackByte(s string) (byte, bool) {
	if len(s) != 6 || !strings.HasPrefix(s, "<0x") || s[5] != '>' {
		return 0, false
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(s[3:5], "+"), 16, 8)
	return byte(v), err == nil
}

func decodeByteFallback(tokens []string, _ limit) ([]string, error) {
	out := make([]string, 0, len(tokens))
	var group []byte
	flush := func() {
		out = append(out, fallbackText(group)...)
		group = group[:0]
	}
	for _, s := range tokens {
		if b, ok := fallbackByte(s); ok {
			group = append(group, b)
			continue
		}
		flush()
		out = append(out, s)
	}
	flush()
	return out, nil
}

// fallbackText returns the text of a run of byte tokens, or one U+FFFD for each token if the bytes are not valid
// UTF-8.
func fallbackText(group []byte) []string {
	if len(group) == 0 {
		return nil
	}
	if utf8.Valid(group) {
		return []string{string(group)}
	}
	bad := make([]string, len(group))
	for i := range bad {
		bad[i] = "\uFFFD"
	}
	return bad
}

// eachToken returns a step that changes tokens one by one; f subtracts what it adds from most.bytes.
func eachToken(kind string, f func(i int, token string, last bool, most *limit) (string, error)) step {
	return step{kind, func(tokens []string, most limit) (out []string, err error) {
		out = make([]string, len(tokens))
		for i, t := range tokens {
			if out[i], err = f(i, t, i == len(tokens)-1, &most); err != nil {
				return nil, err
			}
		}
		return out, nil
	}}
}

// stripStep removes up to start copies of a character at the beginning and up to stop at the end of each token.
func stripStep(content rune, start, stop int) step {
	return eachToken("Strip", func(_ int, t string, _ bool, _ *limit) (string, error) {
		for range start {
			r, size := utf8.DecodeRuneInString(t)
			if size == 0 || r != content {
				break
			}
			t = t[size:]
		}
		for range stop {
			r, size := utf8.DecodeLastRuneInString(t)
			if size == 0 || r != content {
				break
			}
			t = t[:len(t)-size]
		}
		return t, nil
	})
}

func replaceStep(n norm.Normalizer) step {
	return eachToken("Replace", func(_ int, t string, _ bool, most *limit) (string, error) {
		text := norm.Text{Buf: []byte(t), Most: max(1, most.bytes), Until: most.until}
		if err := n(nil, &text); err != nil {
			return "", err
		}
		most.bytes -= len(text.Buf)
		return string(text.Buf), nil
	})
}

// metaStep replaces the mark by a space, with strip in the first token by nothing.
func metaStep(mark string, strip bool) step {
	return eachToken("Metaspace", func(i int, t string, _ bool, _ *limit) (string, error) {
		if i == 0 && strip {
			return strings.ReplaceAll(t, mark, ""), nil
		}
		return strings.ReplaceAll(t, mark, " "), nil
	})
}

// suffixStep replaces the suffix of a word by a space, in the last word by nothing.
func suffixStep(suffix string) step {
	return eachToken("BPEDecoder", func(_ int, t string, last bool, most *limit) (string, error) {
		with := " "
		if last {
			with = ""
		}
		t = strings.ReplaceAll(t, suffix, with)
		if most.bytes -= len(t); most.bytes < 0 {
			return "", norm.ErrTooLong
		}
		return t, nil
	})
}

func (l *loader) decoder(field string, raw json.RawMessage) (chain, error) {
	if isNull(raw) {
		return nil, nil
	}
	c, err := l.component(field, raw)
	if err != nil {
		return nil, err
	}
	switch c.Type {
	case "Sequence":
		all, err := each(field+"/decoders", c.Decoders, l.decoder)
		steps := slices.Concat(all...)
		if len(steps) == 0 && field == "/decoder" {
			steps = chain{fuse} // tokens without a decoder are joined with spaces, these are not
		}
		return steps, err
	case "ByteLevel":
		return chain{byteLevel}, nil
	case "ByteFallback":
		return chain{byteFallback}, nil
	case "Fuse":
		return chain{fuse}, nil
	case "Metaspace":
		mark, prefix, err := l.metaspace(field, c)
		if err != nil {
			return nil, err
		}
		return chain{metaStep(mark, prefix != pretok.Never)}, nil
	case "BPEDecoder":
		return chain{suffixStep(or(c.Suffix, "</w>"))}, nil
	case "Strip":
		content := []rune(or(c.Content, ""))
		if len(content) != 1 || c.Start < 0 || c.Stop < 0 {
			return nil, l.damaged(field, "Strip needs one character of content and counts that are not negative")
		}
		return chain{stripStep(content[0], c.Start, c.Stop)}, nil
	case "Replace":
		n, _, err := l.replace(field, c)
		if err != nil {
			return nil, err
		}
		return chain{replaceStep(n)}, nil
	}
	return nil, l.refuse(field, "the decoder %q", c.Type)
}
