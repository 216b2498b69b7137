package shaped

import (
	"cmp"
	"math"
	"slices"

	"github.com/turnpack/turnpack/reward/filter"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

// Usage holds the tokens and turns that a rollout used.
type Usage struct{ OutputTokens, TotalTokens, Turns int }

// RuleSpending is the name of the length penalty in reports and rows.
const RuleSpending = "length penalty"

// versions returns the oldest and the newest policy version that sampled a turn of r; stands is the
// version of turns that record none. oldest is nil if the version of a turn is unknown.
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

// Member is one rollout of a group, as input of Decide.
type Member struct {
	Reward, Raw    float64 // after and before shaping
	Excluded       string  `json:",omitempty"` // reason why it has no reward
	Masked         string  `json:",omitempty"` // reason why all its rows are masked
	Solved         *bool   `json:",omitempty"`
	Oldest, Newest *int32  `json:",omitempty"` // policy versions, nil if unknown
	Usage          Usage   `json:",omitzero"`  // set if Rules.Spending is
}

// MemberOf returns the input of Decide for r. stands is the policy version of turns that record none,
// nil if unknown; masked is the reason why all rows are masked.
func MemberOf(r *rollout.Rollout, scored rollout.Reward, raw float64, masked string, stands *int32) Member {
	oldest, newest := versions(r, stands)
	return Member{Reward: scored.Total, Raw: raw, Excluded: scored.Excluded, Masked: masked, Solved: Solved(scored), Oldest: oldest, Newest: newest}
}

func (m *Member) valid() bool { return m.Excluded == "" && m.Masked == "" }

// Group holds the members of one group, in order.
type Group struct {
	Key     string
	Members []Member
}

// Fate is the decision on a member. The zero value means that it is trained.
type Fate struct {
	// Out is the reason why the rollout gives no rows, "" if it gives rows.
	Out string
	// Counts reports whether the reward of a left out member stays in the statistics.
	Counts bool
}

// Count adds the rules that changed a reward to r.
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

// Decide returns, for every member of every group, whether it gives rows, in the shape of groups, and
// counts in report what it leaves out. shaping.Spending changes the rewards of groups, and refuses
// groups whose mean is below 0. Members without a reward are left to the estimator unless shaping.Keep
// is set.
func (r *Rules) Decide(groups []Group, report *shaping.Report) ([][]Fate, error) {
	out := make([][]Fate, len(groups))
	for i := range groups {
		out[i] = make([]Fate, len(groups[i].Members))
	}
	r.age(groups, out, report)
	if err := r.spend(groups, out, report); err != nil {
		return nil, err
	}
	var left []int // indices of the groups passed to the filter
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
		return out, applyKeep(&r.Keep, groups, out, report)
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
			// A row left out on its own stays in the baseline.
			if d.Rows != nil && !d.Rows[at] {
				out[i][j] = Fate{Out: filter.ReasonRow, Counts: true}
				add(&report.Rollouts, filter.ReasonRow)
			}
			at++
		}
	}
	return out, applyKeep(&r.Keep, groups, out, report)
}

// age leaves out members whose policy version is too old.
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
