package turnpack

import "github.com/turnpack/turnpack/rollout"

// Dropped says why a column that some turns record is left out.
type Dropped struct {
	Without int // turns that do not record it
	Turns   int // turns that may train, including those without
	// First locates the first turn without the column.
	First rollout.Where
}

func (d *Dropped) add(r *rollout.Rollout, turn int, has bool) {
	d.Turns++
	if has {
		return
	}
	if d.Without++; d.Without == 1 {
		d.First = rollout.Where{File: r.Origin.File, Line: r.Origin.Line, Rollout: r.ID, Turn: rollout.At(turn)}
	}
}

// written reports whether every turn records the column.
func (d *Dropped) written() bool { return d.Turns > 0 && d.Without == 0 }

// orNil returns nil if the column is written or no turn records it.
func (d Dropped) orNil() *Dropped {
	if d.Without == 0 || d.Without == d.Turns {
		return nil
	}
	return &d
}

// cover counts the turns of r that can have trained tokens, with and without each column.
func (x *run) cover(r *rollout.Rollout, logprobs, versions *Dropped) {
	for i, t := range rollout.TurnsOf(r) {
		if t.Context.Unknown && !(t.Prompt.Captured() && t.Output != nil) || t.Incomplete != "" {
			continue // left untrained
		}
		logprobs.add(r, i, t.Logprobs != nil)
		versions.add(r, i, t.Version != nil || x.PolicyVersion != nil)
	}
}
