package tokenize_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// apart is r with every context split into two parts, the second one empty: the same messages, but
// rendered from the first on each time.
func apart(r *rollout.Rollout) *rollout.Rollout {
	out := *r
	out.Turns = slices.Clone(r.Turns)
	for i := range out.Turns {
		t := &out.Turns[i]
		parts := slices.Clone(t.Context.Parts)
		if parts == nil {
			parts = []rollout.ContextPart{{To: t.Message}}
		}
		t.Context.Parts = append(parts, rollout.ContextPart{From: t.Message, To: t.Message})
	}
	return &out
}

func policies(budget int) []ctxwindow.Policy {
	summary := func(_ context.Context, omitted []rollout.Message) (rollout.Message, error) {
		return rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprint(len(omitted), " messages were about files")}, nil
	}
	return []ctxwindow.Policy{ctxwindow.None{}, ctxwindow.HeadTail{Budget: budget}, ctxwindow.Tail{Budget: budget},
		ctxwindow.Refill{Budget: budget}, ctxwindow.Compaction{Budget: budget, Summarize: summary}}
}

// Encoding a context from where it differs from the previous one changes no count, no row and no
// report, under any window.
func TestContextsAreEncodedAsIfAlone(t *testing.T) {
	kit.OneGoroutine(t)
	models := templateModels(t)
	const seed = 71
	compared, windowed := 0, 0
	for k, name := range slices.Sorted(maps.Keys(models)) {
		rng := rand.New(rand.NewPCG(seed, uint64(k)))
		for j := range 4 {
			r := randomRollout(rng, j%2 == 0)
			for range 3 { // make it longer
				more := randomRollout(rng, j%2 == 0)
				first := slices.IndexFunc(more.Messages, func(m rollout.Message) bool { return m.Role == rollout.RoleAssistant })
				for _, turn := range more.Turns {
					r.Turns = append(r.Turns, rollout.Turn{Message: len(r.Messages) + turn.Message - first, Step: len(r.Turns)})
				}
				r.Messages = append(r.Messages, more.Messages[first:]...)
			}
			all := policies(300 + rng.IntN(400))
			for _, p := range []ctxwindow.Policy{all[0], all[1+(j+k)%4]} {
				note := fmt.Sprintf("%s, seed %d, rollout %d, %s", name, seed, j, fmt.Sprintf("%T", p))
				enc, err := tokenize.NewEncoder(models[name], tokenize.Options{})
				require.NoError(t, err)
				contexts, _, err := ctxwindow.Plan(t.Context(), r, p, enc.Counter(r))
				if err != nil {
					continue // the template rejects the conversation, or nothing fits
				}
				afresh := ctxwindow.CounterFunc(func(ctx context.Context, messages []rollout.Message) (int, error) {
					return enc.Counter(r).Count(ctx, messages)
				})
				alone, _, err := ctxwindow.Plan(t.Context(), r, p, afresh)
				require.NoError(t, err, note)
				require.Equal(t, alone, contexts, note)
				shown, err := ctxwindow.Apply(r, contexts)
				require.NoError(t, err, note)
				for _, mode := range []tokenize.Mode{tokenize.PerStep, tokenize.Merged} {
					enc, err := tokenize.NewEncoder(models[name], tokenize.Options{Mode: mode})
					require.NoError(t, err)
					want, wantReport, wantErr := enc.Encode(t.Context(), apart(shown))
					got, report, err := enc.Encode(t.Context(), shown)
					if wantErr != nil {
						require.EqualError(t, err, wantErr.Error(), note)
						continue
					}
					require.NoError(t, err, note)
					require.Equal(t, want, got, note)
					require.Equal(t, wantReport, report, note)
					compared++
					if slices.ContainsFunc(shown.Turns, func(t rollout.Turn) bool { return len(t.Context.Parts) > 1 }) {
						windowed++
					}
				}
			}
		}
	}
	t.Logf("%d encodings, %d with windows", compared, windowed)
	require.Greater(t, windowed, compared/8)
}

// longRollout has turns of a few tokens, with reasoning and a tool call if tools is set.
func longRollout(turns int, tools bool) *rollout.Rollout {
	r := &rollout.Rollout{ID: fmt.Sprint(turns, " turns"), Messages: say("system: be brief", "user: find the bug")}
	for k := range turns {
		r.Turns = append(r.Turns, rollout.Turn{Message: len(r.Messages), Step: k})
		m := rollout.Message{Role: rollout.RoleAssistant, Content: fmt.Sprintf("reply %d looks at the next file", k), Sampled: rollout.SampledByPolicy}
		next := rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprintf("line %d is fine", k)}
		if tools {
			id := fmt.Sprint("call", k)
			m.Reasoning, m.ToolCalls = "so I look", []rollout.ToolCall{{ID: id, Name: "bash", Arguments: `{"command":"ls"}`}}
			next.Role, next.ToolCallID = rollout.RoleTool, id
		}
		r.Messages = append(r.Messages, m, next)
	}
	return r
}

// A thousand turns take seconds, though each prompt is rendered from its first message.
func TestThousandTurns(t *testing.T) {
	kit.OneGoroutine(t)
	m := qwen3(t)
	for _, tools := range []bool{false, true} {
		enc, err := tokenize.NewEncoder(m, tokenize.Options{})
		require.NoError(t, err)
		r := longRollout(1000, tools)
		used := kit.CPUTime()
		seqs, _, err := enc.Encode(t.Context(), r)
		require.NoError(t, err)
		require.Len(t, seqs, 1)
		require.Equal(t, 999, seqs[0].LastTurn)
		t.Logf("tools %v: %v of processor time", tools, kit.CPUTime()-used)
		require.Less(t, kit.CPUTime()-used, 6*time.Second) // 2.2 s of processor time
	}
}

func BenchmarkManyTurns(b *testing.B) {
	m := qwen3(b)
	for _, tools := range []bool{false, true} {
		for _, turns := range []int{200, 1000} {
			b.Run(fmt.Sprint(map[bool]string{false: "text/", true: "tools/"}[tools], turns), func(b *testing.B) {
				enc, err := tokenize.NewEncoder(m, tokenize.Options{})
				require.NoError(b, err)
				r := longRollout(turns, tools)
				b.ReportAllocs()
				used := kit.CPUTime()
				for b.Loop() {
					_, _, err := enc.Encode(b.Context(), r)
					require.NoError(b, err)
				}
				b.ReportMetric(float64((kit.CPUTime()-used).Nanoseconds())/float64(b.N)/float64(turns), "cpu-ns/turn")
			})
		}
	}
}
