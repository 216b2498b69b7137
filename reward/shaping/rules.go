package shaping

import (
	"errors"
	"fmt"
	"math"

	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/filter"
	"github.com/turnpack/turnpack/rollout"
)

// Length says which tokens of a rollout count as its length.
type Length uint8

// The lengths.
const (
	// LengthSampled counts the trained tokens of all rows of the rollout.
	LengthSampled Length = iota
	// LengthResponse counts the tokens of the longest row from its first trained token
	// to its last, tool output and all, as trainers do that see one response for each
	// rollout (verl, TRL).
	LengthResponse
)

var lengthNames = []string{"sampled", "response"}

// String returns the name used in reports.
func (l Length) String() string {
	if int(l) < len(lengthNames) {
		return lengthNames[l]
	}
	return fmt.Sprintf("length(%d)", uint8(l))
}

// Cut says what becomes of rollouts that were cut off by a limit (status truncated).
type Cut uint8

// The choices.
const (
	CutTrains Cut = iota // they train like any other
	// CutMasked leaves their tokens out of the loss (overlong filtering). Whether their
	// reward stays in the mean of its group is the estimator's choice
	// (reward.Estimator.Masked).
	CutMasked
)

var cutNames = []string{"train", "mask"}

// String returns the name used in reports.
func (c Cut) String() string {
	if int(c) < len(cutNames) {
		return cutNames[c]
	}
	return fmt.Sprintf("cut(%d)", uint8(c))
}

// Rules are what a batch goes through between its scores and its advantages. The
// zero value does nothing. Rewards are changed in the order of the fields.
type Rules struct {
	// TruncatedCoef multiplies the reward of a truncated rollout; nil = 1. See
	// Truncated.
	TruncatedCoef *float64
	// StopProperly gives a rollout whose last turn did not finish with "stop" the
	// reward 0 and no trained token. See ZeroOnNonStop; where the dump records no
	// finish reason, one that was completed stopped.
	StopProperly bool
	// Soft punishes length near a limit; nil = none. LengthOf says which length.
	Soft     *Overlong
	LengthOf Length
	// Affine is (reward + Bias)·Scale after that; the zero value changes nothing.
	Affine Affine
	// Clip bounds the rewards after that; nil = none.
	Clip *reward.Range

	// Cut masks rollouts that a limit cut off.
	Cut Cut
	// MaxAge leaves out rollouts of which a turn was sampled by a policy more than so
	// many versions before the newest of the batch; nil = any age. Rollouts that do not
	// record their version stay and are counted.
	MaxAge *int32

	// Spending takes from the rewards of a group what its rollouts spent, after all
	// rules above; masked rollouts and those left out are no part of it. nil = none.
	Spending *Spending

	// MinValid, MinSolved and MinUnsolved leave out groups with fewer valid, solved or
	// unsolved rollouts: 1 solved leaves out groups that nobody solves, 1 unsolved those
	// that all solve. See Solved. Masked rollouts are not valid.
	MinValid, MinSolved, MinUnsolved int
	// Filter leaves out groups whose rewards tell nothing; nil = none.
	Filter *filter.Rule
	// FilterRaw has Filter look at rewards before they are shaped (NeMo RL 7ea279abf,
	// unshaped_total_reward).
	FilterRaw bool

	// DropZero leaves out rollouts whose advantage is 0, or less than 1e-12 (prime-rl 559b44772,
	// filter_zero_advantages): they stay in the statistics of their group. Those with
	// messages that an override is for stay.
	DropZero bool

	// Keep leaves out rollouts by their reward, as rejection sampling does; it looks at
	// what the rules above left.
	Keep Keep

	// OffPolicy bounds the difference between the policy that sampled and the one that
	// trains; nil = not here. It needs the log probabilities of both, of the latter
	// those that turns record (Turn.TrainLogprobs) or the pipeline is given; rows
	// without are left to the trainer, and counted.
	OffPolicy *OffPolicy
}

// Affine moves and scales rewards.
type Affine struct {
	Bias  float64
	Scale float64 // 0 = 1
}

func (a Affine) of(x float64) float64 {
	if a.Scale == 0 {
		return x + a.Bias
	}
	return (x + a.Bias) * a.Scale
}

// Reasons and names of rules, as reports and rows have them.
const (
	RuleTruncated = "truncated"
	ruleStop      = "did not stop"
	ruleSoft      = "soft overlong"
	ruleAffine    = "scaled"
	ruleClip      = "reward clip"

	reasonStale       = "older than the maximum age"
	reasonFewValid    = "too few valid rollouts"
	reasonFewSolved   = "too few solved"
	reasonFewUnsolved = "too few unsolved"
	ReasonZero        = "advantage is 0"
)

// On says whether r does anything.
func (r Rules) On() bool {
	return r.Shapes() || r.Decides() || r.Cut != CutTrains || r.DropZero || r.OffPolicy != nil
}

// Shapes says whether r changes rewards.
func (r Rules) Shapes() bool {
	return r.TruncatedCoef != nil || r.StopProperly || r.Soft != nil || r.Affine != (Affine{}) || r.Clip != nil
}

// Decides says whether r looks at whole groups: it may leave them or rollouts out, or
// change rewards by those of others.
func (r Rules) Decides() bool {
	return r.MaxAge != nil || r.Spending != nil || r.MinValid > 0 || r.MinSolved > 0 || r.MinUnsolved > 0 || r.Filter != nil || r.Keep.on()
}

// CountsTokens says whether r needs the length of rollouts.
func (r Rules) CountsTokens() bool { return r.Soft != nil || r.Spending != nil }

// Validate reports every fault of r at once.
func (r Rules) Validate() error {
	var faults []error
	fault := func(field, format string, args ...any) {
		faults = append(faults, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Shaping." + field}, format, args...))
	}
	if c := r.TruncatedCoef; c != nil && !(*c >= 0 && *c <= 1) {
		fault("TruncatedCoef", "found %g, expected a number from 0 to 1", *c)
	}
	if r.Soft != nil {
		faults = append(faults, r.Soft.Validate())
	}
	if int(r.LengthOf) >= len(lengthNames) {
		fault("LengthOf", "%d is none of the known lengths", r.LengthOf)
	}
	for _, x := range []float64{r.Affine.Bias, r.Affine.Scale} {
		if !(math.Abs(x) <= math.MaxFloat32) {
			fault("Affine", "found %g, expected a finite number", x)
		}
	}
	if c := r.Clip; c != nil && !(c.Low <= c.High) {
		fault("Clip", "[%g, %g] is no interval", c.Low, c.High)
	}
	if int(r.Cut) >= len(cutNames) {
		fault("Cut", "%d is none of the known choices", r.Cut)
	}
	if r.Spending != nil {
		faults = append(faults, r.Spending.Validate())
	}
	if a := r.MaxAge; a != nil && *a < 0 {
		fault("MaxAge", "found %d versions, expected 0 or more", *a)
	}
	for _, n := range []struct {
		field string
		least int
	}{{"MinValid", r.MinValid}, {"MinSolved", r.MinSolved}, {"MinUnsolved", r.MinUnsolved}} {
		if n.least < 0 {
			fault(n.field, "found %d rollouts, expected 0 or more", n.least)
		}
	}
	for _, x := range []*float64{r.Keep.Above, r.Keep.AtLeast} {
		if x != nil && !(math.Abs(*x) <= math.MaxFloat64) {
			fault("Keep", "found a bound of %g, expected a finite number", *x)
		}
	}
	if r.Keep.Best < 0 {
		fault("Keep.Best", "found %d rollouts, expected 0 (all) or more", r.Keep.Best)
	}
	if r.Filter != nil {
		faults = append(faults, r.Filter.Validate())
	}
	if r.FilterRaw && r.Filter == nil {
		fault("FilterRaw", "there is no filter that would look at rewards")
	}
	if r.OffPolicy != nil {
		faults = append(faults, r.OffPolicy.Validate())
	}
	return errors.Join(faults...)
}

// Facts are what Shape looks at, beside the reward.
type Facts struct {
	Status       rollout.Status
	FinishReason string // of the last turn, "" unknown
	Length       int    // tokens, as Rules.LengthOf has it
}

// FactsOf reads those that r records; the length is known where rows are.
func FactsOf(r *rollout.Rollout) Facts {
	if r == nil {
		return Facts{}
	}
	f := Facts{Status: r.Status}
	if turns := rollout.TurnsOf(r); len(turns) > 0 {
		f.FinishReason = turns[len(turns)-1].FinishReason
	}
	return f
}

// finish is the finish reason that is recorded, else what the status says of it.
func (f *Facts) finish() string {
	switch {
	case f.FinishReason != "":
		return f.FinishReason
	case f.Status == rollout.StatusTruncated:
		return "length"
	}
	return "stop"
}

// Masks says why all rows of a rollout are masked by StopProperly, "" if they are
// not.
func (r *Rules) Masks(f Facts) string {
	if r.StopProperly && f.finish() != "stop" {
		return ruleStop
	}
	return ""
}

// Applied is a rule that changed a reward, and by how much.
type Applied struct {
	Rule string  `json:"rule"`
	By   float64 `json:"by"`
}

// Shape is the reward of a rollout after the rules, and which of them changed it.
func (r *Rules) Shape(total float64, f Facts) (float64, []Applied) {
	var applied []Applied
	step := func(rule string, value float64) {
		if value != total {
			applied = append(applied, Applied{rule, value - total})
			total = value
		}
	}
	if r.TruncatedCoef != nil {
		step(RuleTruncated, Truncated(total, f.Status == rollout.StatusTruncated, *r.TruncatedCoef))
	}
	if r.StopProperly {
		rewards, _ := ZeroOnNonStop(f.finish(), []float64{total}, nil)
		step(ruleStop, rewards[0])
	}
	if r.Soft != nil {
		step(ruleSoft, total+r.Soft.Punishment(f.Length))
	}
	if r.Affine != (Affine{}) {
		step(ruleAffine, r.Affine.of(total))
	}
	if r.Clip != nil {
		step(ruleClip, math.Min(math.Max(total, r.Clip.Low), r.Clip.High))
	}
	return total, applied
}

// Solved says whether a scored rollout solved its task: its verdict where that is
// recorded, else whether the outcome is 1 or more. nil = it has no reward.
func Solved(scored rollout.Reward) *bool {
	if scored.Excluded != "" {
		return nil
	}
	solved := scored.Verdict == rollout.VerdictResolved || reward.OnlyScalar(scored.Verdict) && scored.Outcome >= 1
	return &solved
}

// OldestVersion is the oldest policy version that sampled a turn of r, nil where a turn
// does not record it and stands has none for it.
func OldestVersion(r *rollout.Rollout, stands *int32) *int32 {
	var oldest *int32
	for _, t := range rollout.TurnsOf(r) {
		v := t.Version
		if v == nil {
			v = stands
		}
		if v == nil {
			return nil
		}
		if oldest == nil || *v < *oldest {
			oldest = v
		}
		for i := range t.Versions {
			if t.Versions[i].Version < *oldest {
				oldest = &t.Versions[i].Version
			}
		}
	}
	return oldest
}

// newestVersion is the newest policy version that sampled a turn.
func newestVersion(r *rollout.Rollout, stands *int32) *int32 {
	var newest *int32
	for _, t := range rollout.TurnsOf(r) {
		v := t.Version
		if v == nil {
			v = stands
		}
		if v != nil && (newest == nil || *v > *newest) {
			newest = v
		}
		for i := range t.Versions {
			if newest == nil || t.Versions[i].Version > *newest {
				newest = &t.Versions[i].Version
			}
		}
	}
	return newest
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
	return Member{Reward: scored.Total, Raw: raw, Excluded: scored.Excluded, Masked: masked, Solved: Solved(scored),
		Oldest: OldestVersion(r, stands), Newest: newestVersion(r, stands)}
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

// Report counts what rules did.
type Report struct {
	// Rewards counts rollouts whose reward a rule changed, by rule.
	Rewards map[string]int `json:"rewards_changed,omitempty"`
	// Groups and Rollouts count those left out, by reason; the rollouts of groups
	// among them.
	Groups   map[string]int `json:"groups_left_out,omitempty"`
	Rollouts map[string]int `json:"rollouts_left_out,omitempty"`
	// UnknownAge counts rollouts that a maximum age could not be asked of.
	UnknownAge int `json:"unknown_age,omitempty"`
	// NoTrainLogprobs counts rows that OffPolicy could not be asked of, since the log
	// probabilities of the policy that trains are not there: the trainer bounds them.
	NoTrainLogprobs int `json:"rows_without_train_logprobs,omitempty"`
	// KeptAlike counts groups that the filter would leave out and kept, since too few
	// others are there (filter.Rule.KeepAtLeast).
	KeptAlike int `json:"groups_kept_though_alike,omitempty"`
}

// Count books rules that changed a reward.
func (r *Report) Count(applied []Applied) {
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
// report what it leaves out; Spending changes the rewards of groups, and refuses those
// whose mean is below 0. The result has their shape. Members without a reward are no concern of it but
// where Keep is set: their fate is the estimator's.
func (r *Rules) Decide(groups []Group, report *Report) ([][]Fate, error) {
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
		return out, r.Keep.apply(groups, out, report)
	}
	decisions, counted, err := filter.Apply(looks, *r.Filter)
	if err != nil {
		return nil, err
	}
	report.KeptAlike += counted.TakenBack
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
	return out, r.Keep.apply(groups, out, report)
}

// age leaves out members that are too old.
func (r *Rules) age(groups []Group, out [][]Fate, report *Report) {
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
func drop(g *Group, out []Fate, reason string, report *Report) {
	add(&report.Groups, reason)
	for j := range out {
		if g.Members[j].Excluded == "" && out[j].Out == "" {
			out[j].Out = reason
			add(&report.Rollouts, reason)
		}
	}
}
