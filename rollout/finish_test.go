package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// The prompt ends where the policy began to write, as trainers define it: rollouts of a
// group share their prompt, whatever the mask excludes from replies.
func TestPromptEndsAtTheFirstSampledToken(t *testing.T) {
	const s = rollout.FlagSampled
	for _, c := range []struct {
		reason string
		weight []float32
		flags  []rollout.Flag
		given  int
		want   int
	}{
		{"all of the reply is trained", []float32{0, 0, 1, 1}, []rollout.Flag{0, 0, s, s}, 0, 2},
		{"the mask leaves reasoning out", []float32{0, 0, 0, 1}, []rollout.Flag{0, 0, s, s}, 0, 2},
		{"trained text that was not sampled comes first", []float32{0, 1, 0, 1}, []rollout.Flag{0, 0, 0, s}, 0, 1},
		{"a reply at the very start", []float32{0, 0, 0, 1}, []rollout.Flag{s, 0, 0, s}, 0, 1},
		{"rows without flags", []float32{0, 0, 0, 1}, nil, 0, 3},
		{"the caller knows", []float32{0, 0, 0, 1}, []rollout.Flag{0, 0, s, s}, 3, 3},
		{"what the caller says is too long", []float32{0, 0, 0, 1}, []rollout.Flag{0, 0, s, s}, 4, 2},
	} {
		row := rollout.Sample{PromptLen: c.given}
		row.IDs, row.Weight, row.Flags = []rollout.TokenID{5, 6, 7, 8}, c.weight, c.flags
		rows := rollout.FinishRows([]rollout.Sample{row})
		require.Len(t, rows, 1, c.reason)
		require.Equal(t, c.want, rows[0].PromptLen, c.reason)
	}
}
