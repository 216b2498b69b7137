package turnpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/detect"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// faulty is batch with a call of an unknown tool in one rollout and unclosed reasoning in another.
func faulty() turnpack.Slice {
	src := batch()
	for _, r := range src {
		r.Tools = []rollout.Tool{rollout.Tool(`{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}`)}
	}
	src[0].Messages[1].ToolCalls = []rollout.ToolCall{{Name: "zsh", Arguments: "{}", ArgumentsText: true}}
	src[3].Messages[3].Content = "<think>never"
	return src
}

// The override applies to the tokens of messages at fault only, and is the advantage of rows that
// consist of such messages.
func TestOverride(t *testing.T) {
	five, seven := -5.0, -7.0
	e := reward.GRPO()
	e.Override = reward.Override{InvalidToolCall: &five, MalformedThinking: &seven}
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
		p := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: mode}}
		var plain, dst rows
		unflagged, err := p.Run(t.Context(), faulty(), &plain)
		require.NoError(t, err)
		require.Nil(t, unflagged.Faults, "nothing is overridden")
		p.Estimator = e
		report, err := p.Run(t.Context(), faulty(), &dst)
		require.NoError(t, err)
		require.Equal(t, map[string]int{"unknown_tool": 1, "malformed_thinking": 1}, report.Faults)
		require.Len(t, dst.got, len(plain.got))
		for i, s := range dst.got {
			want, same := *plain.got[i].Advantage, true
			row := map[float32]bool{}
			for k, w := range s.Weight {
				if w == 0 {
					require.Zero(t, s.Credit[k])
					continue
				}
				credit := float32(want)
				switch {
				case s.Sequence.Rollout == "a/0" && s.Source[k] == 1:
					credit = -5
				case s.Sequence.Rollout == "a/1" && s.Source[k] == 3:
					credit = -7
				}
				require.Equal(t, credit, s.Credit[k], "%s token %d", s.ID, k)
				row[credit] = true
				same = same && credit == float32(want)
			}
			if len(row) == 1 {
				require.True(t, row[float32(*s.Advantage)], s.ID)
			} else {
				require.Equal(t, want, *s.Advantage, s.ID)
			}
			require.Equal(t, same, s.Sequence.Rollout != "a/0" && s.Sequence.Rollout != "a/1" || row[float32(want)] && len(row) == 1, s.ID)
		}
	}
}

// An override applies to groups whose rewards are all equal: it comes after the comparison, and the
// clip after it.
func TestOverrideOfConstantGroups(t *testing.T) {
	five := -5.0
	e := reward.Estimator{Override: reward.Override{InvalidToolCall: &five}, Clip: &reward.Range{Low: -3, High: 3}}
	src := turnpack.Slice{attempt("g", 0, true), attempt("g", 1, true)}
	src[0].Messages[3].Content = "<tool_call>"
	var dst rows
	_, err := turnpack.Pipeline{Model: model(t), Estimator: e, Detector: detect.Detector{Nemotron: true}}.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	for k, w := range dst.got[0].Weight {
		if w > 0 && dst.got[0].Source[k] == 3 {
			require.Equal(t, float32(-3), dst.got[0].Credit[k])
		} else {
			require.Zero(t, dst.got[0].Credit[k])
		}
	}
}

// harsh is a user's own estimator that decides on messages.
type harsh struct{ ranks }

func (harsh) MessageAdvantage(a float64, m reward.MessageFlags) float64 {
	if m.MalformedThinking {
		return a - 10
	}
	return a
}

func TestOwnMessageAdvantage(t *testing.T) {
	var dst rows
	report, err := turnpack.Pipeline{Model: model(t), Estimator: harsh{}}.Run(t.Context(), faulty(), &dst)
	require.NoError(t, err)
	require.Equal(t, 1, report.Faults["malformed_thinking"])
	require.Contains(t, dst.got[1].Credit, float32(*dst.got[1].Advantage-10))
	err = (&turnpack.Pipeline{Model: model(t), Detector: detect.Detector{CallMarks: []string{"x"}}}).Validate()
	require.ErrorContains(t, err, "found 1 marks")
}
