//go:build cgo

package hf

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"strings"
	"sync"

	"github.com/daulet/tokenizers"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/added"
)

// tokenizer is safe for concurrent use.
type tokenizer struct {
	def    *definition
	match  *added.Matcher
	digest string

	mu      sync.Mutex
	natives map[variant]*tokenizers.Tokenizer // created on first use
}

// Load returns the tokenizer of a tokenizer.json file with the given content; name is used in errors. The tokenizer
// is safe for concurrent use, and freed when it is no longer reachable.
//
// Texts with NUL are encoded exactly: a second native tokenizer, whose vocabulary has the spellings of NUL and of
// another control character exchanged, encodes the text with the two characters exchanged.
func Load(name string, tokenizerJSON []byte) (engine.Tokenizer, error) {
	def, err := parse(name, tokenizerJSON)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(tokenizerJSON)
	t := &tokenizer{def: def, match: added.New(def.added, nil), digest: "sha256:" + hex.EncodeToString(sum[:]), natives: map[variant]*tokenizers.Tokenizer{}}
	if _, err := t.native(variant{}); err != nil {
		return nil, err
	}
	runtime.AddCleanup(t, func(natives map[variant]*tokenizers.Tokenizer) {
		for _, n := range natives {
			_ = n.Close() // it never fails
		}
	}, t.natives)
	return t, nil
}

// native returns the native tokenizer of a variant.
func (t *tokenizer) native(v variant) (*tokenizers.Tokenizer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, ok := t.natives[v]; ok {
		return n, nil
	}
	data, err := t.def.variant(v)
	if err != nil {
		return nil, err
	}
	n, err := tokenizers.FromBytes(data)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindTokenizer, rollout.Where{File: t.def.name}, "Hugging Face tokenizers refuses the file: %w", err)
	}
	t.natives[v] = n
	return n, nil
}

// Vocab returns the vocabulary.
func (t *tokenizer) Vocab() engine.Vocab { return t.def }

// Digest returns "sha256:<hex>" of the tokenizer.json file.
func (t *tokenizer) Digest() string { return t.digest }

// Encode appends the tokens of text to dst.
func (t *tokenizer) Encode(dst *engine.Encoding, text string, opts engine.EncodeOptions) error {
	ids, offsets := len(dst.IDs), len(dst.Offsets)
	err := t.encode(dst, text, opts)
	if err != nil {
		dst.IDs, dst.Offsets = dst.IDs[:ids], dst.Offsets[:offsets]
	}
	return err
}

func (t *tokenizer) encode(dst *engine.Encoding, text string, opts engine.EncodeOptions) error {
	valid, back := toValid(text)
	after := t.known(opts.After)
	if opts.Added == nil && after == engine.AfterNothing {
		return t.segment(dst, valid, 0, variant{}, opts.Offsets, back)
	}
	spans := t.match.Append(nil, []byte(valid), func(token, start, end int) bool {
		return opts.Added == nil || opts.Added(engine.AddedMatch{Token: t.def.added[token], Start: back.to(start), End: back.to(end)})
	})
	at := 0
	part := func(to int) error {
		if at == to {
			return nil
		}
		return t.segment(dst, valid[at:to], at, variant{plain: true, after: after}, opts.Offsets, back)
	}
	for _, s := range spans {
		if err := part(s.Start); err != nil {
			return err
		}
		dst.IDs = append(dst.IDs, t.def.added[s.Token].ID)
		if opts.Offsets {
			dst.Offsets = append(dst.Offsets, int32(back.to(s.Start)), int32(back.to(s.End)))
		}
		at, after = s.End, t.known(engine.AfterToken)
	}
	return part(len(valid))
}

// known returns after, or AfterNothing if the tokenizer does not distinguish them.
func (t *tokenizer) known(after engine.After) engine.After {
	if t.def.marks[after] {
		return after
	}
	return engine.AfterNothing
}

// segment encodes valid UTF-8 with one native tokenizer.
func (t *tokenizer) segment(dst *engine.Encoding, text string, base int, v variant, offsets bool, back offsetMap) error {
	if text == "" {
		return nil
	}
	if strings.IndexByte(text, 0) >= 0 {
		v.swap = 1
		text = exchange(text, 0, 1)
	}
	n, err := t.native(v)
	if err != nil {
		return err
	}
	for strings.IndexByte(text, 0) >= 0 { // the text holds both characters
		text = exchange(text, 0, v.swap)
		v.swap++
		if v.swap > maxSwap {
			return rollout.Errorf(rollout.KindTokenizer, rollout.Where{}, "the text holds NUL and every control character that could stand for it")
		}
		text = exchange(text, 0, v.swap)
		if n, err = t.native(v); err != nil {
			return err
		}
	}
	var o []tokenizers.EncodeOption
	if offsets {
		o = append(o, tokenizers.WithReturnOffsets())
	}
	enc, err := n.EncodeWithOptionsErr(text, false, o...)
	if err != nil {
		return rollout.Errorf(rollout.KindTokenizer, rollout.Where{Byte: rollout.At(base)}, "Hugging Face tokenizers cannot encode the text: %w", err)
	}
	for i, id := range enc.IDs {
		dst.IDs = append(dst.IDs, rollout.TokenID(id))
		if offsets {
			dst.Offsets = append(dst.Offsets, int32(back.to(base+int(enc.Offsets[i][0]))), int32(back.to(base+int(enc.Offsets[i][1]))))
		}
	}
	return nil
}

// Decode returns the text of ids.
func (t *tokenizer) Decode(ids []rollout.TokenID) (string, error) {
	u := make([]uint32, len(ids))
	for i, id := range ids {
		if _, ok := t.def.Token(id); !ok {
			return "", rollout.Errorf(rollout.KindTokenizer, rollout.Where{Token: rollout.At(i)}, "id %d is not in the vocabulary", id)
		}
		u[i] = uint32(id)
	}
	var v variant
	for t.def.spells(ids, v.swap) {
		if v.swap++; v.swap > maxSwap {
			return "", rollout.Errorf(rollout.KindTokenizer, rollout.Where{}, "the text holds NUL and every control character that could stand for it")
		}
	}
	n, err := t.native(v)
	if err != nil {
		return "", err
	}
	text, err := n.DecodeErr(u, false)
	if err != nil {
		return "", rollout.Errorf(rollout.KindTokenizer, rollout.Where{}, "Hugging Face tokenizers cannot decode the ids: %w", err)
	}
	if v.swap > 0 {
		text = exchange(text, 0, v.swap)
	}
	return text, nil
}

// exchange returns s with all bytes a and b exchanged.
func exchange(s string, a, b byte) string {
	out := []byte(s)
	for i, c := range out {
		switch c {
		case a:
			out[i] = b
		case b:
			out[i] = a
		}
	}
	return string(out)
}
