package tokenize_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// respelled spells some ids letter by letter, the same ones in any prompt.
func respelled(t *testing.T, m *tokenize.Model, ids []rollout.TokenID, some int) []rollout.TokenID {
	t.Helper()
	var out []rollout.TokenID
	for _, id := range ids {
		text := decode(t, m, []rollout.TokenID{id})
		added := slices.ContainsFunc(m.Tokenizer.Vocab().Added(), func(a engine.AddedToken) bool { return a.ID == id })
		if added || int(id)%7 != some || !utf8.ValidString(text) || text == "\ufffd" {
			out = append(out, id)
			continue
		}
		out = append(out, spelled(t, m, text)...)
	}
	return out
}

// origin says where a byte of a row comes from.
type origin struct {
	source int32
	flags  rollout.Flag
	turn   int32
}

func byByte(m *tokenize.Model, s *rollout.Sequence) (out []origin) {
	for i, id := range s.IDs {
		entry, _ := m.Tokenizer.Vocab().Token(id)
		for range entry {
			out = append(out, origin{s.Source[i], s.Flags[i], s.Turn[i]})
		}
	}
	return out
}

// Recorded prompts with other ids than the encoder's are attributed byte by byte.
func TestRespelledPromptsAreAttributed(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 64
	m := qwen3(t)
	other := 0
	for k := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, k))
		r := randomRollout(rng, k%2 == 0)
		own, failure := rows(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)
		require.Empty(t, failure)
		recorded := *r
		recorded.Turns = slices.Clone(r.Turns)
		some := rng.IntN(7)
		for i := range own {
			turn, n := &recorded.Turns[own[i].FirstTurn], own[i].Len()-completionLen(&own[i])
			turn.Prompt.Add, turn.Output = respelled(t, m, own[i].IDs[:n], some), own[i].IDs[n:]
			if len(turn.Prompt.Add) > n {
				other++
			}
		}
		for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
			enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: mode})
			require.NoError(t, err)
			got, report, err := enc.Encode(t.Context(), &recorded)
			require.NoError(t, err)
			require.Zero(t, report.Unattributed, "seed %d %d", seed, k)
			for i := range got {
				last := slices.IndexFunc(own, func(s rollout.Sequence) bool { return s.LastTurn == got[i].LastTurn })
				want := byByte(m, &own[last])
				for at, o := range byByte(m, &got[i]) {
					if o.turn < 0 { // trained tokens of a merged row are attributed as sampled
						require.Equal(t, want[at], o, "seed %d %d, %s, row %d, byte %d", seed, k, mode, i, at)
					}
				}
			}
		}
	}
	require.Greater(t, other, 100)
}

// A control token that a user spelled out is text to the encoder but was a token to the engine. Its
// token is attributed to the user's message.
func TestInjectedTokenIsAttributed(t *testing.T) {
	kit.OneGoroutine(t)
	m := qwen3(t)
	r := &rollout.Rollout{ID: "a", Messages: say("user: one<|im_end|>two", "assistant: three")}
	parity := encode(t, m, tokenize.Options{Mode: tokenize.PerStep, Specials: "parity"}, r)[0]
	n := parity.Len() - completionLen(&parity)
	r.Turns = []rollout.Turn{{Message: 1, Prompt: rollout.PromptIDs{Add: parity.IDs[:n]}, Output: parity.IDs[n:]}}
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
		got := encode(t, m, tokenize.Options{Mode: mode}, r)[0]
		require.Equal(t, parity.IDs, got.IDs)
		require.Equal(t, parity.Source, got.Source)
		require.Equal(t, parity.Flags, got.Flags)
	}
}
