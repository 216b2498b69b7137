// Package step divides the groups of a batch into training steps.
package step

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
)

// Sink is where rows go.
type Sink interface {
	Row(spool.Row) error
	Close() error
	Abort() error
}

// Groups prepares each group for a trainer and divides groups into steps before they
// are written. Rows come as a turnpack.Pipeline gives them. Those of a group wait until
// it is whole: as they are up to heldTokens, beyond in a temporary file.
type Groups struct {
	Target  *target.Target
	To      Sink
	PerStep int          // most rollouts of a step, 0 = any number
	EndStep func() error // of a set; nil = none is written
	TempDir string       // "" = the system's

	group  []rollout.Sample // without columns
	rows   spool.Queue
	inStep int          // rollouts in the step so far
	some   bool         // rows were written
	sizes  map[int]bool // rollouts of the groups that came
	left   Counts
	held   int // heldTokens, but for tests
}

// Counts are of rows.
type Counts struct {
	Rows            int
	Tokens, Trained int64
}

// LeftOut counts the rows that came and that the target left out.
func (g *Groups) LeftOut() Counts { return g.left }

// heldTokens is how many tokens of a group wait in memory with an entry each in every
// column, heldBytes how many bytes of those beyond.
const (
	heldTokens = 1 << 20
	heldBytes  = 4 << 20
)

// Row takes the next row.
func (g *Groups) Row(row spool.Row) error {
	if len(g.group) > 0 && g.group[0].Group != row.Group {
		if err := g.flush(); err != nil {
			return err
		}
	}
	bare := row.Sample
	bare.Sequence = rollout.Sequence{Identity: row.Identity}
	g.group = append(g.group, bare)
	g.rows.Prefixes = true
	g.rows.Tokens, g.rows.Open = cmp.Or(g.held, heldTokens), func() *spool.Spool { return spool.New(g.TempDir, heldBytes) }
	return g.rows.Add(row)
}

// GoOn tells the target what the shards of an earlier run are like, of which no row comes
// again.
func (g *Groups) GoOn(earlier []shard.Shard) {
	g.some = len(earlier) > 0
	if len(earlier) > 0 && earlier[0].Temperature != nil && earlier[0].Groups > 0 {
		g.Target.GoOn(float32(earlier[0].Temperature.Min), earlier[0].Rollouts/earlier[0].Groups)
	}
}

func (g *Groups) flush() error {
	keep, err := g.Target.Keep(g.group)
	if err != nil {
		return err
	}
	if g.sizes == nil {
		g.sizes = map[int]bool{}
	}
	g.sizes[rollouts(g.group)] = true
	var kept []rollout.Sample
	for i := range g.group {
		if keep[i] {
			kept = append(kept, g.group[i])
		}
	}
	g.group = nil
	if err := g.step(kept); err != nil {
		return err
	}
	i := 0
	return g.rows.Each(func(row spool.Row) error {
		if i++; !keep[i-1] {
			g.left.Rows++
			g.left.Tokens += int64(row.Len())
			g.left.Trained += int64(row.Trained())
			return nil
		}
		g.some = true
		if err := g.Target.Adapt(&row.Sample, row.Lens); err != nil {
			return err
		}
		return g.To.Row(row)
	})
}

// step begins the next step where a group no longer goes into the one that is open.
func (g *Groups) step(rows []rollout.Sample) error {
	if g.PerStep == 0 || len(rows) == 0 {
		return nil
	}
	n := rollouts(rows)
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

// rollouts are those of the rows of a group.
func rollouts(rows []rollout.Sample) int {
	n := 1
	for i := 1; i < len(rows); i++ {
		if rows[i].Rollout != rows[i-1].Rollout {
			n++
		}
	}
	return n
}

// Close writes the last group and ends the output, which the caller aborts after an error.
func (g *Groups) Close() error {
	if len(g.group) > 0 {
		if err := g.flush(); err != nil {
			return err
		}
	}
	if !g.some && len(g.Target.Dropped) > 0 {
		why := slices.Sorted(maps.Keys(g.Target.Dropped))
		for i, w := range why {
			why[i] = fmt.Sprint(g.Target.Dropped[w], " ", w)
		}
		sizes := fmt.Sprint(slices.Sorted(maps.Keys(g.sizes)))
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "no rollout is left for the target %s: %s", g.Target.Name(), strings.Join(why, ", ")).
			WithFix("choose the --group-size that groups have (they came with %s rollouts), or a target that takes such rollouts", strings.ReplaceAll(strings.Trim(sizes, "[]"), " ", ", "))
	}
	return g.To.Close()
}

// Abort drops the output.
func (g *Groups) Abort() error {
	g.rows.Close()
	return g.To.Abort()
}

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
