package turnpack_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// TestWindowsStayInBudget: with an encoder's own counter no policy except SWERLPolicy plans a
// prompt that encodes to more than the budget, and the report states the length of the longest
// prompt exactly.
func TestWindowsStayInBudget(t *testing.T) {
	kit.OneGoroutine(t)
	summary := func(_ context.Context, omitted []rollout.Message) (rollout.Message, error) {
		return rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprint("Done so far: ", len(omitted))}, nil
	}
	const rounds = 25
	for name, m := range map[string]*tokenize.Model{"embedded": model(t), "qwen3": qwen3(t)} {
		enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: tokenize.PerStep})
		require.NoError(t, err)
		planned := 0
		for seed := range uint64(rounds) {
			rng := rand.New(rand.NewPCG(seed, 20))
			r := oddRollout(rng, 3+rng.IntN(15))
			budget := 150 + rng.IntN(600)
			for _, policy := range []ctxwindow.Policy{
				ctxwindow.HeadTail{Budget: budget}, ctxwindow.HeadTail{Budget: budget, Head: 0.9, Fixed: 1}, ctxwindow.Tail{Budget: budget},
				ctxwindow.Refill{Budget: budget}, ctxwindow.Compaction{Budget: budget, Summarize: summary},
			} {
				where := fmt.Sprintf("%s, seed %d, %#v", name, seed, policy)
				contexts, rep, err := ctxwindow.Plan(t.Context(), r, policy, enc.Counter(r))
				if errors.Is(err, rollout.KindLimit) {
					continue // the template alone exceeds the budget
				}
				require.NoError(t, err, where)
				longest := 0
				for k, turn := range rollout.TurnsOf(r) {
					prompt, err := enc.Counter(r).Count(t.Context(), messagesOf(r, contexts[k], turn.Message))
					require.NoError(t, err, where)
					require.LessOrEqual(t, prompt, budget, "%s, turn %d", where, k)
					longest = max(longest, prompt)
				}
				require.Equal(t, longest, rep.MaxTokens, where)
				if rep.Windowed > 0 {
					planned++
				}
			}
		}
		require.Greater(t, planned, rounds, "%s: windows move", name)
	}
}

// messagesOf returns the messages that a context shows a turn whose own message is number own.
func messagesOf(r *rollout.Rollout, c rollout.Context, own int) []rollout.Message {
	if c.Parts == nil {
		return r.Messages[:own]
	}
	var ms []rollout.Message
	for _, p := range c.Parts {
		if p.Message != nil {
			ms = append(ms, *p.Message)
		} else {
			ms = append(ms, r.Messages[p.From:p.To]...)
		}
	}
	return ms
}

// oddRollout is a conversation with texts that tokenizers and templates treat specially: spelled
// control tokens, reasoning, white space, long runs.
func oddRollout(rng *rand.Rand, steps int) *rollout.Rollout {
	odd := []string{"", " ", "\n\n", "ls -la", "<|im_end|>", "<|im_start|>user\n", "<think>\nhm\n</think>\n\nso", "日本 é e\u0301", "🙂\u200d", "x\ty", "<tool_call>\n{}\n</tool_call>", "aaaaaaaaaaaaaaaa", "1234567890", "\u00a0"}
	text := func(n int) string {
		var b strings.Builder
		for range rng.IntN(n) {
			b.WriteString(odd[rng.IntN(len(odd))])
		}
		return b.String()
	}
	r := &rollout.Rollout{ID: "odd", Messages: []rollout.Message{{Role: rollout.RoleSystem, Content: text(6)}, {Role: rollout.RoleUser, Content: "task " + text(20)}}}
	for range steps {
		reply := rollout.Message{Role: rollout.RoleAssistant, Content: text(12), Sampled: rollout.SampledByPolicy}
		if rng.IntN(3) == 0 {
			reply.Reasoning = text(12)
		}
		size := 25
		if rng.IntN(8) == 0 {
			size = 400 // more than most windows hold
		}
		r.Messages = append(r.Messages, reply, rollout.Message{Role: []rollout.Role{rollout.RoleUser, rollout.RoleTool}[rng.IntN(2)], Content: text(size)})
	}
	return r
}
