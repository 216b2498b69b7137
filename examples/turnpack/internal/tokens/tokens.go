// Package tokens reads the rows of a batch together with the tokenizer that made them:
// the bytes of each token and where messages begin.
package tokens

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/internal/modelfolder"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// ModelOf loads the model that a batch was made with: the folder dir, with template as
// for modelfolder.Load, or the embedded model if both are empty. digest is the batch's
// tokenizer digest; another tokenizer is an error. "" accepts any.
func ModelOf(dir, template, digest string) (*tokenize.Model, error) {
	var m *tokenize.Model
	var err error
	switch {
	case dir != "":
		m, err = modelfolder.Load(dir, template, "")
	case template != "":
		return nil, cli.Mistake(rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--template"}, "it is of a model folder, and none is named").WithFix("name the folder with --model"))
	default:
		m, err = embedded.Model()
	}
	if err != nil {
		return nil, err
	}
	if digest != "" && m.Tokenizer.Digest() != digest {
		e := rollout.Errorf(rollout.KindInput, rollout.Where{}, "the batch was made with tokenizer %s, this one is %s", digest, m.Tokenizer.Digest())
		return nil, e.WithFix("name the model folder with --model")
	}
	return m, nil
}

// Speller returns the bytes of single tokens, for any engine.
type Speller struct {
	t     engine.Tokenizer
	bytes map[rune]byte
}

// NewSpeller returns a speller for t.
func NewSpeller(t engine.Tokenizer) *Speller {
	return &Speller{t: t, bytes: byteAlphabet()}
}

// Bytes returns the bytes that id adds to a text after the first token. ok is false if id
// is not in the vocabulary.
func (s *Speller) Bytes(id rollout.TokenID) (b []byte, ok bool) {
	one, err := s.t.Decode([]rollout.TokenID{id})
	if err != nil {
		return nil, false
	}
	if strings.ContainsRune(one, utf8.RuneError) {
		if raw, ok := s.raw(id); ok {
			return raw, true
		}
	}
	// SentencePiece decoders drop a leading space, so decode the token twice.
	if two, err := s.t.Decode([]rollout.TokenID{id, id}); err == nil {
		if rest, ok := strings.CutPrefix(two, one); ok {
			return []byte(rest), true
		}
	}
	return []byte(one), true
}

// raw returns the bytes of a token that is part of a character, from its spelling in the
// byte-level alphabet or as <0xNN>.
func (s *Speller) raw(id rollout.TokenID) ([]byte, bool) {
	spelling, ok := s.t.Vocab().Token(id)
	if !ok {
		return nil, false
	}
	if hex, ok := strings.CutPrefix(spelling, "<0x"); ok && len(hex) == 3 && hex[2] == '>' {
		n, err := strconv.ParseUint(hex[:2], 16, 8)
		return []byte{byte(n)}, err == nil
	}
	out := make([]byte, 0, len(spelling))
	for _, r := range spelling {
		b, ok := s.bytes[r]
		if !ok {
			return nil, false
		}
		out = append(out, b)
	}
	return out, true
}

// byteAlphabet maps the characters of byte-level vocabularies to bytes: printable Latin-1
// characters stand for themselves, the other bytes for characters from U+0100 in order.
func byteAlphabet() map[rune]byte {
	m := make(map[rune]byte, 256)
	next := rune(256)
	for b := range 256 {
		if r := rune(b); r >= '!' && r <= '~' || r >= '¡' && r <= '¬' || r >= '®' && r <= 'ÿ' {
			m[r] = byte(b)
			continue
		}
		m[next] = byte(b)
		next++
	}
	return m
}
