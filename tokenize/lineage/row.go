package lineage

import (
	"iter"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Row is one training row: a chain of turns over one token sequence. Its ids are views of the
// recorded turns; AppendIDs copies them.
type Row struct {
	// Spans are the trained positions, in order. Every other position has mask 0.
	Spans []Span
	// Joins are the joins between the turns of the row, in order.
	Joins []Join
	// Break is the reason for which the row starts.
	Break string

	merge *merge
	links []link
	n     int
}

// link is one turn of a row: its prompt ids from offset from on, then its output. It begins at row
// position start and ends where the next link begins.
type link struct {
	turn      int32
	from      int
	start     int
	realigned int // how many ids from offset from on replace dropped ones
}

// Span is a run of trained ids: output ids From…From+Len of turn Turn are at row positions
// Start…Start+Len.
type Span struct {
	Turn, From, Start, Len int
	// Subs are the places before Start where the row spells the same text differently than the
	// engine's context of this turn, in row order. If there are none, the ids before Start are the
	// engine's context. Spans may share the slice; do not change it.
	Subs []Sub
}

// Sub says that Len row ids from row position At replace EngineLen ids of the engine with the same
// text.
type Sub struct {
	At, Len, EngineLen int
	// Stop says that a sampled stop id replaces another one of the engine's context
	// (Options.StopRewrites).
	Stop bool
}

// Join is one join of a row.
type Join struct {
	Prev, Turn  int // record indices of the earlier and the later turn
	Kind        string
	Dropped     int // sampled tokens that a realigned join gave up
	Substituted int // tokens that a spliced join respelled
}

// Piece is a run of row ids of one origin.
type Piece struct {
	IDs   []rollout.TokenID // a view, not to be changed
	Kind  string
	Turn  int // the turn that sampled the ids, for "sampled" and "replay"; else -1
	From  int // output offset of the first id in Turn; -1 if Turn is -1
	Start int // row position of the first id
}

// Pieces yields the ids of the row in order, without copying.
func (r *Row) Pieces() iter.Seq[Piece] { return r.piecesFrom(0) }

// piecesFrom is Pieces from the link that has row position from.
func (r *Row) piecesFrom(from int) iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		var way []int32
		first, found := slices.BinarySearchFunc(r.links, from, func(l link, at int) int { return l.start - at })
		if !found && first > 0 {
			first--
		}
		for k := first; k < len(r.links); k++ {
			end := r.n
			if k+1 < len(r.links) {
				end = r.links[k+1].start
			}
			kind := segContext
			if k == 0 {
				kind = segPrompt
			}
			if !r.link(&r.links[k], kind, end, &way, yield) {
				return
			}
		}
	}
}

// at returns the id at a row position.
func (r *Row) at(position int) rollout.TokenID {
	for p := range r.piecesFrom(position) {
		if k := position - p.Start; k < len(p.IDs) {
			return p.IDs[k]
		}
	}
	return -1
}

// link yields the pieces of one link up to row position end and reports whether the consumer
// continues; way is scratch space.
func (r *Row) link(l *link, kind string, end int, way *[]int32, yield func(Piece) bool) bool {
	m := r.merge
	t := &m.turns[l.turn]
	at := l.start
	put := func(p Piece) bool {
		p.Start = at
		p.IDs = p.IDs[:min(len(p.IDs), end-at)]
		at += len(p.IDs)
		return len(p.IDs) == 0 || yield(p)
	}
	realigned := l.realigned
	*way = m.trie.path((*way)[:0], t.prompt, l.from)
	for _, x := range *way {
		n := &m.trie.nodes[x]
		start := max(l.from, n.depth-len(n.ids))
		ids := n.ids[len(n.ids)-(n.depth-start):]
		if k := min(len(ids), realigned); k > 0 {
			if !put(Piece{IDs: ids[:k], Kind: segRealigned, Turn: -1, From: -1}) {
				return false
			}
			realigned -= k
			start += k
			ids = ids[k:]
		}
		p := Piece{IDs: ids, Kind: kind, Turn: -1, From: -1}
		if o := m.owner[x]; o != none {
			p.Kind, p.Turn = segReplay, int(m.owners[o].turn)
			p.From = start - m.turns[p.Turn].pLen
		}
		if !put(p) {
			return false
		}
	}
	return put(Piece{IDs: t.output, Kind: segSampled, Turn: int(l.turn)})
}

// AppendIDs appends the ids of the row to dst.
func (r *Row) AppendIDs(dst []rollout.TokenID) []rollout.TokenID {
	dst = slices.Grow(dst, r.n)
	for p := range r.Pieces() {
		dst = append(dst, p.IDs...)
	}
	return dst
}

// AppendMask appends one byte per id: 1 if the id is trained, else 0.
func (r *Row) AppendMask(dst []uint8) []uint8 {
	base := len(dst)
	dst = append(dst, make([]uint8, r.n)...)
	for _, s := range r.Spans {
		for k := range s.Len {
			dst[base+s.Start+k] = 1
		}
	}
	return dst
}

// AppendLogprobs appends one value per id: the recorded log probability if the id is trained and
// its turn has log probabilities, else 0.
func (r *Row) AppendLogprobs(dst []float32) []float32 {
	base := len(dst)
	dst = append(dst, make([]float32, r.n)...)
	for _, s := range r.Spans {
		if lp := r.merge.turns[s.Turn].logprobs; lp != nil {
			copy(dst[base+s.Start:base+s.Start+s.Len], lp[s.From:])
		}
	}
	return dst
}
