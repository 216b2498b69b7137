package model

import (
	"encoding/binary"
	"unicode/utf8"
)

// Worker encodes pieces for one caller at a time and caches their ids, since pieces recur even in new text. Callers
// do not share it, so it needs no locks.
//
// A piece of up to 16 bytes with up to 3 ids is in one of two adjacent slots of 32 bytes; a hit moves it to the first
// slot and a new piece replaces the second. The same holds for parts of pieces, see parts. Longer pieces, up to 256
// bytes, and longer lists of ids are in a store that is emptied when full. Both grow with their content and take at
// most 10 MiB together.
type Worker struct {
	m *Model
	merger
	syms []sym
	text []byte

	slots []slot
	used  int
	long  longStore
	ends  [256]int32
	ids   []ID // of one piece
}

// slot holds a piece and its ids. Two adjacent slots share a cache line.
type slot struct {
	a, b uint64          // the bytes of the piece, then zeros
	ids  [maxShortIDs]ID // for more than 3 ids: what longStore.hold returned
	meta uint32          // number of bytes and of ids (0 for more than 3); 0 for a free slot
}

const (
	firstSlots  = 1 << 11
	mostSlots   = 1 << 17
	maxShortKey = 16
	maxShortIDs = 3
	maxLongKey  = 256

	// partTag is added to the length of a part of a piece, to distinguish it from a piece of the same bytes, which
	// may have other ids if merges are ignored.
	partTag    = maxShortKey
	maxPartKey = maxShortKey - 1
	lengthMask = 1<<5 - 1
)

// Splitter cuts text into pieces: Ends appends the ends of the pieces of s from i on to dst, until dst is full or s
// ends.
type Splitter interface {
	Ends(dst []int32, s []byte, i int) []int32
}

// NewWorker returns a worker with an empty cache.
func (m *Model) NewWorker() *Worker {
	return &Worker{m: m, merger: merger{pairs: m.Pairs}, slots: make([]slot, firstSlots)}
}

// mostResting is the number of symbols and bytes of pieces for which a worker keeps room between calls.
const mostResting = 1 << 15

// Rest frees the memory that only long pieces need. The cache is kept.
func (w *Worker) Rest() {
	if cap(w.syms)+cap(w.text)+cap(w.ids)+cap(w.read)+cap(w.out) > mostResting {
		w.merger, w.syms, w.text, w.ids = merger{pairs: w.m.Pairs}, nil, nil, nil
	}
}

// key is a piece of up to 16 bytes, zero-padded in two words, and its hash.
type key struct{ a, b, hash uint64 }

// low and high mask the bytes of a piece of n bytes in the first and second word; n may have a partTag.
var low, high = func() (low, high [lengthMask + 1]uint64) {
	for k := range low {
		n := k
		if n > maxShortKey {
			n -= partTag
		}
		low[k], high[k] = ^uint64(0), 0
		if n < 8 {
			low[k] = 1<<(8*n) - 1
		} else if n > 8 {
			high[k] = ^uint64(0) >> (8 * (maxShortKey - n))
		}
	}
	return low, high
}()

// keyOf returns the key of the bytes of s from i on; n is their number, at most 16, or that plus a partTag.
func keyOf(s []byte, i, n int) key {
	if i+maxShortKey <= len(s) {
		return newKey(binary.LittleEndian.Uint64(s[i:]), binary.LittleEndian.Uint64(s[i+8:]), n)
	}
	var buf [maxShortKey]byte
	copy(buf[:], s[i:])
	return newKey(binary.LittleEndian.Uint64(buf[:]), binary.LittleEndian.Uint64(buf[8:]), n)
}

func newKey(a, b uint64, n int) key {
	a, b = a&low[n&lengthMask], b&high[n&lengthMask]
	return key{a, b, mix(a^mix1, b^mix2^uint64(n)<<56)}
}

// place returns the two slots in which a piece may be.
func (w *Worker) place(hash uint64) *[2]slot {
	return (*[2]slot)(w.slots[hash&uint64(len(w.slots)-1)&^1:])
}

// find returns the slot of a piece of n bytes, nil if there is none.
func (w *Worker) find(k *key, n int) *slot {
	pair := w.place(k.hash)
	if x := &pair[0]; x.holds(k, n) {
		return x
	}
	if x := &pair[1]; x.holds(k, n) {
		pair[0], pair[1] = pair[1], pair[0] // recurring pieces stay
		return &pair[0]
	}
	return nil
}

// holds reports whether x holds the piece k of n bytes, with one branch for three comparisons. In Go ^ and | have the
// same precedence.
func (x *slot) holds(k *key, n int) bool {
	return (x.a^k.a)|(x.b^k.b)|uint64(x.meta&lengthMask^uint32(n)) == 0
}

// Append appends the ids of the pieces of s, text of a byte-level model, to dst. It starts with the piece at byte i
// and returns where it ended: soon after byte to, or at the end of s.
func (w *Worker) Append(dst []ID, s []byte, i, to int, sp Splitter) ([]ID, int) {
	for i < min(to, len(s)) {
		for _, end := range sp.Ends(w.ends[:0], s, i) {
			j := int(end)
			n := j - i
			if n > maxShortKey {
				dst = w.appendLong(dst, s[i:j])
				i = j
				continue
			}
			k := keyOf(s, i, n)
			x := w.find(&k, n)
			if x == nil || x.count() == 0 {
				dst = w.appendNew(dst, s[i:j], &k, x)
				i = j
				continue
			}
			if l := len(dst); cap(dst)-l >= maxShortIDs {
				// three stores and a reslice are cheaper than a branch on the count
				*(*[maxShortIDs]ID)(dst[l : l+maxShortIDs]) = x.ids
				dst = dst[:l+x.count()]
			} else {
				dst = append(dst, x.ids[:x.count()]...)
			}
			i = j
		}
	}
	return dst, i
}

// AppendPiece appends the ids of one piece.
func (w *Worker) AppendPiece(dst []ID, piece []byte) []ID {
	n := len(piece)
	if n > maxShortKey {
		return w.appendLong(dst, piece)
	}
	k := keyOf(piece, 0, n)
	x := w.find(&k, n)
	if x != nil && x.count() > 0 {
		return append(dst, x.ids[:x.count()]...)
	}
	return w.appendNew(dst, piece, &k, x)
}

func (x *slot) count() int { return int(x.meta >> 5 & 3) }

// appendNew encodes a short piece without cached ids in its slot: x is nil for a new piece, else a slot whose ids are
// in the long store or were dropped from it.
func (w *Worker) appendNew(dst []ID, piece []byte, k *key, x *slot) []ID {
	if x != nil {
		if ids := w.long.held(x.ids); ids != nil {
			return append(dst, ids...)
		}
	}
	first := len(dst)
	dst = w.merged(dst, piece)
	w.remember(k, len(piece), dst[first:], x)
	return dst
}

// remember caches the ids of a piece, or of a part of one, in slot x, or in a new slot if x is nil.
func (w *Worker) remember(k *key, n int, ids []ID, x *slot) {
	if x == nil {
		if w.used++; 2*w.used > len(w.slots) && len(w.slots) < mostSlots {
			w.grow()
		}
		pair := w.place(k.hash)
		if x = &pair[0]; x.meta != 0 {
			x = &pair[1]
		}
	}
	*x = slot{a: k.a, b: k.b, meta: uint32(n)}
	if len(ids) > maxShortIDs {
		x.ids = w.long.hold(ids)
		return
	}
	copy(x.ids[:], ids)
	x.meta |= uint32(len(ids)) << 5
}

// grow makes the table eight times as large. A page of new memory costs as much as encoding 300 bytes, so the table
// grows in few steps.
func (w *Worker) grow() {
	old := w.slots
	w.slots, w.used = table[slot](min(8*len(old), mostSlots)), 0
	for _, x := range old {
		if x.meta == 0 {
			continue
		}
		pair := w.place(newKey(x.a, x.b, int(x.meta&lengthMask)).hash)
		if pair[0].meta == 0 {
			pair[0] = x
		} else {
			pair[1] = x
		}
		w.used++
	}
}

// appendLong encodes a piece of more than 16 bytes.
func (w *Worker) appendLong(dst []ID, piece []byte) []ID {
	if len(piece) > maxLongKey || piece[0] >= 0xE0 && w.m.chars != nil {
		return w.merged(dst, piece)
	}
	h := hashBytes(piece)
	if ids := w.long.find(piece, h); ids != nil {
		return append(dst, ids...)
	}
	first := len(dst)
	dst = w.merged(dst, piece)
	w.long.put(piece, h, dst[first:])
	return dst
}

// merged computes the ids of a piece.
func (w *Worker) merged(dst []ID, piece []byte) []ID {
	m := w.m
	if m.IgnoreMerges && m.mayKnow(piece) {
		w.text = w.text[:0]
		for _, b := range piece {
			w.text = append(w.text, m.spelling(b)...)
		}
		if id := m.Vocab.Find(w.text); id >= 0 {
			return append(dst, id)
		}
	}
	if m.chars == nil {
		return w.merge1(dst, piece)
	}
	return w.parts(dst, piece)
}

// parts encodes a piece in parts between which nothing merges, since long pieces seldom recur but their parts do. In
// Chinese, Japanese and Korean text the characters determine where that is. In names with words that begin in upper
// case the tokens at the seam do; if they merge, the piece is encoded as a whole.
func (w *Worker) parts(dst []ID, piece []byte) []ID {
	c, n := w.m.chars, len(piece)
	first, from, last := len(dst), 0, rune(0)
	seam := 0 // index of the token after a seam to check; 0 for none
	for i := 0; ; {
		r, end, word := rune(0), i+1, false
		if i < n && piece[i] >= utf8.RuneSelf {
			r, end = c.at(piece, i)
		} else if i < n {
			word = i > from && piece[i]-'A' < 26 && piece[i-1]-'a' < 26 && w.pairs.made != nil
		} else if from == 0 {
			return w.merge1(dst, piece)
		}
		if i == n || word || r != 0 && last != 0 && !c.glued(last, r) {
			if last != 0 && i-from == utf8.RuneLen(last) {
				dst = append(dst, c.of[last].token-1)
			} else {
				dst = w.part(dst, piece, from, i)
			}
			if seam > 0 && !w.pairs.apart(dst[seam-1], dst[seam], noRank) {
				return w.merge1(dst[:first], piece)
			}
			if from, seam = i, 0; word {
				seam = len(dst)
			}
			if i == n {
				return dst
			}
		}
		last, i = r, end
	}
}

// part encodes piece[from:to].
func (w *Worker) part(dst []ID, piece []byte, from, to int) []ID {
	part, n := piece[from:to], to-from
	if n > maxPartKey {
		return w.merge1(dst, part)
	}
	k := keyOf(piece, from, n+partTag)
	if x := w.find(&k, n+partTag); x != nil {
		return append(dst, x.ids[:x.count()]...)
	}
	first := len(dst)
	dst = w.merge1(dst, part)
	if ids := dst[first:]; len(ids) <= maxShortIDs {
		w.remember(&k, n+partTag, ids, nil)
	}
	return dst
}

// merge1 merges the bytes of a piece or a part of one.
func (w *Worker) merge1(dst []ID, piece []byte) []ID {
	w.ids = w.m.initial(w.ids[:0], piece)
	if len(w.ids) == 2 {
		if rank, into := w.pairs.merge(w.ids[0], w.ids[1]); rank != noRank {
			return append(dst, into)
		}
		return append(dst, w.ids...)
	}
	if len(w.ids) <= smallLen {
		return w.small(dst, w.ids)
	}
	for _, t := range w.merge(len(w.ids), func(dst []sym, from, to int) []sym {
		for _, id := range w.ids[from:to] {
			dst = append(dst, sym{id: id, n: 1})
		}
		return dst
	}) {
		dst = append(dst, t.id)
	}
	return dst
}

// longStore caches texts and their ids. It is emptied when full.
type longStore struct {
	slots   []longSlot
	used    int
	text    []byte
	ids     []ID
	emptied int32 // how often it was emptied
}

type longSlot struct {
	hash     uint64
	text, id uint32 // where they begin
	size     uint16 // bytes of text, 0 for a free slot
	count    uint16 // number of ids
}

const (
	firstLong    = 1 << 8
	mostLong     = 1 << 16
	mostLongText = 2 << 20
	mostLongIDs  = 1 << 19
)

func (s *longStore) slot(text []byte, h uint64) *longSlot {
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		x := &s.slots[i]
		if x.size == 0 || x.hash == h && int(x.size) == len(text) && string(s.text[x.text:][:x.size]) == string(text) {
			return x
		}
	}
}

// find returns the ids of text, nil if they are not stored.
func (s *longStore) find(text []byte, h uint64) []ID {
	if s.slots == nil {
		return nil
	}
	x := s.slot(text, h)
	if x.size == 0 {
		return nil
	}
	return s.ids[x.id:][:x.count:x.count]
}

// put adds a text of 1 to 65,535 bytes that is not in the store.
func (s *longStore) put(text []byte, h uint64, ids []ID) {
	switch {
	case s.slots == nil:
		s.slots = make([]longSlot, firstLong)
	case len(s.text)+len(text) > mostLongText, 2*s.used > mostLong:
		s.empty()
	case 2*s.used > len(s.slots):
		old := s.slots
		s.slots = table[longSlot](4 * len(old))
		for _, x := range old {
			if x.size > 0 {
				*s.slot(s.text[x.text:][:x.size], x.hash) = x
			}
		}
	}
	at := s.hold(ids)
	*s.slot(text, h) = longSlot{hash: h, text: uint32(len(s.text)), id: uint32(at[0]), size: uint16(len(text)), count: uint16(len(ids))}
	s.text = append(room(s.text, len(text), mostLongText), text...)
	s.used++
}

func (s *longStore) empty() {
	clear(s.slots)
	s.used, s.text, s.ids = 0, s.text[:0], s.ids[:0]
	s.emptied++
}

// hold stores ids. It returns where they begin, their number, and how often s was emptied.
func (s *longStore) hold(ids []ID) [3]ID {
	if len(s.ids)+len(ids) > mostLongIDs {
		s.empty()
	}
	at := ID(len(s.ids))
	s.ids = append(room(s.ids, len(ids), mostLongIDs), ids...)
	return [3]ID{at, ID(len(ids)), s.emptied}
}

// room returns s with room for n more elements, growing up to a capacity of most.
func room[T any](s []T, n, most int) []T {
	if n += len(s); n <= cap(s) {
		return s
	}
	return append(make([]T, 0, min(4*n, most)), s...)
}

// held returns the ids that hold stored, nil if s has been emptied since.
func (s *longStore) held(at [3]ID) []ID {
	if at[2] != s.emptied {
		return nil
	}
	return s.ids[at[0]:][:at[1]:at[1]]
}
