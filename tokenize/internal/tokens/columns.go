package tokens

import "github.com/turnpack/turnpack/rollout"

// Columns is a run of tokens with the origin of each: the part of a rollout.Sequence that
// follows from rendering.
type Columns struct {
	IDs    []rollout.TokenID
	Source []int32
	Flags  []rollout.Flag
}

func (c *Columns) Len() int { return len(c.IDs) }

func (c *Columns) Truncate(n int) {
	c.IDs, c.Source, c.Flags = c.IDs[:n], c.Source[:min(n, len(c.Source))], c.Flags[:min(n, len(c.Flags))]
}

func (c *Columns) Add(id rollout.TokenID, source int32, flags rollout.Flag) {
	c.IDs = append(c.IDs, id)
	c.Source = append(c.Source, source)
	c.Flags = append(c.Flags, flags)
}

func (c Columns) Slice(from, to int) Columns {
	return Columns{c.IDs[from:to:to], c.Source[from:to:to], c.Flags[from:to:to]}
}
