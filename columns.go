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
	Turns, With int
	First       rollout.Where
}

func (c *coverage) add(r *rollout.Rollout, turn int, has bool) {
	c.Turns++
	if has {
		c.With++
	} else if c.Turns-c.With == 1 {
		c.First = rollout.Where{File: r.Origin.File, Line: r.Origin.Line, Rollout: r.ID, Turn: rollout.At(turn)}
	}
}

// whole says that every turn records it.
func (c *coverage) whole() bool { return c.Turns > 0 && c.With == c.Turns }

// dropped is nil for a column that is written, or that no turn records.
func (c *coverage) dropped() *Dropped {
	if c.With == 0 || c.With == c.Turns {
		return nil
	}
	return &Dropped{Without: c.Turns - c.With, Turns: c.Turns, First: c.First}
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
