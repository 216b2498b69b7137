package turnpack_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/filter"
	"github.com/turnpack/turnpack/reward/offpolicy"
	"github.com/turnpack/turnpack/reward/overview"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

func ptr[T any](v T) *T { return &v }

// varied is a batch with every kind of rollout that a rule matches.
func varied(seed uint64) turnpack.Slice {
	rng := rand.New(rand.NewPCG(seed, 7))
	var out turnpack.Slice
	for g := range 6 {
		for i := range 4 {
			r := attempt(fmt.Sprint("g", g), i, rng.IntN(6) <= g)
			if rng.IntN(4) == 0 {
				r.Status = rollout.StatusTruncated
			}
			if rng.IntN(8) == 0 {
				r.Status, r.Failure = rollout.StatusFailed, &rollout.Failure{Reason: "the sandbox was lost"}
			}
			r.Turns = slices.Clone(rollout.TurnsOf(r))
			r.Turns[1].FinishReason = []string{"stop", "stop", "length", "tool_calls"}[rng.IntN(4)]
			r.Messages[3].Content += fmt.Sprint(rng.IntN(1000), " more words of one reply")
			for t := range r.Turns {
				r.Turns[t].Version = ptr(int32(rng.IntN(4)))
			}
			out = append(out, r)
		}
	}
	return out
}

// made runs p and returns its rows by id, formatted as JSON.
func made(t *testing.T, p turnpack.Pipeline, src turnpack.Source) (map[string]string, turnpack.Report) {
	all, report := madeRows(t, p, src)
	out := map[string]string{}
	for id, s := range all {
		out[id] = text(t, s)
	}
	return out, report
}

// madeRows runs p and returns its rows by id.
func madeRows(t *testing.T, p turnpack.Pipeline, src turnpack.Source) (map[string]rollout.Sample, turnpack.Report) {
	var dst rows
	report, err := p.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	out := map[string]rollout.Sample{}
	for _, s := range dst.got {
		out[s.ID] = s
	}
	return out, report
}

// text returns a row formatted as JSON.
func text(t *testing.T, s rollout.Sample) string {
	b, err := json.Marshal(s)
	require.NoError(t, err)
	return fmt.Sprintf("%s %v %v", b, s.Weight, s.Credit)
}

// ownText returns a row without what it has from the other rollouts of its group.
func ownText(t *testing.T, s rollout.Sample) string {
	s.Advantage, s.Credit = nil, nil
	return text(t, s)
}

// A rule changes only the rows it names: rows of groups in which no reward changed and no member
// was removed equal those of a run without rules, and every rollout that lost its rows is counted.
// Of the other rows, those that a rule changed say so, and the rest differ in their advantage only.
func TestRulesChangeWhatTheyName(t *testing.T) {
	kit.Long(t)
	all := map[string]shaping.Rules{
		"truncated":      {TruncatedCoef: ptr(0.5)},
		"stop":           {StopProperly: true},
		"soft":           {Soft: &shaping.Overlong{Max: 20, Cache: 8, Penalty: 1}},
		"response":       {Soft: &shaping.Overlong{Max: 24, Cache: 8, Penalty: 1}, ResponseLength: true},
		"clip":           {Clip: &reward.Range{Low: -0.5, High: 1}},
		"masked":         {MaskTruncated: true},
		"age":            {MaxAge: ptr(int32(2))},
		"solved":         {MinSolved: 1, MinUnsolved: 1},
		"valid":          {MinValid: 4},
		"alike":          {Filter: &filter.Rule{}},
		"kept":           {Keep: shaping.Keep{Resolved: true, Best: 2}},
		"row by row":     {Filter: &filter.Rule{Test: "row_deviation"}},
		"zero":           {DropZero: true},
		"affine":         {Affine: shaping.Affine{Bias: 1, Scale: 0.5}},
		"moved":          {Affine: shaping.Affine{Bias: -0.25}},
		"raw":            {TruncatedCoef: ptr(0.5), Filter: &filter.Rule{}, FilterRaw: true},
		"raw alone":      {Filter: &filter.Rule{}, FilterRaw: true},
		"best and zero":  {Keep: shaping.Keep{Best: 3}, DropZero: true},
		"length penalty": {Spending: &shaping.Spending{Output: 0.25, Input: 0.1, Turns: 0.1}},
		"every":          {TruncatedCoef: ptr(0.5), MaskTruncated: true, MaxAge: ptr(int32(2)), MinSolved: 1, Filter: &filter.Rule{}, Clip: &reward.Range{Low: -1, High: 0.75}},
		"nothing at all": {},
	}
	for _, preset := range filter.Presets() {
		all["filter "+preset.Name] = shaping.Rules{Filter: &preset}
	}
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for name, rules := range all {
		changed, gone := 0, 0
		for seed := range seeds {
			src := varied(seed)
			p := turnpack.Pipeline{Model: model(t), Mask: lossmask.Policy{}}
			if rules.Spending != nil {
				p.Scale.Outcome = "binary"
			}
			before, plain := madeRows(t, p, src)
			p.Shaping = rules
			after, report := madeRows(t, p, src)
			named, touched := map[string]bool{}, map[string]bool{} // groups
			said, out := 0, 0
			for id, was := range before {
				row, stays := after[id]
				switch {
				case !stays:
					out++
					named[was.Group], touched[was.Group] = true, true
				case strings.Contains(string(row.Metadata), `"shaped"`):
					said++
					named[was.Group], touched[was.Group] = true, true
				default:
					require.Equal(t, ownText(t, was), ownText(t, row), "%s, seed %d: nothing names the row", name, seed)
					touched[was.Group] = touched[was.Group] || text(t, was) != text(t, row)
				}
			}
			for id := range after {
				require.Contains(t, before, id)
			}
			for group, is := range touched {
				require.True(t, !is || named[group] || !shaped.Rules(rules).On(), "%s, seed %d: group %s changed and nothing in it is named", name, seed, group)
			}
			counted := 0
			for _, n := range report.Shaping.Rewards {
				counted += n
			}
			require.LessOrEqual(t, said, counted, "%s, seed %d", name, seed)
			listed := 0
			for why, n := range report.WithoutRows {
				listed += n - plain.WithoutRows[why]
			}
			require.Equal(t, out, listed, "%s, seed %d: rows that are gone are counted", name, seed)
			if rewards := shaped.Rules(rules).Shapes() || rules.Spending != nil; !rewards && rules.MaxAge == nil {
				for id, row := range after { // masked rollouts, and those left out for their group, stay in the baseline
					require.Equal(t, text(t, before[id]), text(t, row), "%s, seed %d: it changes no row that stays", name, seed)
				}
			}
			changed, gone = changed+said, gone+out
		}
		require.Equal(t, shaped.Rules(rules).On(), changed+gone > 0, "%s: the rollouts have what it looks for", name)
	}
}

// Bounds on the difference of the policies change the loss weights of the rows they name, and
// nothing else: rows of the same policy, and rows without known log probabilities, are as without a
// bound.
func TestOffPolicyChangesWhatItNames(t *testing.T) {
	const groups, size = 5, 4
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 9))
		delta := map[string]float32{} // by rollout; NaN = unknown
		var src turnpack.Slice
		for g := range groups {
			for i := range size {
				r := idsAndLogprobs(1)[0]
				r.ID, r.Group, r.Outcome.Resolved = fmt.Sprintf("%d/%d", g, i), fmt.Sprint(g), ptr(rng.IntN(2) == 0)
				d := []float32{0, 0.25, -0.5, 3, float32(math.NaN())}[rng.IntN(5)]
				delta[r.ID] = d
				if d == d {
					r.Turns[0].TrainLogprobs = []float32{-1 - d, -2 - d}
				}
				src = append(src, r)
			}
		}
		weights := offpolicy.Correction{High: 1.2, Untrained: "ratio"}
		p := turnpack.Pipeline{OnError: rollout.OnErrorStop}
		before, _ := madeRows(t, p, src)
		p.Shaping.OffPolicy = &shaping.OffPolicy{Weights: &weights, MaxError: 2}
		after, report := madeRows(t, p, src)
		masked, unknown := 0, 0
		for id, was := range before {
			row, stays := after[id]
			d := float64(delta[was.Rollout])
			if d == 3 {
				require.False(t, stays)
				masked++
				continue
			}
			require.True(t, stays)
			if d == 0.25 || d == -0.5 {
				for i, w := range was.Weight {
					require.InDelta(t, float64(w)*math.Min(math.Exp(-d), 1.2), float64(row.Weight[i]), 1e-6)
				}
				row.Weight = was.Weight
			}
			if d != d {
				unknown++
			}
			require.Equal(t, text(t, was), text(t, row), "seed %d, difference %g", seed, d)
		}
		require.Equal(t, masked, report.MaskedRows["log probabilities differ too much"])
		require.Equal(t, masked, len(before)-len(after))
		require.Equal(t, unknown, report.Shaping.NoTrainLogprobs)
	}
}

// A length penalty needs the whole group: rows, report and advantages have the reduced reward.
func TestLengthPenalty(t *testing.T) {
	src := turnpack.Slice{attempt("a", 0, true), attempt("a", 1, true), attempt("a", 2, false)}
	src[0].Messages[3].Content += " and many more words than the others have"
	e, _ := reward.Preset("prime_grpo")
	p := turnpack.Pipeline{Model: model(t), Estimator: new(reward.ByKey(e)), Scale: reward.OutcomePolicy{Outcome: "binary"}, Shaping: shaping.Rules{Spending: &shaping.Spending{Output: 0.5, Turns: 0.25}}}
	var dst rows
	report, err := p.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Len(t, dst.got, 3)
	most := 0
	for _, row := range dst.got {
		most = max(most, row.Trained())
	}
	mean := 0.0
	for i, row := range dst.got {
		want := []float64{1, 1, 0}[i] - 2.0/3*(0.5*float64(row.Trained())/float64(most)+0.25)
		require.InDelta(t, want, row.Reward, 1e-12)
		require.Contains(t, string(row.Metadata), shaped.RuleSpending)
		mean += want / 3
	}
	for _, row := range dst.got {
		require.InDelta(t, row.Reward-mean, *row.Advantage, 1e-6)
	}
	require.Equal(t, map[string]int{shaped.RuleSpending: 3}, report.Shaping.Rewards)
	require.InDelta(t, mean, report.Overview.Reward.Mean, 1e-12)

	p.Scale.Outcome = "auto" // −1 here, from the recorded verdict
	_, err = p.Run(t.Context(), src[1:], &rows{})
	require.NoError(t, err, "1 and −1 have the mean 0, and nothing is taken")
	_, err = p.Run(t.Context(), append(src[1:], attempt("a", 3, false)), &rows{})
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, `group "a" has a mean reward of -0.3`)
	require.ErrorContains(t, err, "--scale binary")
	p.Shaping.Affine = shaping.Affine{Bias: 1, Scale: 0.5}
	for _, scale := range []string{"auto", "signed"} {
		p.Scale.Outcome = scale
		var moved rows
		_, err = p.Run(t.Context(), src, &moved)
		require.NoError(t, err, "rewards of 0 and 1 again")
		for i := range moved.got {
			require.InDelta(t, *dst.got[i].Advantage, *moved.got[i].Advantage, 1e-12)
		}
	}
	p.Shaping.Affine = shaping.Affine{}
	require.ErrorContains(t, p.Validate(), "choose the scale binary", "told before anything is read")

	p.Shaping.Spending.Turns = -1
	e, _ = reward.Preset("openclaw_step_wise")
	p.Estimator = &e
	_, err = p.Run(t.Context(), src, &rows{})
	require.ErrorContains(t, err, "found -1")
	require.ErrorContains(t, err, "compares steps")
}

// A rollout without a reward is reported with that reason, whatever the estimator counts, and a
// rollout whose advantage differs from 0 by rounding only is dropped as zero.
func TestReasonsOfEstimators(t *testing.T) {
	src := turnpack.Slice{attempt("a", 0, true), attempt("a", 1, false), attempt("a", 2, true), attempt("a", 3, true)}
	src[3].Status, src[3].Failure = rollout.StatusFailed, &rollout.Failure{Reason: "the sandbox was lost"}
	for _, name := range []string{"grpo", "verl_grpo", "nemo_grpo_loo_std", "prime_grpo", "slime_grpo:key"} {
		e, ok := reward.Preset(strings.TrimSuffix(name, ":key"))
		require.True(t, ok, name)
		report, err := turnpack.Pipeline{Model: model(t), Estimator: new(reward.ByKey(e))}.Run(t.Context(), src, &rows{})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"excluded: infrastructure failure: the sandbox was lost": 1}, report.WithoutRows, name)
	}
	tenth := 0.1
	values := map[string]float64{"a/0": 0.3, "a/1": tenth + 0.2, "b/0": 0, "b/1": 1} // the first two differ by rounding
	e, _ := reward.Preset("prime_grpo")
	p := turnpack.Pipeline{Model: model(t), Estimator: &e, Shaping: shaping.Rules{DropZero: true}, Reward: func(r *rollout.Rollout) rollout.Reward {
		return rollout.Reward{Total: values[r.ID], Outcome: values[r.ID]}
	}}
	report, err := p.Run(t.Context(), turnpack.Slice{attempt("a", 0, true), attempt("a", 1, true), attempt("b", 0, true), attempt("b", 1, true)}, &rows{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{shaped.ReasonZero: 2}, report.WithoutRows)
}

func TestShapedRowSaysSo(t *testing.T) {
	src := turnpack.Slice{attempt("a", 0, true), attempt("a", 1, false)}
	src[0].Status = rollout.StatusTruncated
	var dst rows
	report, err := turnpack.Pipeline{Model: model(t), Shaping: shaping.Rules{TruncatedCoef: ptr(0.25)}}.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Equal(t, 0.25, dst.got[0].Reward)
	require.Equal(t, 1.0, dst.got[0].OutcomeReward)
	require.Contains(t, string(dst.got[0].Metadata), `"shaped":[{"rule":"truncated","by":-0.75}]`)
	require.NotContains(t, string(dst.got[1].Metadata), "shaped")
	require.Equal(t, map[string]int{"truncated": 1}, report.Shaping.Rewards)
}

// The error of a run whose rollouts are all filtered out names the setting to change.
func TestFilteredToNothing(t *testing.T) {
	var dst rows
	_, err := turnpack.Pipeline{Model: model(t), Shaping: shaping.Rules{MinSolved: 5}}.Run(t.Context(), batch(), &dst)
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, "12 too few solved")
	require.ErrorContains(t, err, "loosen the rules")
}

func TestOffPolicyRows(t *testing.T) {
	src := idsAndLogprobs(2)
	weights := offpolicy.Correction{High: 5, Untrained: "ratio"}
	p := turnpack.Pipeline{Shaping: shaping.Rules{OffPolicy: &shaping.OffPolicy{Weights: &weights, MaxError: 2}}, OnError: rollout.OnErrorStop}
	p.TrainLogprobs = func(s *rollout.Sequence) ([]float32, error) {
		out := slices.Clone(s.Logprob)
		if s.Rollout == src[0].ID {
			for i := range out {
				out[i] -= 5
			}
		}
		return out, nil
	}
	var dst rows
	report, err := p.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"log probabilities differ too much": 1}, report.MaskedRows)
	require.Len(t, dst.got, 1)
	require.Equal(t, src[1].ID, dst.got[0].Rollout)
	require.Equal(t, 2, report.Reward.Used, "its reward stays in the baseline, as in NeMo RL")
}

// idsAndLogprobs returns rollouts of one group with recorded ids and log probabilities.
func idsAndLogprobs(n int) turnpack.Slice {
	var out turnpack.Slice
	for i := range n {
		r := &rollout.Rollout{ID: fmt.Sprint("r", i), Group: "g", Status: rollout.StatusCompleted, Outcome: rollout.Outcome{Resolved: ptr(i == 0)},
			Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "x"}, {Role: rollout.RoleAssistant, Content: "y", Sampled: rollout.SampledByPolicy}}}
		r.Turns = slices.Clone(rollout.TurnsOf(r))
		r.Turns[0].Prompt = rollout.PromptIDs{Add: []rollout.TokenID{1, 2}}
		r.Turns[0].Output, r.Turns[0].Logprobs = []rollout.TokenID{3, 4}, []float32{-1, -2}
		out = append(out, r)
	}
	return out
}

func TestOverview(t *testing.T) {
	src := batch()
	src[0].Status = rollout.StatusTruncated
	src[3].Steps = []rollout.StepScore{{Step: 0, Score: ptr(1.0), Votes: []rollout.Vote{{Text: "a", Score: ptr(1.0)}, {Text: "b", Score: ptr(-1.0)}}}}
	var dst rows
	report, err := turnpack.Pipeline{Model: model(t)}.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	b := report.Overview
	require.Equal(t, 7./12, b.ResolveRate())
	require.Equal(t, 1./12, b.TruncatedShare())
	require.Equal(t, []overview.Solves{{Solved: 1, Of: 4, Groups: 1}, {Solved: 2, Of: 4, Groups: 1}, {Solved: 4, Of: 4, Groups: 1}}, b.Solves)
	require.Equal(t, 12, b.Reward.N)
	require.InDelta(t, 1./6, b.Reward.Mean, 1e-12)
	require.Equal(t, 2.0, b.Steps.Median)
	require.Equal(t, 12, b.Advantage.N)
	require.InDelta(t, 0, b.Advantage.Mean, 1e-12)
	require.NotNil(t, report.Judge)
	require.Equal(t, 1, report.Judge.Steps)
	require.Zero(t, report.Judge.Unanimous)
}

// A resumed run reports and writes the same as an uninterrupted one.
func TestShapedRunGoesOn(t *testing.T) {
	src := varied(3)
	p := turnpack.Pipeline{Model: model(t), Shaping: shaping.Rules{TruncatedCoef: ptr(0.5), MinSolved: 1, MaxAge: ptr(int32(2)),
		Soft: &shaping.Overlong{Max: 20, Cache: 8, Penalty: 1}}}
	p.Encode.Mode = tokenize.PerStep
	whole, report := made(t, p, src)
	k := &keeping{kept: map[string][]byte{}}
	_, err := p.Run(t.Context(), src, k)
	require.NoError(t, err)
	n := 0
	for id := range k.kept { // half of the rollouts are done
		if n++; n%2 == 0 {
			delete(k.kept, id)
		}
	}
	again, err := p.Run(t.Context(), src, k)
	require.NoError(t, err)
	require.Len(t, whole, report.Rows)
	require.Equal(t, report.Shaping, again.Shaping)
	require.Equal(t, report.Overview, again.Overview)
}

var _ turnpack.Keeper = (*keeping)(nil)

// keeping is a Keeper in memory.
type keeping struct {
	rows
	state []byte
	mu    sync.Mutex // Kept is called by several goroutines
	kept  map[string][]byte
}

func (k *keeping) Kept(id string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[id]
}
func (k *keeping) Holds(id string) bool { return k.Kept(id) != nil }
func (k *keeping) Keep(id string, _ int, value []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[id] = slices.Clone(value)
	return nil
}
func (k *keeping) State() []byte { return k.state }
func (k *keeping) SetState(v []byte) error {
	k.state = slices.Clone(v)
	return nil
}
