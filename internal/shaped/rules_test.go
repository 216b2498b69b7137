package shaped

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/filter"
	"github.com/turnpack/turnpack/reward/offpolicy"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

func ptr[T any](v T) *T { return &v }

func TestShape(t *testing.T) {
	done, cut := rollout.StatusCompleted, rollout.StatusTruncated
	soft := &shaping.Overlong{Max: 100, Cache: 50, Penalty: 1}
	for _, c := range []struct {
		reason string
		rules  Rules
		total  float64
		facts  Facts
		want   float64
		by     []Applied
	}{
		{"nothing", Rules{}, 1, Facts{Status: cut}, 1, nil},
		{"a cut-off success is worth half", Rules{TruncatedCoef: ptr(0.5)}, 1, Facts{Status: cut}, 0.5, []Applied{{ruleTruncated, -0.5}}},
		{"one that ended keeps its reward", Rules{TruncatedCoef: ptr(0.5)}, 1, Facts{Status: done}, 1, nil},
		{"a call at the end is no stop", Rules{StopProperly: true}, 1, Facts{Status: done, FinishReason: "tool_calls"}, 0, []Applied{{ruleStop, -1}}},
		{"no reason recorded, completed", Rules{StopProperly: true}, 1, Facts{Status: done}, 1, nil},
		{"no reason recorded, failed", Rules{StopProperly: true}, 1, Facts{Status: rollout.StatusFailed}, 0, []Applied{{ruleStop, -1}}},
		{"no reason recorded, aborted", Rules{StopProperly: true}, 1, Facts{Status: rollout.StatusAborted}, 0, []Applied{{ruleStop, -1}}},
		{"no reason recorded, no status either", Rules{StopProperly: true}, 1, Facts{}, 0, []Applied{{ruleStop, -1}}},
		{"no reason recorded, cut off", Rules{StopProperly: true}, 1, Facts{Status: cut}, 0, []Applied{{ruleStop, -1}}},
		{"half of the buffer", Rules{Soft: soft}, 1, Facts{Length: 75}, 0.5, []Applied{{ruleSoft, -0.5}}},
		{"moved, then scaled", Rules{Affine: shaping.Affine{Bias: -0.5, Scale: 10}}, 1, Facts{}, 5, []Applied{{ruleAffine, 4}}},
		{"the clip comes last", Rules{Soft: soft, Clip: &reward.Range{Low: -0.25, High: 1}}, -1, Facts{Length: 100}, -0.25,
			[]Applied{{ruleSoft, -1}, {ruleClip, 1.75}}},
	} {
		require.NoError(t, shaping.Rules(c.rules).Validate(), c.reason)
		got, by := c.rules.Shape(c.total, c.facts)
		require.Equal(t, c.want, got, c.reason)
		require.Equal(t, c.by, by, c.reason)
		if c.rules.StopProperly {
			require.Equal(t, c.by != nil, c.rules.Masks(c.facts) != "", c.reason)
		}
	}
}

// group returns a group with one member per reward; rewards of 1 or more are solved.
func group(key string, rewards ...float64) Group {
	g := Group{Key: key}
	for _, r := range rewards {
		g.Members = append(g.Members, Member{Reward: r, Raw: r, Solved: ptr(r >= 1)})
	}
	return g
}

func TestDecideLeavesNothingInSilence(t *testing.T) {
	groups := []Group{group("never", 0, 0, 0), group("always", 1, 1, 1), group("mixed", 1, 0, 1), group("gone", 1, 0)}
	groups[3].Members[1].Excluded = "infrastructure failure"
	groups[2].Members[0].Oldest, groups[2].Members[0].Newest = ptr(int32(3)), ptr(int32(5))
	groups[2].Members[1].Oldest, groups[2].Members[1].Newest = ptr(int32(9)), ptr(int32(9))
	groups[2].Members[2].Oldest, groups[2].Members[2].Newest = ptr(int32(8)), ptr(int32(9))
	rules := Rules{MinSolved: 1, MinUnsolved: 1, MinValid: 2, MaxAge: ptr(int32(1))}
	var report shaping.Report
	got, err := rules.Decide(groups, &report)
	require.NoError(t, err)
	few, all := Fate{Out: reasonFewSolved}, Fate{Out: reasonFewUnsolved}
	require.Equal(t, [][]Fate{{few, few, few}, {all, all, all}, {{Out: reasonStale}, {}, {}}, {{Out: reasonFewValid}, {}}}, got)
	require.Equal(t, map[string]int{reasonFewSolved: 1, reasonFewUnsolved: 1, reasonFewValid: 1}, report.Groups)
	require.Equal(t, map[string]int{reasonFewSolved: 3, reasonFewUnsolved: 3, reasonFewValid: 1, reasonStale: 1}, report.Rollouts)
	require.Equal(t, 7, report.UnknownAge)
	n := 0
	for _, fates := range got {
		for _, f := range fates {
			if f.Out != "" {
				n++
			}
		}
	}
	require.Equal(t, n, report.Rollouts[reasonFewSolved]+report.Rollouts[reasonFewUnsolved]+report.Rollouts[reasonFewValid]+report.Rollouts[reasonStale])
}

// With FilterRaw, the filter uses the reward before the length penalty.
func TestFilterRaw(t *testing.T) {
	g := group("alike", 1, 1)
	g.Members[1].Reward = 0.5
	for raw, want := range map[bool]string{false: "", true: "all rewards are alike"} {
		rules := Rules{Filter: &filter.Rule{}, FilterRaw: raw}
		var report shaping.Report
		got, err := rules.Decide([]Group{g}, &report)
		require.NoError(t, err)
		require.Equal(t, want, got[0][0].Out)
	}
}

func TestOffPolicy(t *testing.T) {
	ln2 := float32(math.Ln2)
	seq := rollout.Sequence{IDs: []int32{1, 2, 3}, Source: make([]int32, 3), Flags: make([]rollout.Flag, 3), Turn: make([]int32, 3),
		Logprob: []float32{-9, -1, -1}, Weight: []float32{0, 1, 1}}
	weights := offpolicy.Correction{High: 1.5, Untrained: "ratio"}
	o := shaping.OffPolicy{Weights: &weights, MaxError: 2}
	require.NoError(t, shaping.Rules{OffPolicy: &o}.Validate())
	got, why, err := Bound(o, seq, []float32{0, -1 + ln2, -1})
	require.NoError(t, err)
	require.Empty(t, why)
	require.InDeltaSlice(t, []float32{0, 1.5, 1}, got.Weight, 1e-6)
	require.Equal(t, []float32{0, 1, 1}, seq.Weight, "the input keeps its weights")
	_, why, err = Bound(o, seq, []float32{0, -1 + 3*ln2, -1})
	require.NoError(t, err)
	require.Equal(t, reasonLogprobError, why, "mean of 8 and 1")
	_, _, err = Bound(o, seq, nil)
	require.ErrorIs(t, err, rollout.KindInput)
}

// Decide keeps the same rollouts in the kit's batches as each system.
func TestDecideAsTheSystems(t *testing.T) {
	presets := map[string]filter.Rule{}
	for _, p := range filter.Presets() {
		presets[p.Name] = p
	}
	live := presets["skyrl@a9564572e"]
	live.LiveOnly, live.Exact, live.Tolerance = true, false, 1e-6
	rules := map[string]filter.Rule{
		"slime_keep": presets["slime@624b824a8"], "openclaw_keep": presets["openclaw@0d034dd5e"], "verl_keep": presets["verl@1dda039b9"],
		"nemo_keep_rows_loo": presets["nemo_loo@7ea279abf"], "nemo_keep_rows_group": presets["nemo_group@7ea279abf"],
		"skyrl_keep_tol0": presets["skyrl@a9564572e"], "skyrl_keep_live_tol1e-6": live,
		"openclaw_drop_constant_keep": presets["openclaw_drop_constant@0d034dd5e"],
	}
	for c := range kit.Lines[struct {
		ID       string
		Groups   [][]float64
		Live     [][]bool
		Expected map[string]json.RawMessage
	}](t, kit.Dir(t, "conformance", "shaping", "group_filters.jsonl")) {
		for name, rule := range rules {
			var groups []Group
			for i, rewards := range c.Groups {
				g := group(name, rewards...)
				for j := range g.Members {
					if rule.LiveOnly && !c.Live[i][j] {
						g.Members[j].Masked = "overlong"
					}
				}
				groups = append(groups, g)
			}
			var report shaping.Report
			r := Rules{Filter: &rule}
			got, err := r.Decide(groups, &report)
			require.NoError(t, err)
			rows := rule.Test == "row_deviation" || rule.Test == "row_deviation_group"
			var keepGroups []bool
			var keepRows [][]bool
			if rows {
				require.NoError(t, json.Unmarshal(c.Expected[name], &keepRows))
			} else {
				require.NoError(t, json.Unmarshal(c.Expected[name], &keepGroups))
			}
			for i := range got {
				for j, f := range got[i] {
					want := false
					if rows {
						want = keepRows[i][j]
					} else {
						want = keepGroups[i]
					}
					require.Equal(t, want, f.Out == "", "%s %s group %d row %d", c.ID, name, i, j)
				}
			}
		}
	}
}

// Shape gives the same rewards in the kit's batches as each system.
func TestShapeAsTheSystems(t *testing.T) {
	for c := range kit.Lines[struct {
		ID          string
		MaxLen      int `json:"max_len"`
		Cache       int
		Penalty     float64
		Lengths     []int
		BaseRewards []float64 `json:"base_rewards"`
		Expected    map[string][]float64
		Verl, Nemo  []float64
	}](t, kit.Dir(t, "conformance", "shaping", "length.jsonl")) {
		r := Rules{Soft: &shaping.Overlong{Max: c.MaxLen, Cache: c.Cache, Penalty: c.Penalty, Unbounded: true}}
		require.NoError(t, shaping.Rules(r).Validate())
		for i, length := range c.Lengths {
			got, _ := r.Shape(c.BaseRewards[i], Facts{Length: length})
			require.InDelta(t, c.Expected["verl_reward"][i], got, 1e-9, c.ID)
			require.InDelta(t, c.Expected["nemo_reward"][i], got, 1e-9, c.ID)
		}
	}
}

// Left out and masked members do not count in the group's spending, and the filter uses the remaining
// members.
func TestSpendingOfGroups(t *testing.T) {
	m := func(reward float64, output, turns int) Member {
		return Member{Reward: reward, Raw: reward, Newest: ptr(int32(4)), Oldest: ptr(int32(4)), Usage: Usage{OutputTokens: output, TotalTokens: output, Turns: turns}}
	}
	g := Group{Key: "g", Members: []Member{m(1, 100, 2), m(1, 50, 2), m(0, 900, 9), m(1, 900, 9), m(1, 900, 9)}}
	g.Members[2].Oldest = ptr(int32(0))
	g.Members[3].Masked = "truncated"
	g.Members[4].Excluded = "infrastructure failure"
	r := Rules{MaxAge: ptr(int32(2)), Spending: &shaping.Spending{Output: 0.5, Turns: 0.25}, Filter: &filter.Rule{}}
	require.NoError(t, shaping.Rules(r).Validate())
	require.True(t, r.Decides() && r.CountsTokens() && r.On())
	require.False(t, Rules{}.On())
	var report shaping.Report
	out, err := r.Decide([]Group{g}, &report)
	require.NoError(t, err)
	var got []float64
	for _, m := range g.Members {
		got = append(got, m.Reward)
	}
	require.Equal(t, []float64{0.25, 0.5, 0, 1, 1}, got)
	require.Equal(t, []Fate{{}, {}, {Out: reasonStale}, {}, {}}, out[0])
	require.Equal(t, shaping.Report{Rewards: map[string]int{RuleSpending: 2}, Rollouts: map[string]int{reasonStale: 1}}, report)

	g.Members[2].Reward, g.Members[3].Reward, g.Members[4].Reward = -1, -1, -1
	_, err = r.Decide([]Group{g}, &report)
	require.NoError(t, err, "those that are no part of it may have any reward")
	g.Members[0].Reward, g.Members[1].Reward = 1, -0.5
	_, err = r.Decide([]Group{g}, &report)
	require.NoError(t, err)
	require.Equal(t, -0.5-0.25*(0.25+0.25), g.Members[1].Reward, "what is above 0 is the mean")
	g.Members[0].Reward, g.Members[1].Reward = 1, -1.5
	_, err = r.Decide([]Group{g}, &report)
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, `group "g" has a mean reward of -0.25`)

	alike := Group{Key: "h", Members: []Member{m(0, 100, 2), m(0, 50, 2)}}
	_, err = r.Decide([]Group{alike}, &report)
	require.NoError(t, err)
	require.Equal(t, 1, report.Groups["all rewards are alike"], "what nobody solves costs nothing")
	for _, w := range []float64{-1, math.NaN(), math.Inf(1)} {
		require.ErrorIs(t, shaping.Rules{Spending: &shaping.Spending{Input: w}}.Validate(), rollout.KindInput)
	}
}

// Recorded finds the tokens of a row in the turns that sampled them, even if a repair dropped some,
// and returns nil if a token is missing.
func TestRecorded(t *testing.T) {
	r := &rollout.Rollout{Turns: []rollout.Turn{
		{Message: -1, Output: []int32{7, 7, 8}, Logprobs: []float32{-1, -2, -3}, TrainLogprobs: []float32{-4, -5, -6}},
		{Message: -1, Output: []int32{7, 9}, Logprobs: []float32{-1, -2}, TrainLogprobs: []float32{-7, -8}},
	}}
	on := rollout.FlagSampled
	seq := rollout.Sequence{IDs: []int32{1, 7, 7, 8, 2, 7, 9}, Source: make([]int32, 7), Turn: []int32{-1, 0, 0, 0, -1, 1, 1}, Flags: []rollout.Flag{0, on, on, on, 0, on, on},
		Logprob: []float32{0, -1, -2, -3, 0, -1, -2}, Weight: []float32{0, 1, 1, 1, 0, 1, 1}}
	require.Equal(t, []float32{0, -4, -5, -6, 0, -7, -8}, Recorded(r, &seq))
	cut := rollout.Sequence{IDs: []int32{7, 8, 9}, Source: make([]int32, 3), Turn: []int32{0, 0, 1}, Flags: []rollout.Flag{on, on, on}, Logprob: []float32{-2, -3, -2}, Weight: []float32{1, 1, 1}}
	require.Equal(t, []float32{-5, -6, -8}, Recorded(r, &cut))
	cut.IDs = []int32{7, 5, 9}
	require.Nil(t, Recorded(r, &cut), "a token that nobody sampled")
	cut.Weight = []float32{1, 0, 1}
	require.Equal(t, []float32{-5, 0, -8}, Recorded(r, &cut), "which is not trained")
	cut.IDs, r.Turns[1].TrainLogprobs = []int32{7, 8, 9}, nil
	require.Nil(t, Recorded(r, &cut), "of one of the turns they are not known")
	r.Turns[0].TrainLogprobs = nil
	require.Nil(t, Recorded(r, &seq))
	seq.Logprob = nil
	require.Nil(t, Recorded(r, &seq))
}
