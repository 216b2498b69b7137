// Package step divides the groups of a batch into training steps.
package step

import (
	"errors"

	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/rollout"
)

// Sink is where rows go.
type Sink interface {
	Write(rollout.Sample) error
	Close() error
	Abort() error
}

// Groups prepares each group for a trainer and divides groups into steps before they
// are written.
type Groups struct {
	Target  *target.Target
	To      Sink
	PerStep int          // most rollouts of a step, 0 = any number
	EndStep func() error // of a set; nil = none is written

	group  []rollout.Sample
	inStep int // rollouts in the step so far
}

// Write takes the next row.
func (g *Groups) Write(s rollout.Sample) error {
	if len(g.group) > 0 && g.group[0].Group != s.Group {
		if err := g.flush(); err != nil {
			return err
		}
	}
	g.group = append(g.group, s)
	return nil
}

// GoOn tells the target what the shards of an earlier run are like, of which no row comes
// again.
func (g *Groups) GoOn(earlier []shard.Shard) {
	if len(earlier) > 0 && earlier[0].Temperature != nil && earlier[0].Groups > 0 {
		g.Target.GoOn(float32(earlier[0].Temperature.Min), earlier[0].Rollouts/earlier[0].Groups)
	}
}

func (g *Groups) flush() error {
	rows, err := g.Target.Group(g.group)
	g.group = nil
	if err != nil {
		return err
	}
	if err := g.step(rows); err != nil {
		return err
	}
	for _, r := range rows {
		if err := g.To.Write(r); err != nil {
			return err
		}
	}
	return nil
}

// step begins the next step where a group no longer goes into the one that is open.
func (g *Groups) step(rows []rollout.Sample) error {
	if g.PerStep == 0 || len(rows) == 0 {
		return nil
	}
	n := 1
	for i := 1; i < len(rows); i++ {
		if rows[i].Rollout != rows[i-1].Rollout {
			n++
		}
	}
	if n > g.PerStep {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: rows[0].Rollout, Field: "--rollouts-per-step"}, "group %q has %d rollouts to train, a step takes %d", rows[0].Group, n, g.PerStep).
			WithFix("raise it, and the trainer's batch size, to the largest group")
	}
	if g.inStep += n; g.inStep <= g.PerStep {
		return nil
	}
	if g.inStep = n; g.EndStep == nil {
		return nil
	}
	return g.EndStep()
}

// Close writes the last group and ends the output.
func (g *Groups) Close() error {
	if len(g.group) > 0 {
		if err := g.flush(); err != nil {
			return errors.Join(err, g.To.Abort())
		}
	}
	return g.To.Close()
}

// Abort drops the output.
func (g *Groups) Abort() error { return g.To.Abort() }

// Rollouts says how many rollouts the steps of a batch have.
type Rollouts struct {
	Steps int `json:"steps"`
	Min   int `json:"min"`
	Max   int `json:"max"`
}

// Of counts the rollouts of a set whose files are steps, nil for an empty one.
func Of(m shard.Manifest) *Rollouts {
	if len(m.Shards) == 0 {
		return nil
	}
	s := &Rollouts{len(m.Shards), m.Shards[0].Rollouts, 0}
	for i := range m.Shards {
		s.Min, s.Max = min(s.Min, m.Shards[i].Rollouts), max(s.Max, m.Shards[i].Rollouts)
	}
	return s
}
