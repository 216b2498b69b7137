package reward

import (
	"fmt"
	"math"

	"github.com/turnpack/turnpack/reward/internal/stats"
	"github.com/turnpack/turnpack/rollout"
)

// RolloutReward holds the input of an estimator for one rollout.
type RolloutReward struct {
	ID     string // unique within its group
	Reward float64
	// Excluded is the reason why the rollout has no usable reward, "" if it takes part (see
	// rollout.Reward).
	Excluded string
	Rows     int // training rows, 0 = 1; used with the unit "row"
	// MaskedRows counts those of Rows that the loss mask leaves out as a whole; see Estimator.Masked.
	MaskedRows int
	Length     int     // trained tokens, including those of masked rows; the weight with the centre "length_weighted"
	Baseline   float64 // for a TokenEstimator with the centre "baseline"
}

// GroupRewards holds the rewards of one group. Several entries with the same key form one group.
type GroupRewards struct {
	Key      string
	Rollouts []RolloutReward
}

// Advantage is the advantage of one rollout. A dropped rollout must not be trained.
type Advantage struct {
	Value   float64
	Dropped string // why the rollout is removed from the batch, "" if it stays
}

// Reasons for dropping a rollout. DroppedExcluded is followed by a colon and the reason of the
// exclusion.
const (
	DroppedExcluded  = "excluded"
	droppedSingleton = "only rollout of its group"
	droppedConstant  = "all rewards of the group are alike"
)

// excludedMasked is the reason for excluding a fully masked rollout under maskedLeave.
const excludedMasked = "all its rows are masked"

// maxReward bounds rewards so that their squares and sums stay finite.
const maxReward = 1e100

// Advantages returns the advantage of every rollout, in the shape of groups. The order of groups and
// rollouts does not change a single bit of the result, except with slices by position, the centre
// "ema" and KeepConstant, which are defined by input order. Rewards that are not finite, duplicate ids
// within a group and estimators that fail Validate are errors of KindInput.
func Advantages(groups []GroupRewards, e Estimator) ([][]Advantage, Report, error) {
	if err := uniqueIDs(groups); err != nil {
		return nil, Report{}, err
	}
	s, assigned, err := newStatistics(groups, e)
	if err != nil {
		return nil, Report{}, err
	}
	out := make([][]Advantage, len(groups))
	for i, g := range groups {
		out[i] = make([]Advantage, len(g.Rollouts))
		for j, r := range g.Rollouts {
			if out[i][j], err = s.advantage(g.Key, assigned[i][j], r); err != nil {
				return nil, Report{}, err
			}
		}
	}
	if e.Normalize {
		s.normalize(groups, assigned, out)
	}
	for i, g := range groups {
		for j := range out[i] {
			if out[i][j], err = s.clipped(out[i][j], g.Key, g.Rollouts[j]); err != nil {
				return nil, Report{}, err
			}
			s.report.count(out[i][j])
		}
	}
	return out, s.report, nil
}

func uniqueIDs(groups []GroupRewards) error {
	type id struct{ group, rollout string }
	seen := map[id]struct{}{}
	for _, g := range groups {
		for _, r := range g.Rollouts {
			if r.ID == "" {
				continue
			}
			k := id{g.Key, r.ID}
			if _, dup := seen[k]; dup {
				return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID},
					"the rollout comes twice in group %q: a rollout has one reward, however many rows it has", g.Key).
					WithFix("give each rollout once, with Rows set where rows must count")
			}
			seen[k] = struct{}{}
		}
	}
	return nil
}

// bare is the group index of rows beyond the last slice under the remainder "bare".
const bare = -1

// assignGroups returns, for each rollout, the index of the group that it is compared within.
func (s *Statistics) assignGroups(groups []GroupRewards) ([][]int, error) {
	out := make([][]int, len(groups))
	total := 0
	for i, g := range groups {
		out[i] = make([]int, len(g.Rollouts))
		total += len(g.Rollouts)
	}
	size := s.e.Size
	sliced := s.e.Grouping == groupByPosition
	if sliced && s.e.Remainder == remainderOneGroup && total != size*len(groups) {
		sliced = false
	}
	if sliced && s.e.Remainder == remainderError && total%size != 0 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{},
			"%d rows do not fill slices of %d, and the estimator groups by position", total, size).
			WithFix("group by key, or complete the groups")
	}
	at := 0
	for i, g := range groups {
		own := -1
		for j := range g.Rollouts {
			if own < 0 && s.e.Grouping == groupByKey {
				n, _ := s.index.Add(g.Key)
				own = s.ensureGroup(n)
			}
			switch {
			case own >= 0:
				out[i][j] = own
			case sliced && at/size >= total/size:
				out[i][j] = bare
			case sliced:
				out[i][j] = s.ensureGroup(at / size)
			default:
				out[i][j] = s.ensureGroup(0)
			}
			at++
		}
	}
	return out, nil
}

// Report counts the rollouts and groups that an estimator processed.
type Report struct {
	Groups     int
	Rollouts   int
	Used       int            // rollouts included in the statistics
	Singletons int            // groups with a single observation
	Constant   int            // groups whose spread is within the tolerance, without singletons
	Excluded   map[string]int // rollouts by reason of exclusion
	Dropped    map[string]int // rollouts by reason of dropping
}

func (r *Report) count(a Advantage) {
	if a.Dropped != "" {
		increment(&r.Dropped, a.Dropped)
	}
}

func increment(counts *map[string]int, key string) {
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[key]++
}

// ReportOf returns the counts for advantages computed by another estimator; with nil advantages it
// counts the rewards only.
func ReportOf(groups []GroupRewards, advantages [][]Advantage) Report {
	var report Report
	for i, g := range groups {
		var used stats.Moments
		for j, r := range g.Rollouts {
			report.Rollouts++
			if r.Excluded == "" {
				report.Used++
				used.Add(r.Reward, 1)
			} else {
				increment(&report.Excluded, r.Excluded)
			}
			if advantages != nil {
				report.count(advantages[i][j])
			}
		}
		switch {
		case used.N == 0:
			continue
		case used.N == 1:
			report.Singletons++
		case used.Spread() <= defaultTolerance:
			report.Constant++
		}
		report.Groups++
	}
	return report
}

// normalize replaces the advantages of the rows that take part by their batch z-score. A row alone in
// its group cannot be compared: where Singleton is "", its advantage stays 0 and does not enter the
// batch's mean and deviation.
func (s *Statistics) normalize(groups []GroupRewards, assigned [][]int, out [][]Advantage) {
	compared := func(i, j int, r RolloutReward) bool {
		at := assigned[i][j]
		alone := at != bare && s.groups[at].N == 1 && s.e.Singleton == singletonZero
		return s.e.Excludes(r) == "" && out[i][j].Dropped == "" && !alone
	}
	var m stats.Moments
	for i, g := range groups {
		for j, r := range g.Rollouts {
			if compared(i, j, r) {
				m.Add(out[i][j].Value, s.e.count(r))
			}
		}
	}
	m.Freeze()
	sd := math.Sqrt(m.Variance(1))
	for i, g := range groups {
		for j, r := range g.Rollouts {
			if compared(i, j, r) {
				out[i][j].Value = m.Deviation(out[i][j].Value) / (sd + s.e.epsilon())
			}
		}
	}
}

func checkReward(group string, r RolloutReward) error {
	at := rollout.Where{Rollout: r.ID}
	switch {
	case !finite(r.Reward):
		return rollout.Errorf(rollout.KindInput, at, "the reward in group %q is %g, expected a finite number", group, r.Reward).
			WithFix("set Excluded with a reason for a rollout without a usable reward")
	case math.Abs(r.Reward) > maxReward:
		return rollout.Errorf(rollout.KindInput, at, "the reward %g in group %q is beyond %g", r.Reward, group, maxReward)
	case !finite(r.Baseline):
		return rollout.Errorf(rollout.KindInput, at, "the baseline in group %q is %g, expected a finite number", group, r.Baseline)
	case r.Rows < 0 || r.Length < 0:
		return rollout.Errorf(rollout.KindInput, at, "%d rows and length %d in group %q, expected counts >= 0", r.Rows, r.Length, group)
	case r.MaskedRows < 0 || r.MaskedRows > max(r.Rows, 1):
		return rollout.Errorf(rollout.KindInput, at, "%d of %d rows are masked in group %q", r.MaskedRows, r.Rows, group)
	}
	return nil
}

func dropped(reason string) Advantage { return Advantage{Dropped: reason} }

func excluded(reason string) Advantage {
	return dropped(fmt.Sprintf("%s: %s", DroppedExcluded, reason))
}
