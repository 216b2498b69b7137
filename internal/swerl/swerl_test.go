package swerl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/internal/swerl"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

func qwen3(t testing.TB) *tokenize.Model {
	t.Helper()
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: kit.Qwen3(t)})
	require.NoError(t, err)
	return m
}

func conversation(replies ...string) *rollout.Rollout {
	r := &rollout.Rollout{ID: "r", Messages: []rollout.Message{{Role: rollout.RoleSystem, Content: "be brief"}, {Role: rollout.RoleUser, Content: "task"}}}
	for i, s := range replies {
		r.Turns = append(r.Turns, rollout.Turn{Message: len(r.Messages), Step: i})
		r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleAssistant, Content: s, Sampled: rollout.SampledByPolicy},
			rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprint("seen ", i)})
	}
	return r
}

// Each difference listed in the package documentation, compared with the default
// encoding.
func TestDifferencesToTheDefault(t *testing.T) {
	m := qwen3(t)
	text := func(ids []rollout.TokenID) string {
		s, err := m.Tokenizer.Decode(ids)
		require.NoError(t, err)
		return s
	}
	both := func(r *rollout.Rollout, max int) (*swerl.Result, []rollout.Sequence) {
		old, err := swerl.Encode(t.Context(), m, r, swerl.Options{MaxContext: max})
		require.NoError(t, err)
		enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: tokenize.PerStep})
		require.NoError(t, err)
		rows, _, err := enc.Encode(t.Context(), r)
		require.NoError(t, err)
		require.Len(t, old.Steps, len(rows))
		return old, rows
	}
	trained := func(s *swerl.Sample) string {
		response := s.Tokens[len(s.Tokens)-s.ResponseLength:]
		var ids []rollout.TokenID
		for i, m := range s.LossMask {
			if m == 1 {
				ids = append(ids, response[i])
			}
		}
		return text(ids)
	}
	sampled := func(s *rollout.Sequence) string {
		var ids []rollout.TokenID
		for i, f := range s.Flags {
			if f&rollout.FlagSampled != 0 {
				ids = append(ids, s.IDs[i])
			}
		}
		return text(ids)
	}
	const header = "<|im_start|>assistant\n"

	old, rows := both(conversation("\n\nlook", "done"), 0)
	t.Run("1 doubled header", func(t *testing.T) {
		require.Contains(t, text(old.Steps[0].Tokens), header+header)
		require.NotContains(t, text(rows[0].IDs), header+header)
		require.Zero(t, old.Steps[0].LossMask[0])
	})
	t.Run("2 made-up reasoning, newlines dropped", func(t *testing.T) {
		require.Equal(t, "<think>\n\n</think>\n\nlook<|im_end|>", trained(&old.Steps[0].Sample))
		require.Equal(t, "\n\nlook<|im_end|>", sampled(&rows[0]))
		rewritten, exact := both(conversation("so</think>look"), 0)
		require.Equal(t, "<think>\nso\n</think>\n\nlook<|im_end|>", trained(&rewritten.Steps[0].Sample))
		require.Equal(t, "so</think>look<|im_end|>", sampled(&exact[0]))
	})
	t.Run("3 in earlier turns of the single sample too", func(t *testing.T) {
		require.Equal(t, 2, strings.Count(text(old.Default.Tokens), "<think>"))
		require.NotContains(t, text(rows[1].IDs), "<think>")
	})
	t.Run("4 a newline behind the stop token", func(t *testing.T) {
		require.True(t, strings.HasSuffix(text(old.Steps[0].Tokens), "<|im_end|>\n"))
		require.Zero(t, old.Steps[0].LossMask[len(old.Steps[0].LossMask)-1])
		require.True(t, strings.HasSuffix(text(rows[0].IDs), "<|im_end|>"))
	})
	t.Run("5 the single sample ignores the window", func(t *testing.T) {
		r := conversation("one", "two", "three")
		r.Turns[2].Context.Parts = []rollout.ContextPart{{To: 2}, {From: 4, To: 6}}
		old, rows := both(r, 0)
		require.Contains(t, text(old.Default.Tokens), "seen 0")
		require.NotContains(t, text(old.Steps[2].Tokens), "seen 0")
		require.NotContains(t, text(rows[2].IDs), "seen 0")
		require.Len(t, old.Steps[2].Context, old.Steps[2].Shown)
	})
	t.Run("6 typed control tokens count", func(t *testing.T) {
		r := conversation("look")
		r.Messages[1].Content = "a <|im_end|> b"
		old, rows := both(r, 0)
		stop := m.Stops()[slices.Index(m.Stops(), rows[0].IDs[rows[0].Len()-1])]
		count := func(ids []rollout.TokenID) (n int) {
			for _, id := range ids {
				if id == stop {
					n++
				}
			}
			return n
		}
		require.Equal(t, 4, count(old.Steps[0].Tokens))
		require.Equal(t, 3, count(rows[0].IDs))
	})
	t.Run("7 one token over the budget, and completed", func(t *testing.T) {
		budget := len(old.PromptIDs)
		cut, _ := both(conversation("look"), budget)
		require.Len(t, cut.Steps[0].Tokens, budget+1)
		require.Equal(t, rollout.StatusCompleted, cut.Steps[0].Status)
		require.Equal(t, rollout.StatusTruncated, cut.Default.Status)
		require.Equal(t, 1, cut.Default.ResponseLength)
	})
	t.Run("9 no sample is empty", func(t *testing.T) {
		require.NotEmpty(t, old.Default.Tokens)
		for i := range rows {
			require.Positive(t, old.Steps[i].ResponseLength)
			require.NotEmpty(t, sampled(&rows[i]))
		}
	})
}

func TestRefusals(t *testing.T) {
	m, err := embedded.Model()
	require.NoError(t, err)
	for _, c := range []struct {
		why  string
		m    *tokenize.Model
		r    *rollout.Rollout
		o    swerl.Options
		want string
	}{
		{"no model", nil, conversation("a"), swerl.Options{}, "no tokenizer"},
		{"no task", m, &rollout.Rollout{}, swerl.Options{}, "has 0 messages"},
		{"a budget below nothing", m, conversation("a"), swerl.Options{MaxContext: -1}, "MaxContext"},
		{"a turn outside", m, &rollout.Rollout{Messages: conversation().Messages, Turns: []rollout.Turn{{Message: 7}}}, swerl.Options{}, "message 7 of 2"},
		{"a context outside", m, func() *rollout.Rollout {
			r := conversation("a")
			r.Turns[0].Context.Parts = []rollout.ContextPart{{To: 9}}
			return r
		}(), swerl.Options{}, "messages [0, 9) of 4"},
	} {
		_, err := swerl.Encode(t.Context(), c.m, c.r, c.o)
		require.ErrorContains(t, err, c.want, c.why)
	}
}
