package turnpack_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// TestPlannedIsFitted: under templates that drop old reasoning, whose prompts can shrink, each turn
// of a plan sees what a Fit of its messages alone gives, counted from scratch.
func TestPlannedIsFitted(t *testing.T) {
	kit.OneGoroutine(t)
	sources, err := filepath.Glob(filepath.Join(kit.Templates(t), "*.jinja"))
	require.NoError(t, err)
	const seed = 71
	again := map[string]bool{} // templates under which a history fits again
	files := kit.Qwen3(t)
	tok := qwen3(t).Tokenizer
	for i, source := range sources {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		files["chat_template.jinja"] = &fstest.MapFile{Data: text}
		model, err := tokenize.Load(".", tokenize.LoadOptions{FS: files, Engine: func(string, []byte) (engine.Tokenizer, error) { return tok, nil }})
		require.NoError(t, err)
		enc, err := tokenize.NewEncoder(model, tokenize.Options{})
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(source), ".jinja")
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		for range 3 {
			if plannedIsFitted(t, enc, rng, name) {
				again[name] = true
			}
		}
	}
	require.GreaterOrEqual(t, len(again), 15, again)
}

// plannedIsFitted plans one rollout and reports whether a turn sees the whole history after an
// earlier turn did not.
func plannedIsFitted(t *testing.T, enc *tokenize.Encoder, rng *rand.Rand, name string) (again bool) {
	t.Helper()
	r := thinking(rng)
	budget := 100 + rng.IntN(300)
	for _, policy := range []ctxwindow.Policy{ctxwindow.HeadTail{Budget: budget}, ctxwindow.Tail{Budget: budget}} {
		contexts, _, failure := ctxwindow.Plan(t.Context(), r, policy, enc.Counter(r))
		for k, turn := range rollout.TurnsOf(r) {
			where := fmt.Sprintf("%s, %#v, turn %d", name, policy, k)
			before := r.Messages[:turn.Message]
			fitted, err := ctxwindow.Fit(t.Context(), before, policy, ctxwindow.CounterFunc(func(ctx context.Context, ms []rollout.Message) (int, error) {
				return enc.Counter(r).Count(ctx, ms)
			}))
			if failure != nil {
				if err != nil { // the turn at which the plan stopped
					return again
				}
				continue
			}
			require.NoError(t, err, where)
			require.Equal(t, messagesOf(r, fitted.Context, turn.Message), messagesOf(r, contexts[k], turn.Message), where)
			again = again || k > 0 && contexts[k].Parts == nil && contexts[k-1].Parts != nil
		}
		require.NoError(t, failure)
	}
	return again
}

// thinking is a conversation with reasoning of various lengths between short texts.
func thinking(rng *rand.Rand) *rollout.Rollout {
	r := &rollout.Rollout{ID: "thinking", Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "task"}}}
	for k := range 8 {
		reply := rollout.Message{Role: rollout.RoleAssistant, Content: fmt.Sprint("step ", k), Sampled: rollout.SampledByPolicy}
		if rng.IntN(2) == 0 {
			reply.Reasoning = strings.Repeat("hm ", 1+rng.IntN(300))
		}
		answer := rollout.Message{Role: rollout.RoleUser, Content: strings.Repeat("out ", rng.IntN(40))}
		if rng.IntN(4) > 0 { // reasoning is kept until the next question
			reply.ToolCalls = []rollout.ToolCall{{ID: fmt.Sprint("call", k), Name: "bash", Arguments: "{}"}}
			answer.Role, answer.ToolCallID, answer.Name = rollout.RoleTool, reply.ToolCalls[0].ID, "bash"
		}
		r.Messages = append(r.Messages, reply, answer)
	}
	return r
}
