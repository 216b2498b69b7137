package model

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// Segments remembers the ids of stretches of text that hold several pieces: a
// line or two, or some words of a long one. Rollouts repeat themselves (each
// step's context holds the one before), and one look-up per line costs a
// fraction of one per piece. It is safe for concurrent use, takes no lock and is
// bounded.
type Segments struct {
	buckets []bucket
	// seen holds hashes of segments met once: only the second meeting stores one,
	// so that text that never repeats costs no memory
	seen []atomic.Uint32
	turn atomic.Uint32
}

// bucket is a cache line: tags tell most entries apart without touching them.
type bucket struct {
	tags    [segmentWays]atomic.Uint32
	entries [segmentWays]atomic.Pointer[Segment]
	_       [16]byte
}

// Segment is an immutable entry: this header and behind it, in the same
// allocation, the text, which is looked at first, the ids (4 bytes each) and what
// [Segment.Offsets] needs.
type Segment struct {
	hash  uint64
	n     uint32 // ids
	size  uint16 // bytes of text
	perID uint16 // bytes of ends for each id
}

const (
	segmentWays = 4
	headerSize  = int(unsafe.Sizeof(Segment{}))

	// MaxSegment is the length up to which text is stored as one segment; its
	// offsets fit a byte.
	MaxSegment = 255
)

// NewSegments makes an empty store of 4<<bits entries.
func NewSegments(bits int) *Segments {
	return &Segments{buckets: make([]bucket, 1<<bits), seen: make([]atomic.Uint32, segmentWays<<bits)}
}

// IDs returns the ids of the segment, which must not be changed.
func (e *Segment) IDs() []ID {
	return unsafe.Slice((*ID)(unsafe.Add(unsafe.Pointer(e), headerSize+padded(int(e.size)))), e.n)
}

func (e *Segment) text() string {
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(e), headerSize)), e.size)
}

// padded is the room of n bytes in front of ids.
func padded(n int) int { return (n + 3) &^ 3 }

// Hash returns the hash of a segment of at least 16 bytes.
func Hash(b []byte) uint64 {
	h := uint64(len(b)) * mix1
	last := b[len(b)-16:]
	for len(b) > 16 {
		h = mix(binary.LittleEndian.Uint64(b)^mix2, binary.LittleEndian.Uint64(b[8:])^h)
		b = b[16:]
	}
	return mix(binary.LittleEndian.Uint64(last)^mix1, binary.LittleEndian.Uint64(last[8:])^h)
}

func (s *Segments) bucket(h uint64) *bucket { return &s.buckets[h&uint64(len(s.buckets)-1)] }

func tagOf(h uint64) uint32 { return uint32(h>>32) | 1 }

// Touch asks for what Candidate reads.
func (s *Segments) Touch(h uint64) { s.bucket(h).tags[0].Load() }

// Candidate returns the entry that is most likely that of hash h, without a look
// at it, or nil.
func (s *Segments) Candidate(h uint64) *Segment {
	k, tag, w := s.bucket(h), tagOf(h), 0
	if k.tags[1].Load() == tag {
		w = 1
	}
	if k.tags[2].Load() == tag {
		w = 2
	}
	if k.tags[3].Load() == tag {
		w = 3
	}
	return k.entries[w].Load()
}

// Is reports whether e is the entry of b, whose hash is h.
func (e *Segment) Is(b []byte, h uint64) bool { return e.hash == h && e.text() == string(b) }

// Find returns the entry of b, nil for none.
func (s *Segments) Find(b []byte, h uint64) *Segment {
	k := s.bucket(h)
	for w := range segmentWays {
		if k.tags[w].Load() != tagOf(h) {
			continue
		}
		if e := k.entries[w].Load(); e != nil && e.Is(b, h) {
			return e
		}
	}
	return nil
}

// Wants reports whether a segment should be stored: it was met before, and its
// entry would displace none. One in a few may displace another; most are refused,
// lest text that exceeds the store passes through it in vain.
func (s *Segments) Wants(h uint64) bool {
	return s.met(h) && (s.bucket(h).tags[segmentWays-1].Load() == 0 || s.turn.Add(1)%16 == 0)
}

// met records that a segment was met and reports whether it was met before.
func (s *Segments) met(h uint64) bool {
	ways := s.seen[h>>16&uint64(len(s.seen)-1)&^(segmentWays-1):][:segmentWays]
	way := int(h >> 62)
	for w := range ways {
		switch ways[w].Load() {
		case tagOf(h):
			return true
		case 0:
			way = w
		}
	}
	ways[way].Store(tagOf(h))
	return false
}

// Put stores an entry and returns it; offsets are relative to the segment, and nil
// where none will be asked for.
func (s *Segments) Put(b []byte, h uint64, ids []ID, offsets []int32) *Segment {
	// whole words, without pointers: the collector does not look inside
	perID := endsPerID(offsets)
	words := make([]uint64, (headerSize+padded(len(b))+(4+int(perID))*len(ids)+7)/8)
	e := (*Segment)(unsafe.Pointer(&words[0]))
	*e = Segment{hash: h, n: uint32(len(ids)), size: uint16(len(b)), perID: perID}
	copy(e.IDs(), ids)
	e.setEnds(offsets)
	copy(unsafe.Slice(unsafe.StringData(e.text()), len(b)), b)
	k := s.bucket(h)
	way := int(h >> 62)
	for w := range segmentWays {
		if k.tags[w].Load() == 0 {
			way = w
			break
		}
	}
	k.entries[way].Store(e)
	k.tags[way].Store(tagOf(h))
	return e
}
