package tokenize

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// columns is a run of tokens with what is known of each: the parts of a
// rollout.Sequence that rendering can tell.
type columns struct {
	ids    []rollout.TokenID
	source []int32
	flags  []rollout.Flag
}

func (c *columns) len() int { return len(c.ids) }

func (c *columns) truncate(n int) {
	c.ids, c.source, c.flags = c.ids[:n], c.source[:n], c.flags[:n]
}

func (c *columns) add(id rollout.TokenID, source int32, flags rollout.Flag) {
	c.ids = append(c.ids, id)
	c.source = append(c.source, source)
	c.flags = append(c.flags, flags)
}

// grow makes room for n more.
func (c *columns) grow(n int) {
	c.ids, c.source, c.flags = slices.Grow(c.ids, n), slices.Grow(c.source, n), slices.Grow(c.flags, n)
}

// extend appends ids and returns where their sources and flags go, which are
// still to be set.
func (c *columns) extend(ids []rollout.TokenID) (source []int32, flags []rollout.Flag) {
	from, n := len(c.ids), len(c.ids)+len(ids)
	c.ids = append(c.ids, ids...)
	c.source, c.flags = slices.Grow(c.source, len(ids))[:n], slices.Grow(c.flags, len(ids))[:n]
	return c.source[from:], c.flags[from:]
}

func (c *columns) append(o columns) {
	c.ids = append(c.ids, o.ids...)
	c.source = append(c.source, o.source...)
	c.flags = append(c.flags, o.flags...)
}

func (c columns) slice(from, to int) columns {
	return columns{c.ids[from:to:to], c.source[from:to:to], c.flags[from:to:to]}
}

// clone returns c in memory of its own.
func (c columns) clone() columns {
	var out columns
	out.append(c)
	return out
}
