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

// Sink receives rows.
type Sink interface {
	Row(spool.Row) error
	Close() error
	Abort() error
}

// Groups adapts each group to a trainer and divides groups into steps before they are
// written. Rows come in the order of a turnpack.Pipeline. The rows of a group wait until
// it is complete: up to heldTokens in memory, the rest in a temporary file.
type Groups struct {
	Target  *target.Target
	To      Sink
	PerStep int          // most rollouts of a step, 0 = no limit
	EndStep func() error // ends a step of a set; nil = steps are not marked
	TempDir string       // "" = the system's
	LeftOut Counts       // of the rows that the target left out

	group  []rollout.Sample // without columns
	rows   spool.Queue
	inStep int          // rollouts in the step so far
	some   bool         // some row was written
	sizes  map[int]bool // numbers of rollouts seen in groups
	held   int          // heldTokens, or less in tests
}

// Counts are numbers of rows and of their tokens.
type Counts struct {
	Rows            int
	Tokens, Trained int64
}

// heldTokens is the number of tokens of a group kept in memory with all columns;
// heldBytes is the size of the buffer for the rest.
const (
	heldTokens = 1 << 20
	heldBytes  = 4 << 20
)

// Row adds the next row.
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

// GoOn tells the target the properties of the shards of an earlier run, whose rows do not
// come again.
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
			g.LeftOut.Rows++
			g.LeftOut.Tokens += int64(row.Len())
			g.LeftOut.Trained += int64(row.Trained())
			return nil
		}
		g.some = true
		if err := g.Target.Adapt(&row.Sample, row.Lens); err != nil {
			return err
		}
		return g.To.Row(row)
	})
}

// step begins the next step if the group does not fit into the current one.
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

// rollouts returns the number of rollouts in the rows of a group.
func rollouts(rows []rollout.Sample) int {
	n := 1
	for i := 1; i < len(rows); i++ {
		if rows[i].Rollout != rows[i-1].Rollout {
			n++
		}
	}
	return n
}

// Close writes the last group and closes the output. After an error, the caller calls
// Abort.
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

// Abort discards the output.
func (g *Groups) Abort() error {
	g.rows.Close()
	return g.To.Abort()
}

// Rollouts is the number of rollouts in the steps of a batch.
type Rollouts struct {
	Steps int `json:"steps"`
	Min   int `json:"min"`
	Max   int `json:"max"`
}

// Of counts the rollouts of a set whose files are steps.
func Of(m shard.Manifest) *Rollouts {
	s := &Rollouts{len(m.Shards), m.Shards[0].Rollouts, 0}
	for i := range m.Shards {
		s.Min, s.Max = min(s.Min, m.Shards[i].Rollouts), max(s.Max, m.Shards[i].Rollouts)
	}
	return s
}
