package turnpack

import "github.com/turnpack/turnpack/rollout"

// Dropped says why a column that some turns record is written for none.
type Dropped struct {
	Without int // turns that do not record it
	Turns   int // turns that may train, those among them
	// First locates the first turn without.
	First rollout.Where
}

// coverage counts the turns that record what a column holds.
type coverage struct {
	turns, with int
	first       rollout.Where
}

func (c *coverage) add(r *rollout.Rollout, turn int, has bool) {
	c.turns++
	if has {
		c.with++
	} else if c.turns-c.with == 1 {
		c.first = rollout.Where{File: r.Origin.File, Line: r.Origin.Line, Rollout: r.ID, Turn: rollout.At(turn)}
	}
}

// whole says that every turn records it.
func (c *coverage) whole() bool { return c.turns > 0 && c.with == c.turns }

// dropped is nil for a column that is written, or that no turn records.
func (c *coverage) dropped() *Dropped {
	if c.with == 0 || c.with == c.turns {
		return nil
	}
	return &Dropped{Without: c.turns - c.with, Turns: c.turns, First: c.first}
}

// cover counts the turns of r that can have trained tokens.
func (x *run) cover(r *rollout.Rollout, logprobs, versions *coverage) {
	for i, t := range rollout.TurnsOf(r) {
		if t.Context.Unknown && !(t.Prompt.Captured() && t.Output != nil) {
			continue // left untrained
		}
		if t.Incomplete != "" {
			continue // the same
		}
		logprobs.add(r, i, t.Logprobs != nil)
		versions.add(r, i, t.Version != nil || x.PolicyVersion != nil)
	}
}
