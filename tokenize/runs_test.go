package tokenize

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
)

// WithRowTokens is e with another limit on the tokens of a rollout's rows.
func WithRowTokens(e *Encoder, most int) *Encoder {
	return &Encoder{model: e.model, opts: e.opts, added: e.added, huge: e.huge, window: e.window, most: most}
}

// CheckRuns encodes r with rows made window by window, and compares them with rows made at once.
func CheckRuns(t *testing.T, e *Encoder, r *rollout.Rollout) (inRuns int) {
	t.Helper()
	want, report, err := e.Encode(t.Context(), r)
	require.NoError(t, err)
	for _, window := range []int{1, 7, 64, 1 << 20} {
		small := &Encoder{model: e.model, opts: e.opts, added: e.added, huge: 20, window: window, most: e.most}
		var got []rollout.Sequence
		again, err := small.EachRuns(t.Context(), r, func(seq rollout.Sequence, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
			if lens != nil {
				inRuns++
				seq = spool.Whole(rollout.Sample{Sequence: seq}, lens, ids, logprobs).Sequence
			}
			got = append(got, seq)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, want, got, "windows of %d", window)
		require.Equal(t, report, again)
	}
	return inRuns
}
