package tokenize_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

// A rollout whose prompts are too much to render is rejected at once; one with as many turns but
// short contexts is not.
func TestShownMessagesAreBounded(t *testing.T) {
	kit.OneGoroutine(t)
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

// A rollout whose rows would be too large is rejected: by the size of its text before rendering,
// for per-step rows, else before a row is made.
func TestRowTokensAreBounded(t *testing.T) {
	m, err := embedded.Model()
	require.NoError(t, err)
	r := &rollout.Rollout{ID: "long"}
	text := strings.Repeat("0123456789", 1<<20/10)
	for range 7000 {
		r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleUser, Content: text},
			rollout.Message{Role: rollout.RoleAssistant, Content: "y", Sampled: rollout.SampledByPolicy})
	}
	enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: tokenize.PerStep})
	require.NoError(t, err)
	start := time.Now()
	_, err = enc.Each(t.Context(), r, func(rollout.Sequence) error { t.Error("a row was given"); return nil })
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, "the rows of its 7000 turns hold over 1073741824 tokens in all, the limit for one rollout")
	require.Less(t, time.Since(start), time.Second)

	r.Messages = r.Messages[:0]
	for range 10 {
		r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleUser, Content: "look at the files"},
			rollout.Message{Role: rollout.RoleAssistant, Content: "done", Sampled: rollout.SampledByPolicy})
	}
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
		enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: mode})
		require.NoError(t, err)
		_, report, err := enc.Encode(t.Context(), r)
		require.NoError(t, err)
		given := 0
		_, err = tokenize.WithRowTokens(enc, report.RowTokens-1).Each(t.Context(), r, func(rollout.Sequence) error { given++; return nil })
		require.ErrorContains(t, err, "in all, the limit for one rollout")
		require.Equal(t, report.Rows-1, given)
		_, err = tokenize.WithRowTokens(enc, report.RowTokens).Each(t.Context(), r, func(rollout.Sequence) error { return nil })
		require.NoError(t, err)
	}
	// Merged rows that do not join are rejected before all turns are encoded: the last turn here
	// would fail.
	apart, err := tokenize.Load("embedded", tokenize.LoadOptions{TemplateText: `{% for m in messages %}{{ m.content }}.{% endfor %}{% if add_generation_prompt %}?{% endif %}`})
	require.NoError(t, err)
	enc, err = tokenize.NewEncoder(apart, tokenize.Options{})
	require.NoError(t, err)
	_, report, err := enc.Encode(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, 10, report.Rows)
	r.Turns = rollout.TurnsOf(r)
	r.Turns[9].Logprobs = []float32{-1}
	for most, want := range map[int]string{report.RowTokens / 4: "limit for one rollout", report.RowTokens: "log probabilities"} {
		_, err = tokenize.WithRowTokens(enc, most).Each(t.Context(), r, func(rollout.Sequence) error { return nil })
		require.ErrorContains(t, err, want)
	}
}
