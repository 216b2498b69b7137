package lineage

import "github.com/turnpack/turnpack/rollout"

// idCursor walks over ids stored in several pieces.
type idCursor struct {
	pieces [][]rollout.TokenID // none empty
	off    int                 // offset in the first piece
}

func cursorOf(ids []rollout.TokenID) idCursor {
	if len(ids) == 0 {
		return idCursor{}
	}
	return idCursor{pieces: [][]rollout.TokenID{ids}}
}

// rest returns the rest of the current piece, nil at the end.
func (c *idCursor) rest() []rollout.TokenID {
	if len(c.pieces) == 0 {
		return nil
	}
	return c.pieces[0][c.off:]
}

func (c *idCursor) advance(n int) {
	if c.off += n; c.off == len(c.pieces[0]) {
		c.pieces, c.off = c.pieces[1:], 0
	}
}

// next returns the next id and advances.
func (c *idCursor) next() (rollout.TokenID, bool) {
	ids := c.rest()
	if len(ids) == 0 {
		return 0, false
	}
	c.advance(1)
	return ids[0], true
}

// alignment is the result of align.
type alignment struct {
	subs   []Sub // from the position where align began
	engine int   // engine ids consumed when the row ended
	size   int   // tokens respelled: the longer side of each run
	over   bool  // texts agree up to the budget
	ok     bool
}

// align walks row against engine until the row is used up. Where ids differ it extends both runs,
// the shorter text first, until their texts are equal, and continues after them. It fails if the
// texts differ, if the row ends inside an engine token, or if more than budget tokens (negative: no
// limit) differ in spelling. Positions in subs count from rowAt.
func align(row, engine idCursor, rowAt int, text func(rollout.TokenID) string, budget int) alignment {
	var a alignment
	pos := rowAt
	for {
		r, e := row.rest(), engine.rest()
		if len(r) == 0 {
			a.ok = true
			return a
		}
		if k := commonPrefix(r, e); k > 0 {
			row.advance(k)
			engine.advance(k)
			pos += k
			a.engine += k
			continue
		}
		rowLen, engineLen, over, ok := alignRun(&row, &engine, text, budget-a.size, budget >= 0)
		if !ok {
			a.over = over
			return a
		}
		a.size += max(rowLen, engineLen)
		a.subs = append(a.subs, Sub{At: pos, Len: rowLen, EngineLen: engineLen})
		pos += rowLen
		a.engine += engineLen
	}
}

// alignRun consumes the smallest runs of equal text from both sides.
func alignRun(row, engine *idCursor, text func(rollout.TokenID) string, budget int, bounded bool) (rowLen, engineLen int, over, ok bool) {
	var rowText, engineText string // at most one is non-empty between steps
	takeRow, takeEngine := true, true
	for {
		if takeRow {
			id, more := row.next()
			if !more {
				return 0, 0, false, false
			}
			rowText += text(id)
			rowLen++
		}
		if takeEngine {
			id, more := engine.next()
			if !more {
				return 0, 0, false, false
			}
			engineText += text(id)
			engineLen++
		}
		k := min(len(rowText), len(engineText))
		if rowText[:k] != engineText[:k] {
			return 0, 0, false, false
		}
		rowText, engineText = rowText[k:], engineText[k:]
		if rowText == "" && engineText == "" {
			over = bounded && max(rowLen, engineLen) > budget
			return rowLen, engineLen, over, !over
		}
		if bounded && max(rowLen, engineLen) > budget {
			return 0, 0, true, false
		}
		takeRow, takeEngine = rowText == "", engineText == ""
	}
}
