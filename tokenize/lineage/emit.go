package lineage

import (
	"cmp"
	"slices"
)

// emit is pass 3: it lays out the rows, ordered by the record index of their first turn, and
// accounts for every token.
func (res *Result) emit() {
	m := res.merge
	*res = Result{merge: m}
	for i := range m.turns {
		switch r := &m.turns[i]; {
		case r.empty():
			res.EmptyTurns = append(res.EmptyTurns, i)
		case r.excluded:
			res.Dropped = append(res.Dropped, Drop{Turn: i, Len: len(r.output), Reason: dropPolicy})
		}
	}
	w := &writer{merge: m, res: res}
	for _, j := range m.heads() {
		w.begin(j)
		for i := j; m.succ[i] != none; i = m.succ[i] {
			w.follow(i, m.succ[i])
		}
		w.finish()
	}
	slices.SortStableFunc(res.Dropped, func(a, b Drop) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.From, b.From))
	})
	res.account()
}

// writer lays out one row at a time.
type writer struct {
	*merge
	res *Result
	row Row
	// subs are the differences between the row so far and the engine's full ids of its last turn.
	subs []Sub
}

func (w *writer) begin(j int32) {
	w.row = Row{Break: w.reason[j], merge: w.merge}
	w.subs = nil
	w.put(link{turn: j})
}

// follow continues from turn i, the row's last, to turn j.
func (w *writer) follow(i, j int32) {
	jt := w.join[j]
	join := Join{Prev: int(i), Turn: int(j), Kind: jt.kind}
	switch jt.kind {
	case joinExact:
		w.put(link{turn: j, from: w.turns[i].fLen()})
	case joinRealign:
		respelled := w.respelled(i, j, jt.at)
		join.Dropped = w.cut(w.rowPosition(i, jt.at), func(from int) string {
			if from == 0 {
				return dropErase
			}
			return dropRealign
		})
		w.put(link{turn: j, from: jt.at, realigned: respelled})
	case joinSplice:
		join.Substituted = jt.cost
		w.put(link{turn: j, from: w.splice(j, jt.at)})
	}
	w.row.Joins = append(w.row.Joins, join)
}

// rowPosition converts an offset in the full ids of turn i, the row's last turn, to a row position.
// Offsets before its response are valid only for rows without substitutions.
func (w *writer) rowPosition(i int32, at int) int {
	return at + w.row.n - w.turns[i].fLen()
}

// put appends a turn to the row: the rest of its prompt, then its output, which is trained.
func (w *writer) put(l link) {
	r := &w.turns[l.turn]
	l.start = w.row.n
	w.row.links = append(w.row.links, l)
	w.row.n += r.fLen() - l.from
	w.row.Spans = append(w.row.Spans, Span{Turn: int(l.turn), Start: w.row.n - len(r.output), Len: len(r.output), Subs: w.subs[:len(w.subs):len(w.subs)]})
}

// cut shortens the row to n ids, declares the sampled ids cut off as dropped and returns their
// number. reason is called with the output offset of the first.
func (w *writer) cut(n int, reason func(from int) string) (dropped int) {
	row := &w.row
	for k := len(row.Spans) - 1; k >= 0; k-- {
		s := &row.Spans[k]
		keep := max(0, n-s.Start)
		if keep >= s.Len {
			break
		}
		lost := Drop{Turn: s.Turn, From: s.From + keep, Len: s.Len - keep, Reason: reason(s.From + keep)}
		w.res.Dropped = append(w.res.Dropped, lost)
		dropped += lost.Len
		s.Len = keep
		if keep == 0 {
			row.Spans = row.Spans[:k]
		}
	}
	row.n = min(row.n, n)
	for k := len(row.links) - 1; k >= 0 && row.links[k].start >= n; k-- {
		row.links = row.links[:k]
	}
	return dropped
}

// splice aligns the row with prompt j, which shares its first at ids with the last turn's full ids,
// and returns the prompt offset that corresponds to the row's end.
func (w *writer) splice(j int32, at int) int {
	// Substitutions inside the shared ids stay as they are. After them, row and prompt agree up to
	// the next substitution or the divergence.
	keep := len(w.subs)
	rowAt, engineAt := 0, 0
	for k, s := range w.subs {
		start := engineAt + s.At - rowAt
		if start+s.EngineLen > at {
			at = min(at, start)
			keep = k
			break
		}
		rowAt, engineAt = s.At+s.Len, start+s.EngineLen
	}
	rowAt += at - engineAt
	var row idCursor
	for p := range w.row.piecesFrom(rowAt) {
		if end := p.Start + len(p.IDs); end > rowAt {
			row.pieces = append(row.pieces, p.IDs[max(0, rowAt-p.Start):])
		}
	}
	a := align(row, idCursor{pieces: w.trie.pieces(nil, w.turns[j].prompt, at)}, rowAt, w.opts.Text, -1)
	if keep < len(w.subs) {
		w.subs = slices.Clone(w.subs[:keep]) // earlier spans keep their list
	}
	w.markStops(a.subs)
	w.subs = append(w.subs, a.subs...)
	return at + a.engine
}

// markStops sets Stop in the substitutions of one stop id by another.
func (w *writer) markStops(subs []Sub) {
	if len(w.opts.StopRewrites) == 0 {
		return
	}
	for k := range subs {
		s := &subs[k]
		if s.Len != 1 || s.EngineLen != 1 {
			continue
		}
		id := w.row.at(s.At)
		for sampled, shown := range w.opts.StopRewrites {
			s.Stop = s.Stop || id == sampled || id == shown
		}
	}
}

// respelled returns how many ids of prompt j from offset at spell what turn i gave up there: by
// text if texts are known, else up to the turn's last id if that follows soon. 0 means that nothing
// proves a respelling.
func (w *writer) respelled(i, j int32, at int) int {
	r := &w.turns[i]
	if at < r.pLen {
		return 0
	}
	lost := r.output[at-r.pLen:]
	room := min(w.turns[j].pLen-at, len(lost)+w.opts.MaxSubTokens)
	rest := w.trie.appendFirst(nil, w.turns[j].prompt, at, room)
	if w.opts.Text == nil {
		return 1 + slices.Index(rest, lost[len(lost)-1])
	}
	a := align(cursorOf(lost), cursorOf(rest), 0, w.opts.Text, -1)
	if !a.ok {
		return 0
	}
	return a.engine
}

// finish applies the length limit and stores the row, unless none of it is trained any more.
func (w *writer) finish() {
	if limit := w.opts.MaxRowTokens; limit > 0 && w.row.n > limit {
		w.cut(limit, func(int) string { return dropTooLong })
		if k := len(w.row.Spans) - 1; k >= 0 {
			last := w.row.Spans[k]
			w.cut(last.Start+last.Len, nil) // context after the last trained id is useless
		}
	}
	if len(w.row.Spans) > 0 {
		w.res.Rows = append(w.res.Rows, w.row)
	}
}
