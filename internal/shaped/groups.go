package shaped

import (
	"cmp"
	"math"
	"slices"

	"github.com/turnpack/turnpack/reward/filter"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

// Usage is what a rollout spent.
type Usage struct{ OutputTokens, TotalTokens, Turns int }

// RuleSpending is the name of the length penalty in reports and rows.
const RuleSpending = "length penalty"

// versions are the oldest and the newest policy version that sampled a turn of r, where
// stands is that of turns that record none. oldest is nil where it is not known of a turn.
func versions(r *rollout.Rollout, stands *int32) (oldest, newest *int32) {
	var all []int32
	known := true
	for _, t := range rollout.TurnsOf(r) {
		if v := cmp.Or(t.Version, stands); v != nil {
			all = append(all, *v)
		} else {
			known = false
		}
		for _, part := range t.Versions {
			all = append(all, part.Version)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	low, high := slices.Min(all), slices.Max(all)
	if known {
		oldest = &low
	}
	return oldest, &high
}

// Member is one rollout of a group that is decided on.
type Member struct {
	Reward, Raw    float64 // shaped, and before
	Excluded       string  `json:",omitempty"` // why it has no reward
	Masked         string  `json:",omitempty"` // why none of its rows trains
	Solved         *bool   `json:",omitempty"`
	Oldest, Newest *int32  `json:",omitempty"` // policy versions, nil unknown
	Usage          Usage   `json:",omitzero"`  // with Rules.Spending
}

// MemberOf collects what Decide looks at. stands is the policy version of turns that
// record none, nil for unknown; masked says why none of its rows trains.
func MemberOf(r *rollout.Rollout, scored rollout.Reward, raw float64, masked string, stands *int32) Member {
	oldest, newest := versions(r, stands)
	return Member{Reward: scored.Total, Raw: raw, Excluded: scored.Excluded, Masked: masked, Solved: Solved(scored), Oldest: oldest, Newest: newest}
}

func (m *Member) valid() bool { return m.Excluded == "" && m.Masked == "" }

// Group is the members of one group, in order.
type Group struct {
	Key     string
	Members []Member
}

// Fate says what becomes of a member. The zero value trains.
type Fate struct {
	// Out is why the rollout gives no rows, "" if it does.
	Out string
	// Counts says that its reward stays in the statistics all the same.
	Counts bool
}

// Count books rules that changed a reward.
func Count(r *shaping.Report, applied []Applied) {
	for _, a := range applied {
		add(&r.Rewards, a.Rule)
	}
}

func add(m *map[string]int, key string) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[key]++
}

// Decide says of every member of every group whether it gives rows, and books in
// report what it leaves out; shaping.Spending changes the rewards of groups, and refuses those
// whose mean is below 0. The result has their shape. Members without a reward are no concern of it but
// where shaping.Keep is set: their fate is the estimator's.
func (r *Rules) Decide(groups []Group, report *shaping.Report) ([][]Fate, error) {
	out := make([][]Fate, len(groups))
	for i := range groups {
		out[i] = make([]Fate, len(groups[i].Members))
	}
	r.age(groups, out, report)
	if err := r.spend(groups, out, report); err != nil {
		return nil, err
	}
	var left []int // groups that the filter looks at
	var looks []filter.Group
	for i := range groups {
		valid, solved, unsolved := 0, 0, 0
		look := filter.Group{Key: groups[i].Key}
		for j := range groups[i].Members {
			m := &groups[i].Members[j]
			if m.Excluded != "" || out[i][j].Out != "" {
				continue
			}
			value := m.Reward
			if r.FilterRaw {
				value = m.Raw
			}
			look.Rewards, look.Live = append(look.Rewards, value), append(look.Live, m.valid())
			if !m.valid() {
				continue
			}
			valid++
			if m.Solved != nil && *m.Solved {
				solved++
			} else {
				unsolved++
			}
		}
		switch {
		case len(look.Rewards) == 0:
		case valid < r.MinValid:
			drop(&groups[i], out[i], reasonFewValid, report)
		case solved < r.MinSolved:
			drop(&groups[i], out[i], reasonFewSolved, report)
		case unsolved < r.MinUnsolved:
			drop(&groups[i], out[i], reasonFewUnsolved, report)
		default:
			left, looks = append(left, i), append(looks, look)
		}
	}
	if r.Filter == nil {
		return out, apply(&r.Keep, groups, out, report)
	}
	decisions, takenBack, err := filter.Apply(looks, *r.Filter)
	if err != nil {
		return nil, err
	}
	report.KeptAlike += takenBack
	for k, d := range decisions {
		i := left[k]
		if !d.Keep {
			drop(&groups[i], out[i], d.Reason, report)
			continue
		}
		at := 0
		for j := range out[i] {
			if groups[i].Members[j].Excluded != "" || out[i][j].Out != "" {
				continue
			}
			// A row that is left out alone was in the baseline before.
			if d.Rows != nil && !d.Rows[at] {
				out[i][j] = Fate{Out: filter.ReasonRow, Counts: true}
				add(&report.Rollouts, filter.ReasonRow)
			}
			at++
		}
	}
	return out, apply(&r.Keep, groups, out, report)
}

// age leaves out members that are too old.
func (r *Rules) age(groups []Group, out [][]Fate, report *shaping.Report) {
	if r.MaxAge == nil {
		return
	}
	newest := int32(math.MinInt32)
	for i := range groups {
		for _, m := range groups[i].Members {
			if m.Newest != nil {
				newest = max(newest, *m.Newest)
			}
		}
	}
	for i := range groups {
		for j, m := range groups[i].Members {
			switch {
			case m.Excluded != "":
			case m.Oldest == nil:
				report.UnknownAge++
			case int64(newest)-int64(*m.Oldest) > int64(*r.MaxAge):
				out[i][j].Out = reasonStale
				add(&report.Rollouts, reasonStale)
			}
		}
	}
}

// drop leaves out a group.
func drop(g *Group, out []Fate, reason string, report *shaping.Report) {
	add(&report.Groups, reason)
	for j := range out {
		if g.Members[j].Excluded == "" && out[j].Out == "" {
			out[j].Out = reason
			add(&report.Rollouts, reason)
		}
	}
}
