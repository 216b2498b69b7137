package model

import (
	"fmt"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Word is a token of a spelled piece: its id and the number of bytes of the piece that it covers.
type Word struct {
	ID    ID
	Bytes int32
}

// AppendWord appends the tokens of a piece in the vocabulary's own spelling.
func (w *Worker) AppendWord(dst []Word, piece []byte) ([]Word, error) {
	m := w.m
	if m.IgnoreMerges {
		if id := m.Vocab.Find(piece); id >= 0 {
			return append(dst, Word{id, int32(len(piece))}), nil
		}
	}
	if m.cuts == nil {
		return w.appendWord(dst, piece)
	}
	var err error
	for len(piece) > 0 {
		n := m.cuts.next(piece)
		if dst, err = w.appendPart(dst, piece[:n]); err != nil {
			return dst, err
		}
		piece = piece[n:]
	}
	return dst, nil
}

// appendPart is appendWord with the cache. Only models whose token widths follow from the ids have cuts.
func (w *Worker) appendPart(dst []Word, part []byte) ([]Word, error) {
	if len(part) > maxLongKey {
		return w.appendWord(dst, part)
	}
	h := hashBytes(part)
	if ids := w.long.find(part, h); ids != nil {
		for _, id := range ids {
			dst = append(dst, Word{id, w.m.width[id]})
		}
		return dst, nil
	}
	first := len(dst)
	dst, err := w.appendWord(dst, part)
	if err != nil {
		return dst, err
	}
	w.ids = w.ids[:0]
	for _, x := range dst[first:] {
		w.ids = append(w.ids, x.ID)
	}
	w.long.put(part, h, w.ids)
	return dst, nil
}

// appendWord builds the initial symbols of piece and merges them.
func (w *Worker) appendWord(dst []Word, piece []byte) ([]Word, error) {
	m := w.m
	syms := w.syms[:0]
	unk, unkBytes := false, 0
	flush := func() {
		if unk {
			syms = append(syms, sym{id: m.Unk, n: 1, w: int32(unkBytes)})
			unk = false
		}
	}
	for i := 0; i < len(piece); {
		_, size := uni.DecodeRune(piece[i:])
		id := w.symbol(piece, i, size)
		switch {
		case id >= 0:
			flush()
			syms = append(syms, sym{id: id, n: 1, w: int32(size)})
		case m.ByteFallback && m.spelled(piece[i:i+size]):
			// a pending unknown token stays pending, as in the reference
			for _, b := range piece[i : i+size] {
				syms = append(syms, sym{id: m.fallback[b], n: 1, w: 1})
			}
		case m.Unk >= 0:
			if unk && !m.FuseUnk {
				flush()
			}
			if !unk {
				unk, unkBytes = true, 0
			}
			unkBytes += size
		case m.Unk == MissingUnk:
			return dst, fmt.Errorf("the piece %q holds a character outside the vocabulary, and the unknown token that should stand for it is not in the vocabulary", piece)
		}
		i += size
	}
	flush()
	w.syms = syms
	for _, t := range w.merge(len(syms), func(dst []sym, from, to int) []sym { return append(dst, syms[from:to]...) }) {
		dst = append(dst, Word{t.id, t.w})
	}
	return dst, nil
}

// MissingUnk is the value of Unk for an unknown token that the vocabulary lacks: text that needs it is an error.
const MissingUnk = -2

// symbol returns the id of the initial symbol at piece[i:i+size], −1 if there is none.
func (w *Worker) symbol(piece []byte, i, size int) int32 {
	m := w.m
	first, last := i == 0, i+size == len(piece)
	if (first || m.Prefix == "") && (!last || m.Suffix == "") {
		if size == 1 {
			return m.ascii[piece[i]]
		}
		return m.Vocab.Find(piece[i : i+size])
	}
	b := w.text[:0]
	if !first {
		b = append(b, m.Prefix...)
	}
	b = append(b, piece[i:i+size]...)
	if last {
		b = append(b, m.Suffix...)
	}
	w.text = b
	return m.Vocab.Find(b)
}

// spelled reports whether every byte of c has a fallback token.
func (m *Model) spelled(c []byte) bool {
	for _, b := range c {
		if m.fallback[b] < 0 {
			return false
		}
	}
	return true
}
