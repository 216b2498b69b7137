package tokenize_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

// A rollout whose prompts would be too much to render is refused at once, and one of
// as many turns with short contexts is not.
func TestShownMessagesAreBounded(t *testing.T) {
	m, err := embedded.Model()
	require.NoError(t, err)
	enc, err := tokenize.NewEncoder(m, tokenize.Options{})
	require.NoError(t, err)
	r := &rollout.Rollout{ID: "long"}
	for range 16_000 {
		r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleUser, Content: "x"},
			rollout.Message{Role: rollout.RoleAssistant, Content: "y", Sampled: rollout.SampledByPolicy})
	}
	start := time.Now()
	_, _, err = enc.Encode(t.Context(), r)
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, "the 16000 turns show 256000000 messages in all, the limit for one rollout is 67108864")
	require.Less(t, time.Since(start), 5*time.Second)

	for i := range 16_000 {
		r.Turns = append(r.Turns, rollout.Turn{Message: 2*i + 1, Step: i, Context: rollout.Context{Parts: []rollout.ContextPart{{From: 2 * i, To: 2*i + 1}}}})
	}
	seqs, _, err := enc.Encode(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, seqs, 16_000)
}
