package model

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"unicode/utf8"
)

// Model is a byte pair encoding model; it is safe for concurrent use.
type Model struct {
	Vocab *Vocab
	Pairs *Pairs

	// IgnoreMerges encodes a piece that is a vocabulary entry as that token.
	IgnoreMerges bool
	// FuseUnk joins adjacent unknown tokens to one.
	FuseUnk bool
	// ByteFallback spells text that is not in the vocabulary as <0xNN> tokens.
	ByteFallback bool
	// Unk is the unknown token, −1 if there is none.
	Unk int32
	// Exact allows offsets inside characters, where a token ends there.
	Exact bool
	// Prefix is put before each symbol but the first, Suffix after the last.
	Prefix, Suffix string

	// bytes holds the symbol of each byte if the model is byte-level.
	bytes [256]int32
	raw   bool
	// fallback holds the <0xNN> tokens, −1 for missing ones.
	fallback [256]int32
	ascii    [128]int32
	width    []int32 // by id: bytes of a piece that the token covers; raw bytes if raw, else bytes of the spelling
	near     []uint8 // min(width, wide) by id, which stays in cache
	widest   int     // the largest width
	cuts     *cuts
	chars    *chars
	// unmade has a bit for each hash of the text of a token that merging does not make. It is set if the model is raw
	// and ignores merges.
	unmade []uint64
}

// Init prepares the lookup tables. Vocab must be complete; merges returns the pairs and runs while the vocabulary's
// tables are built. For byte-level models spell returns the character that stands for a byte and unspell appends the
// bytes of a spelling; spell is nil for others.
func (m *Model) Init(spell func(byte) rune, unspell func(dst, spelling []byte) ([]byte, bool), merges func() (*Pairs, error)) error {
	m.symbols(spell)
	var tokens []charBytes
	var meanwhile sync.WaitGroup
	meanwhile.Go(func() { tokens = m.measure(unspell) })
	var first []int32
	if m.raw {
		first = m.bytes[:]
	}
	var err error
	if m.Pairs, err = merges(); err == nil {
		m.Pairs.done(first, m.IgnoreMerges)
	}
	meanwhile.Wait()
	if err != nil {
		return err
	}
	if m.raw && m.IgnoreMerges {
		m.learnUnmade(unspell)
	}
	if m.raw {
		m.chars = newChars(m, tokens)
	} else {
		m.cuts = newCuts(m)
	}
	return nil
}

// symbols fills the tokens of bytes and characters.
func (m *Model) symbols(spell func(byte) rune) {
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
}

// measure fills the other tables that depend only on the vocabulary.
func (m *Model) measure(unspell func(dst, spelling []byte) ([]byte, bool)) []charBytes {
	m.width, m.near = make([]int32, m.Vocab.Size()), make([]uint8, m.Vocab.Size())
	var tokens []charBytes
	if m.raw {
		tokens = make([]charBytes, m.Vocab.Size())
	}
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
		m.width[id], m.near[id] = int32(len(b)), uint8(min(len(b), wide))
		m.widest = max(m.widest, len(b))
		if m.raw && len(b) > 0 {
			tokens[id] = newCharBytes(b)
		}
	}
	for _, id := range m.fallback {
		if !m.raw && m.ByteFallback && id >= 0 {
			m.width[id] = 1
		}
	}
	return tokens
}

// learnUnmade fills unmade.
func (m *Model) learnUnmade(unspell func(dst, spelling []byte) ([]byte, bool)) {
	var ids []int
	for id := range m.width {
		if made := m.Pairs.made; made == nil || id >= len(made) || made[id].a == notMade {
			ids = append(ids, id)
		}
	}
	m.unmade = make([]uint64, 1<<bits.Len(uint(len(ids)/2)))
	for _, id := range ids {
		b, _ := m.Vocab.Bytes(id)
		if raw, ok := unspell(nil, b); ok {
			b = raw
		}
		h := m.unmadeHash(b)
		m.unmade[h>>6] |= 1 << (h & 63)
	}
}

func (m *Model) unmadeHash(b []byte) uint64 { return hashBytes(b) & uint64(64*len(m.unmade)-1) }

// mayKnow reports whether piece may be the text of a token that merging does not make.
func (m *Model) mayKnow(piece []byte) bool {
	h := m.unmadeHash(piece)
	return len(piece) <= m.widest && m.unmade[h>>6]>>(h&63)&1 != 0
}

// Raw reports whether the model takes pieces as plain bytes: every byte has a symbol.
func (m *Model) Raw() bool { return m.raw }

// Width returns the number of bytes of text that token id of a byte-level model stands for.
func (m *Model) Width(id ID) int { return int(m.width[id]) }

// AppendRanges appends the ranges of ids, which cover text from byte at on, plus shift. Ranges are widened to whole
// characters unless the model is Exact.
func (m *Model) AppendRanges(dst []int32, ids []ID, text []byte, at, shift int) []int32 {
	first, begin := len(dst), at
	dst = slices.Grow(dst, 2*len(ids))[:first+2*len(ids)]
	for k, to := 0, dst[first:]; k < len(ids); k++ {
		n := int(m.near[ids[k]])
		if n == wide {
			n = m.Width(ids[k])
		}
		at += n
		end, next := at, at
		if inside(text, at) {
			end, next = m.seam(text, at)
		}
		to[2*k], to[2*k+1] = int32(begin+shift), int32(end+shift)
		begin = next
	}
	return dst
}

// wide replaces widths that do not fit into near.
const wide = math.MaxUint8

// seam returns where the range of a token that ends at byte at of piece ends, and where the range of the next one
// begins.
func (m *Model) seam(piece []byte, at int) (end, begin int) {
	end, begin = at, at
	if !m.Exact {
		for inside(piece, begin) {
			begin--
		}
		for inside(piece, end) {
			end++
		}
	}
	return end, begin
}

// inside reports whether byte i of s continues a character.
func inside(s []byte, i int) bool { return i < len(s) && s[i]&0xC0 == 0x80 }

// spelling returns the vocabulary's spelling of one byte.
func (m *Model) spelling(b byte) []byte {
	s, _ := m.Vocab.Bytes(int(m.bytes[b]))
	return s
}
