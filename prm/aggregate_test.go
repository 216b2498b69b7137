package prm_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/rollout"
)

// ballot makes votes from a string: + − 0 are scores, x is a failed vote.
func ballot(s string) []rollout.Vote {
	var votes []rollout.Vote
	for _, c := range s {
		v := rollout.Vote{}
		switch c {
		case '+':
			v.Score = new(1.0)
		case '-':
			v.Score = new(-1.0)
		case '0':
			v.Score = new(0.0)
		default:
			v.Error = "connection reset"
		}
		votes = append(votes, v)
	}
	return votes
}

func TestAggregate(t *testing.T) {
	third := 1.0 / 3
	for _, row := range []struct {
		reason string
		agg    prm.Aggregate
		votes  string
		asked  int
		want   *float64
	}{
		{"mean of the valid ones", prm.Aggregate{}, "+x+", 3, new(1.0)},
		{"no valid vote is not 0", prm.Aggregate{}, "xxx", 3, nil},
		{"no vote at all is not 0", prm.Aggregate{}, "", 3, nil},
		{"mean over all", prm.Aggregate{Method: "mean_all"}, "+xx", 3, &third},
		{"below quorum", prm.Aggregate{Quorum: 2}, "+xx", 3, nil},
		{"at quorum", prm.Aggregate{Quorum: 2}, "+x-", 3, new(0.0)},
		{"majority", prm.Aggregate{Method: "majority"}, "+-+", 3, new(1.0)},
		{"tie is 0", prm.Aggregate{Method: "majority"}, "+-", 2, new(0.0)},
		{"tie has no score", prm.Aggregate{Method: "majority", Tie: "none"}, "+-", 2, nil},
		{"tie low", prm.Aggregate{Method: "majority", Tie: "low"}, "+-0", 3, new(-1.0)},
		{"a word that does not exist", prm.Aggregate{Method: "majorty"}, "+-+", 3, nil},
		{"tie high", prm.Aggregate{Method: "majority", Tie: "high"}, "+-0", 3, new(1.0)},
	} {
		t.Run(row.reason, func(t *testing.T) {
			got, why := row.agg.Score(ballot(row.votes), row.asked)
			if row.want == nil {
				require.Nil(t, got)
				require.NotEmpty(t, why, "a missing score has a reason")
				return
			}
			require.NotNil(t, got)
			require.InDelta(t, *row.want, *got, 1e-15)
		})
	}
	_, why := prm.Aggregate{}.Score(ballot("xx"), 2)
	require.Contains(t, why, "2× connection reset")
}

// Stopping when Needed returns 0 never changes a score, and Needed is minimal: for every sequence of
// votes, fewer valid votes leave the outcome open.
func TestNeededByEnumeration(t *testing.T) {
	const m = 5
	letters := "+-0x"
	var all []string
	for n, level := 0, []string{""}; n <= m; n++ {
		all = append(all, level...)
		var next []string
		for _, s := range level {
			for _, c := range letters {
				next = append(next, s+string(c))
			}
		}
		level = next
	}
	outcome := func(a prm.Aggregate, s string) string {
		v, _ := a.Score(ballot(s), m)
		if v == nil {
			return "none"
		}
		return fmt.Sprintf("%.12g", *v)
	}
	for _, agg := range []prm.Aggregate{
		{}, {Quorum: 4}, {Method: "mean_all"}, {Method: "majority"}, {Method: "majority", Quorum: 3},
		{Method: "majority", Tie: "none"}, {Method: "majority", Tie: "high", Quorum: 5},
	} {
		// outcomes[s] is the set of final outcomes reachable from s.
		outcomes := map[string]map[string]bool{}
		for i := len(all) - 1; i >= 0; i-- {
			s := all[i]
			set := map[string]bool{}
			if len(s) == m {
				set[outcome(agg, s)] = true
			} else {
				for _, c := range letters {
					for o := range outcomes[s+string(c)] {
						set[o] = true
					}
				}
			}
			outcomes[s] = set
		}
		for _, s := range all {
			if prm.Needed(agg, ballot(s), m) != 0 {
				continue
			}
			require.Lenf(t, outcomes[s], 1, "%+v stopped after %q", agg, s)
			require.Truef(t, outcomes[s][outcome(agg, s)], "%+v: the score after stopping at %q differs from the full one", agg, s)
		}
		for _, s := range all {
			need := prm.Needed(agg, ballot(s), m)
			if need == 0 || agg.Method != "majority" {
				continue
			}
			for _, longer := range all {
				if len(longer) > len(s) && len(longer) < len(s)+need && longer[:len(s)] == s && !strings.Contains(longer[len(s):], "x") {
					require.NotZerof(t, prm.Needed(agg, ballot(longer), m), "%+v: %q was decided with fewer than the %d votes that %q needs", agg, longer, need, s)
				}
			}
		}
	}
}

func TestCombine(t *testing.T) {
	scores := []rollout.StepScore{{Step: 4, Score: new(-1.0)}, {Step: 0, Score: new(1.0)}, {Step: 2, Reason: "every vote failed"}, {Step: 3, Reason: "skipped: command-less"}}
	r := prm.Combination{}.Combine(1, scores)
	require.Equal(t, 1.0, r.Total)
	require.Equal(t, 0.0, *r.Step)

	r = prm.Combination{Coef: new(0.5), Missing: "zero"}.Combine(1, scores[:3])
	require.Equal(t, 0.0, *r.Step)
	r = prm.Combination{Coef: new(0.5)}.Combine(1, scores[1:3])
	require.Equal(t, 1.5, r.Total, "a missing step leaves the mean")
	r = prm.Combination{Missing: "zero"}.Combine(1, scores[1:3])
	require.Equal(t, 1.5, r.Total, "a missing step counts 0")
	r = prm.Combination{Missing: "zero"}.Combine(1, scores[3:])
	require.Nil(t, r.Step, "a step left out on purpose is not missing")
	r = prm.Combination{}.Combine(-1, nil)
	require.Equal(t, -1.0, r.Total)
	require.Nil(t, r.Step, "no step is not a mean of 0")
	require.Equal(t, 4, scores[0].Step, "the input keeps its order")
}

func TestSeedsDiffer(t *testing.T) {
	seen := map[int64]prm.VoteID{}
	for r := range 20 {
		for s := range 20 {
			for v := range 5 {
				id := prm.VoteID{Rollout: fmt.Sprint("r", r), Step: s, Vote: v}
				seed := prm.Seed(7, id)
				require.GreaterOrEqual(t, seed, int64(0))
				require.Less(t, seed, int64(1)<<31)
				if other, ok := seen[seed]; ok {
					t.Fatalf("%v and %v share seed %d", id, other, seed)
				}
				seen[seed] = id
				require.Equal(t, seed, prm.Seed(7, id))
			}
		}
	}
	require.NotEqual(t, prm.Seed(1, prm.VoteID{Rollout: "a"}), prm.Seed(2, prm.VoteID{Rollout: "a"}))
}

// Meaningless words and numbers are reported as faults instead of being ignored.
func TestWordsAndNumbersWithoutAMeaningAreFaults(t *testing.T) {
	one := []rollout.StepScore{{Score: new(1.0)}}
	for _, c := range []prm.Combination{{Missing: "Zero"}, {Coef: new(math.NaN())}, {Coef: new(math.Inf(1))}} {
		r := c.Combine(1, one)
		require.NotEmpty(t, r.Excluded)
		require.Contains(t, r.Reason, "Combination.")
		require.Zero(t, r.Total)
	}
	require.NotEmpty(t, prm.Combination{}.Combine(math.NaN(), one).Excluded, "a total that is no number")

	for field, r := range map[string]prm.Rule{
		"Rule.Pattern": {Pattern: "score: (.*)"},
		"Rule.Field":   {Kind: "boxed-last", Field: "score"},
		"Rule.Tail":    {Kind: "regex", Pattern: "(.)", Tail: 20},
		"Rule.Scale":   {Scale: prm.ScoreRange{Min: 1, Max: 1}},
	} {
		_, err := r.Compile()
		require.ErrorContains(t, err, field)
	}
	_, err := prm.Rule{Scale: prm.ScoreRange{Values: []float64{0, 1}, Max: 5}}.Compile()
	require.ErrorContains(t, err, "both values and a range")
	require.ErrorContains(t, prm.Options{Aggregate: prm.Aggregate{Tie: "high"}}.Validate(), "majority")
}
