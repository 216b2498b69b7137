package turnpack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

func preset(t testing.TB, name string) reward.Estimator {
	t.Helper()
	e, ok := reward.Preset(name)
	require.True(t, ok, name)
	return e
}

// brief rewards a rollout by how few tokens its answer has, and excludes truncated ones.
func brief(r *rollout.Rollout) rollout.Reward {
	if r.Status == rollout.StatusTruncated {
		return rollout.Reward{Excluded: "cut off"}
	}
	total := 0.0
	for _, m := range r.Messages {
		if m.Role == rollout.RoleAssistant {
			total -= float64(len(m.Content))
		}
	}
	return rollout.Reward{Total: total, Outcome: total}
}

// ranks gives the best rollout of a group 1, the worst −1 and the others values in between.
type ranks struct{}

func (ranks) Advantages(groups []reward.GroupRewards) ([][]reward.Advantage, error) {
	out := make([][]reward.Advantage, len(groups))
	for i, g := range groups {
		out[i] = make([]reward.Advantage, len(g.Rollouts))
		for j, r := range g.Rollouts {
			if r.Excluded != "" {
				out[i][j].Dropped = r.Excluded
				continue
			}
			better, n := 0, 0
			for _, other := range g.Rollouts {
				if other.Excluded == "" {
					n++
					if other.Reward > r.Reward {
						better++
					}
				}
			}
			out[i][j].Value = 1 - 2*float64(better)/float64(max(n-1, 1))
		}
	}
	return out, nil
}

// With a user's own reward and estimator, rows keep the status and finish reason of the dump.
func ExamplePipeline_own() {
	m, err := embedded.Model()
	if err != nil {
		panic(err)
	}
	var src turnpack.Slice
	for i, answer := range []string{"forty-two", "42", "it is 42"} {
		src = append(src, &rollout.Rollout{ID: fmt.Sprint(i), Group: "sum", Status: rollout.StatusCompleted,
			Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "6 times 7?"}, {Role: rollout.RoleAssistant, Content: answer, Sampled: rollout.SampledByPolicy}},
			Turns:    []rollout.Turn{{Message: 1, FinishReason: "stop"}}})
	}
	var dst rows
	if _, err := (turnpack.Pipeline{Model: m, Reward: brief, Estimator: ranks{}}).Run(context.Background(), src, &dst); err != nil {
		panic(err)
	}
	for _, s := range dst.got {
		fmt.Println(s.ID, s.Reward, *s.Advantage, s.FinishReason)
	}
	// Output:
	// 0#0 -9 -1 stop
	// 1#0 -2 1 stop
	// 2#0 -8 0 stop
}

// Pipeline.Reward is treated like recorded rewards: called once per rollout, in order, also for
// interleaved groups; it is not called for rollouts that failed.
func TestOwnReward(t *testing.T) {
	src := batch()
	src[3].Status, src[3].Failure = rollout.StatusFailed, &rollout.Failure{Reason: "infra_error"}
	src[4].Status = rollout.StatusTruncated
	var asked []string
	var dst rows
	p := turnpack.Pipeline{Model: model(t), Workers: 4, Estimator: preset(t, "verl_drgrpo"), Reward: func(r *rollout.Rollout) rollout.Reward {
		asked = append(asked, r.ID)
		return brief(r)
	}}
	report, err := p.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Equal(t, []string{"a/0", "b/0", "c/0", "b/1", "c/1", "a/2", "b/2", "c/2", "a/3", "b/3", "c/3"}, asked)
	require.Equal(t, map[string]int{"cut off": 1, "infrastructure failure: infra_error": 1}, report.Reward.Excluded)
	require.Len(t, dst.got, 10)
	for _, s := range dst.got {
		require.Equal(t, -9.0, s.Reward, "every answer has nine letters")
		require.JSONEq(t, `{"fidelity":"rendered","temperature":"assumed"}`, string(mustField(t, s.Metadata, "turnpack")))
	}
	p.Reward = func(*rollout.Rollout) rollout.Reward { return rollout.Reward{Total: math.NaN()} }
	_, err = p.Run(t.Context(), batch(), &rows{})
	require.ErrorContains(t, err, "12 unusable reward: the function gave NaN")
}

// counting is a user's own estimator that counts rows; it is given their number.
type counting struct {
	ranks
	seen map[string]reward.RolloutReward
}

func (counting) CountsRows() bool { return true }

func (c counting) Advantages(groups []reward.GroupRewards) ([][]reward.Advantage, error) {
	for _, g := range groups {
		for _, r := range g.Rollouts {
			c.seen[r.ID] = r
		}
	}
	return c.ranks.Advantages(groups)
}

func TestOwnEstimatorSeesRows(t *testing.T) {
	c := counting{seen: map[string]reward.RolloutReward{}}
	var dst rows
	report, err := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: tokenize.PerStep}, Mask: lossmask.Policy{MaxTokens: 60}, Estimator: c}.Run(t.Context(), uneven(), &dst)
	require.NoError(t, err)
	require.Equal(t, 3, c.seen["g/0"].Rows)
	require.Equal(t, 1, c.seen["g/1"].Rows)
	require.Positive(t, c.seen["g/0"].Length)
	require.Equal(t, 3, report.Reward.Used)
	require.Equal(t, 1, report.Reward.Groups)
	for _, s := range dst.got {
		require.Contains(t, []float64{1, 0}, *s.Advantage)
	}
}

type answer struct {
	advantages [][]reward.Advantage
	err        error
}

func (a answer) Advantages([]reward.GroupRewards) ([][]reward.Advantage, error) {
	return a.advantages, a.err
}

// The error of a user's own estimator says what is wrong.
func TestOwnEstimatorFaults(t *testing.T) {
	src := slices.Clone(batch()[:1])
	mistake := errors.New("mistake")
	for want, a := range map[string]answer{
		"mistake":                  {err: mistake},
		"0 groups, expected 1":     {},
		`2 advantages for group`:   {advantages: [][]reward.Advantage{{{}, {}}}},
		"gave the advantage +Inf ": {advantages: [][]reward.Advantage{{{Value: math.Inf(1)}}}},
	} {
		_, err := turnpack.Pipeline{Model: model(t), Estimator: a}.Run(t.Context(), src, &rows{})
		require.ErrorContains(t, err, want)
	}
	report, err := turnpack.Pipeline{Model: model(t), Estimator: answer{err: mistake}, NoAdvantages: true}.Run(t.Context(), src, &rows{})
	require.NoError(t, err, "not asked")
	require.Equal(t, 1, report.Reward.Used)
	report, err = turnpack.Pipeline{Model: model(t), Estimator: answer{advantages: [][]reward.Advantage{{{Dropped: "too easy"}}}}}.Run(t.Context(), src, &rows{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"too easy": 1}, report.WithoutRows)
	require.Equal(t, map[string]int{"too easy": 1}, report.Reward.Dropped)
	var none *reward.Estimator
	require.NoError(t, (&turnpack.Pipeline{Model: model(t), Estimator: none}).Validate(), "a nil record is the default")
}

func mustField(t *testing.T, object []byte, name string) []byte {
	t.Helper()
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &m))
	return m[name]
}
