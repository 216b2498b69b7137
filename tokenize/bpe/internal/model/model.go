package model

import (
	"fmt"
	"sync"
	"unicode/utf8"
)

// Model is a byte pair encoding model; it is safe for concurrent use.
type Model struct {
	Vocab *Vocab
	Pairs *Pairs

	// IgnoreMerges takes a piece that is a vocabulary entry as that token.
	IgnoreMerges bool
	// FuseUnk makes one unknown token of neighbours.
	FuseUnk bool
	// ByteFallback spells what is not in the vocabulary as <0xNN> tokens.
	ByteFallback bool
	// Unk is the unknown token, −1 for none.
	Unk int32
	// Prefix goes before each symbol but the first, Suffix after the last one.
	Prefix, Suffix string

	// bytes holds the symbol of each byte where the model is byte-level.
	bytes [256]int32
	raw   bool
	// fallback holds the <0xNN> tokens, −1 for none.
	fallback [256]int32
	ascii    [128]int32
	width    []int32 // by id, bytes of a piece that the token covers: of raw bytes where raw, else of the spelling
	widest   int     // the greatest width
	cuts     *cuts
	cache    *cache
	pool     sync.Pool
}

// scratch is the working memory of one piece.
type scratch struct {
	merger
	syms []sym
	text []byte
}

// Init prepares lookups after the vocabulary and merges are complete. spell, not
// nil for byte-level models, gives the characters that stand for bytes, and
// unspell appends a spelling's bytes.
func (m *Model) Init(spell func(byte) rune, unspell func(dst, spelling []byte) ([]byte, bool)) {
	m.cache = newCache()
	m.pool.New = func() any { return &scratch{merger: merger{pairs: m.Pairs}} }
	m.raw = spell != nil && m.Prefix == "" && m.Suffix == ""
	for b := range m.bytes {
		m.bytes[b] = -1
		if spell != nil {
			m.bytes[b] = m.Vocab.Find(utf8.AppendRune(nil, spell(byte(b))))
		}
		if m.bytes[b] < 0 {
			m.raw = false
		}
		m.fallback[b] = m.Vocab.Find([]byte(fmt.Sprintf("<0x%02X>", b)))
	}
	for c := range m.ascii {
		m.ascii[c] = m.Vocab.Find([]byte{byte(c)})
	}
	if m.width == nil {
		m.measure(unspell)
	}
	for _, w := range m.width {
		m.widest = max(m.widest, int(w))
	}
	if !m.raw {
		m.cuts = newCuts(m)
	}
}

// measure fills width.
func (m *Model) measure(unspell func(dst, spelling []byte) ([]byte, bool)) {
	m.width = make([]int32, m.Vocab.Size())
	var scratch []byte
	for id := range m.width {
		b, ok := m.Vocab.Bytes(id)
		if !ok {
			continue
		}
		if m.raw {
			if raw, ok := unspell(scratch[:0], b); ok {
				b, scratch = raw, raw
			}
		}
		m.width[id] = int32(len(b))
	}
	for _, id := range m.fallback {
		if !m.raw && m.ByteFallback && id >= 0 {
			m.width[id] = 1
		}
	}
}

// Raw reports whether pieces can be given as plain bytes: every byte has a symbol.
func (m *Model) Raw() bool { return m.raw }

// Width returns the number of bytes that token id stands for in the text given
// to AppendRaw.
func (m *Model) Width(id ID) int { return int(m.width[id]) }

// AppendRaw appends the ids of the piece s[i:j] of a byte-level model.
func (m *Model) AppendRaw(dst []ID, s []byte, i, j int) []ID {
	if n := j - i; n <= maxShortKey {
		k := loadKey(s, i, j)
		h := shortHash(k, n)
		if e, count := m.cache.short.Load().find(k, n, h); e != nil {
			dst = append(dst, ID(e.ids&(1<<idBits-1)))
			for x := e.ids; count > 1; count-- {
				x >>= idBits
				dst = append(dst, ID(x&(1<<idBits-1)))
			}
			return dst
		}
		if e := m.cache.long.Find(s[i:j], h); e != nil {
			return append(dst, e.IDs()...)
		}
		start := len(dst)
		dst = m.encodeRaw(dst, s[i:j])
		if ids := dst[start:]; len(ids) <= maxShortIDs && m.Vocab.Size() < 1<<idBits {
			m.cache.putShort(k, n, h, ids)
			return dst
		}
		if m.cache.long.Wants(h) {
			m.cache.long.Put(s[i:j], h, dst[start:], nil)
		}
		return dst
	}
	return m.appendLong(dst, s[i:j])
}

func (m *Model) appendLong(dst []ID, piece []byte) []ID {
	if len(piece) > maxLongKey {
		return m.encodeRaw(dst, piece)
	}
	h := hashBytes(piece)
	if e := m.cache.long.Find(piece, h); e != nil {
		return append(dst, e.IDs()...)
	}
	start := len(dst)
	dst = m.encodeRaw(dst, piece)
	if m.cache.long.Wants(h) {
		m.cache.long.Put(piece, h, dst[start:], nil)
	}
	return dst
}

// encodeRaw computes the ids of a piece of a byte-level model.
func (m *Model) encodeRaw(dst []ID, piece []byte) []ID {
	sc := m.pool.Get().(*scratch)
	defer m.pool.Put(sc)
	if m.IgnoreMerges && len(piece) <= m.widest {
		sc.text = sc.text[:0]
		for _, b := range piece {
			sc.text = append(sc.text, m.spelling(b)...)
		}
		if id := m.Vocab.Find(sc.text); id >= 0 {
			return append(dst, id)
		}
	}
	for _, t := range sc.merge(len(piece), func(dst []sym, from, to int) []sym {
		for _, b := range piece[from:to] {
			dst = append(dst, sym{id: m.bytes[b], n: 1, w: 1})
		}
		return dst
	}) {
		dst = append(dst, t.id)
	}
	return dst
}

// spelling returns the vocabulary's spelling of one byte.
func (m *Model) spelling(b byte) []byte {
	s, _ := m.Vocab.Bytes(int(m.bytes[b]))
	return s
}
