package filter

import (
	"math"
	"slices"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/internal/stats"
	"github.com/turnpack/turnpack/rollout"
)

// defaultTolerance is the spread up to which rewards count as alike.
const defaultTolerance = 1e-6

// Values of Rule.Test.
const (
	spread            = ""
	testDeviation     = "deviation"
	testFloat32       = "deviation_float32"
	testPairwise      = "deviation_pairwise"
	rowDeviation      = "row_deviation"
	rowDeviationGroup = "row_deviation_group"
)

// Rule is a group filter. The zero value drops groups whose rewards lie within 1e-6 of each other,
// including groups with a single reward.
type Rule struct {
	Name string // preset name, "" for a custom rule
	// Test selects when a group is dropped: "", where max − min <= Tolerance; "deviation", where not
	// σ₁ > Tolerance (a single reward has no σ₁). The other tests reproduce a system, including its
	// rounding: "deviation_float32", not σ₁ > 0 for float32 rewards about a float32 mean;
	// "deviation_pairwise", σ₀ = 0 with numpy's sums; "row_deviation", decided per row, the deviation
	// of the other rows is 0, computed from float32 sums of squares (in groups whose size is not a
	// multiple of four, NeMo RL's own rounding depends on the processor); "row_deviation_group",
	// decided per row, with the deviation of all rows.
	Test      string
	Tolerance float64 // 0 = 1e-6 for the first two
	Exact     bool    // Tolerance is 0, not the default
	// LiveOnly applies Test to live rewards only.
	LiveOnly bool
	// KeepSingle keeps groups with one reward or none.
	KeepSingle bool
	// MinLive drops groups with fewer live rewards.
	MinLive int
	// Band drops groups whose mean live reward, usually on a 0/1 scale, lies below it (too hard) or
	// above it (too easy); nil = none.
	Band *reward.Range
	// KeepAtLeast is the least number of groups to keep: the first dropped groups are restored until
	// so many are kept.
	KeepAtLeast int
}

// Presets lists the filters of trainers, named system@revision.
func Presets() []Rule {
	return []Rule{
		{Name: "default"},
		{Name: "slime@624b824a8", Test: testDeviation},
		{Name: "openclaw@0d034dd5e", Test: testFloat32},
		{Name: "verl@1dda039b9", Test: testPairwise, KeepSingle: true},
		{Name: "nemo_loo@7ea279abf", Test: rowDeviation},
		{Name: "nemo_group@7ea279abf", Test: rowDeviationGroup},
		{Name: "skyrl@a9564572e", Test: spread, Exact: true, KeepSingle: true},
		{Name: "openclaw_drop_constant@0d034dd5e", Test: spread, Tolerance: 1e-12, KeepAtLeast: 1},
	}
}

// Group holds the rewards of one group. Live is nil when all rewards are live.
type Group struct {
	Key     string
	Rewards []float64
	Live    []bool
}

func (g *Group) live(i int) bool { return g.Live == nil || g.Live[i] }

// Reasons for dropping.
const (
	reasonAlike   = "all rewards are alike"
	reasonFewLive = "too few live rollouts"
	reasonTooHard = "mean reward below the band"
	reasonTooEasy = "mean reward above the band"
	ReasonRow     = "the other rewards are alike"
)

// Decision is the result of a rule for one group.
type Decision struct {
	Keep   bool
	Reason string // why it is dropped, "" if kept
	// Rows marks the rows that stay, for tests that decide per row; nil otherwise.
	Rows []bool
}

// Validate reports every fault of r at once.
func (r Rule) Validate() error {
	var f faults.List
	faults.Word(&f, "Test", r.Test, testDeviation, testFloat32, testPairwise, rowDeviation, rowDeviationGroup)
	f.Amount("Tolerance", r.Tolerance)
	if r.Test != spread && r.Test != testDeviation && (r.Tolerance != 0 || r.Exact) {
		f.Add("Tolerance", "%g, which the test %s does not look at", r.Tolerance, r.Test)
	}
	if r.Exact && r.Tolerance != 0 {
		f.Add("Tolerance", "%g, but Exact says 0", r.Tolerance)
	}
	f.Count("MinLive", r.MinLive)
	f.Count("KeepAtLeast", r.KeepAtLeast)
	if r.Band != nil && !(r.Band.Low <= r.Band.High) {
		f.Add("Band", "[%g, %g] is no interval", r.Band.Low, r.Band.High)
	}
	return f.Err()
}

// Apply returns the decision on every group, in order; takenBack counts the groups that KeepAtLeast
// restored. Rewards that are not finite are errors of KindInput, except for rewards that are not live
// with LiveOnly.
func Apply(groups []Group, r Rule) (out []Decision, takenBack int, err error) {
	if err := r.Validate(); err != nil {
		return nil, 0, err
	}
	out = make([]Decision, len(groups))
	kept := 0
	for i := range groups {
		g := &groups[i]
		if g.Live != nil && len(g.Live) != len(g.Rewards) {
			return nil, 0, rollout.Errorf(rollout.KindInput, rollout.Where{},
				"group %q has %d rewards and %d live flags", g.Key, len(g.Rewards), len(g.Live))
		}
		for j, x := range g.Rewards {
			if x-x != 0 && (g.live(j) || !r.LiveOnly) {
				return nil, 0, rollout.Errorf(rollout.KindInput, rollout.Where{},
					"reward %d of group %q is %g, expected a finite number", j, g.Key, x)
			}
		}
		if out[i] = r.decide(g); out[i].Keep {
			kept++
		}
	}
	for i := 0; i < len(out) && kept < r.KeepAtLeast; i++ {
		if !out[i].Keep {
			out[i] = Decision{Keep: true}
			kept++
			takenBack++
		}
	}
	return out, takenBack, nil
}

func (r *Rule) decide(g *Group) Decision {
	var live []float64
	for i, x := range g.Rewards {
		if g.live(i) {
			live = append(live, x)
		}
	}
	if len(live) < r.MinLive {
		return Decision{Reason: reasonFewLive}
	}
	if r.Band != nil && len(live) > 0 {
		sum := 0.0
		for _, x := range live {
			sum += x
		}
		switch mean := sum / float64(len(live)); {
		case mean < r.Band.Low:
			return Decision{Reason: reasonTooHard}
		case mean > r.Band.High:
			return Decision{Reason: reasonTooEasy}
		}
	}
	x := g.Rewards
	if r.LiveOnly {
		x = live
	}
	if r.KeepSingle && len(x) <= 1 {
		return Decision{Keep: true}
	}
	if r.Test == rowDeviation || r.Test == rowDeviationGroup {
		d := r.rows(x)
		if r.LiveOnly { // x lacks the rows that are not live; insert them
			for i := range g.Rewards {
				if !g.live(i) {
					d.Rows = slices.Insert(d.Rows, i, false)
				}
			}
		}
		return d
	}
	if r.alike(x) {
		return Decision{Reason: reasonAlike}
	}
	return Decision{Keep: true}
}

func (r *Rule) rows(x []float64) Decision {
	d := Decision{Rows: make([]bool, len(x)), Reason: ReasonRow}
	for i := range x {
		skip := -1
		if r.Test == rowDeviation {
			skip = i
		}
		if d.Rows[i] = rowVaries(x, skip); d.Rows[i] {
			d.Keep, d.Reason = true, ""
		}
	}
	return d
}

func (r *Rule) alike(x []float64) bool {
	tolerance := r.Tolerance
	if tolerance == 0 && !r.Exact {
		tolerance = defaultTolerance
	}
	switch r.Test {
	case testDeviation:
		return !(deviation(x) > tolerance)
	case testFloat32:
		return !(deviationFloat32(x) > 0)
	case testPairwise:
		return stats.PairwiseVariance(x, 0) == 0
	}
	if len(x) == 0 {
		return true
	}
	low, high := x[0], x[0]
	for _, v := range x {
		low, high = math.Min(low, v), math.Max(high, v)
	}
	return high-low <= tolerance
}
