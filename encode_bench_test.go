package turnpack_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// qwen3 is the Qwen3 model folder, from the tokenizers kit.
func qwen3(t testing.TB) *tokenize.Model {
	t.Helper()
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: kit.Qwen3(t)})
	require.NoError(t, err)
	return m
}

// trajectory is a rollout of the mini-swe shape: a task, then steps of a reply and an observation,
// about 740 tokens each. Texts come from the seed_parity kit in order, so that
// internal/oracle/bench_encode.py can build the same.
func trajectory(t testing.TB, steps int) *rollout.Rollout {
	t.Helper()
	var task [2]string
	var replies, outputs []string
	type seedCase struct {
		Flavour  string
		Messages []struct{ Role, Content string }
	}
	for c := range kit.Lines[seedCase](t, kit.Dir(t, "conformance", "seed_parity", "seed_parity.jsonl.gz")) {
		if !slices.Contains([]string{"plain", "context", "context_small", "unicode", "truncate"}, c.Flavour) {
			continue
		}
		for i, m := range c.Messages {
			switch {
			case i < 2:
				task[i] = m.Content
			case m.Role == "assistant":
				replies = append(replies, m.Content)
			default:
				outputs = append(outputs, m.Content)
			}
		}
	}
	text := func(from []string, step, n int) string {
		parts := []string{fmt.Sprintf("Step %d.", step)}
		for k := range n {
			parts = append(parts, from[(step*n+k)%len(from)])
		}
		return strings.Join(parts, "\n")
	}
	r := &rollout.Rollout{ID: fmt.Sprint(steps, " steps"), Messages: []rollout.Message{
		{Role: rollout.RoleSystem, Content: task[0]}, {Role: rollout.RoleUser, Content: task[1]}}}
	for k := range steps {
		r.Turns = append(r.Turns, rollout.Turn{Message: len(r.Messages), Step: k})
		r.Messages = append(r.Messages,
			rollout.Message{Role: rollout.RoleAssistant, Content: text(replies, k, 2), Sampled: rollout.SampledByPolicy},
			rollout.Message{Role: rollout.RoleUser, Content: text(outputs, k, 5)})
	}
	return r
}

// withCalls turns the second half of each reply of r into the argument of a tool call, and a
// quarter of it into reasoning.
func withCalls(r *rollout.Rollout) *rollout.Rollout {
	for _, turn := range r.Turns {
		m, result := &r.Messages[turn.Message], &r.Messages[turn.Message+1]
		id, half := fmt.Sprint("call", turn.Step), len(m.Content)/2
		m.ToolCalls = []rollout.ToolCall{{ID: id, Name: "bash", Arguments: fmt.Sprintf(`{"command": %q}`, m.Content[half:])}}
		m.Reasoning, m.Content = m.Content[:half/2], m.Content[half/2:half]
		result.Role, result.ToolCallID = rollout.RoleTool, id
	}
	return r
}

// benchmarkEncode plans the contexts, unless policy is nil, and encodes.
func benchmarkEncode(b *testing.B, o tokenize.Options, policy ctxwindow.Policy, r *rollout.Rollout) {
	enc, err := tokenize.NewEncoder(qwen3(b), o)
	require.NoError(b, err)
	ctx := context.Background()
	emitted := 0
	b.ReportAllocs()
	used := kit.CPUTime()
	for b.Loop() {
		shown := r
		if policy != nil {
			contexts, _, err := ctxwindow.Plan(ctx, r, policy, enc.Counter(r))
			require.NoError(b, err)
			shown, err = ctxwindow.Apply(r, contexts)
			require.NoError(b, err)
		}
		seqs, _, err := enc.Encode(ctx, shown)
		require.NoError(b, err)
		emitted = 0
		for i := range seqs {
			emitted += seqs[i].Len()
		}
	}
	b.ReportMetric(float64((kit.CPUTime()-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(emitted), "tokens")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(emitted), "ns/token")
}

// benchWindow is the budget of the benchmarks with a context window.
const benchWindow = 28672

var encodeBenches = []struct {
	name   string
	policy ctxwindow.Policy
}{{"plain", nil}, {"window", ctxwindow.HeadTail{Budget: benchWindow}}, {"swe-rl", ctxwindow.SWERL(benchWindow)}}

func BenchmarkPerStep(b *testing.B) {
	for _, c := range encodeBenches {
		for _, steps := range []int{5, 20, 50, 200} {
			b.Run(fmt.Sprint(c.name, "/", steps), func(b *testing.B) {
				benchmarkEncode(b, tokenize.Options{Mode: tokenize.PerStep}, c.policy, trajectory(b, steps))
			})
		}
	}
}

// BenchmarkPerStepCalls is BenchmarkPerStep with reasoning and a tool call in each reply.
func BenchmarkPerStepCalls(b *testing.B) {
	for _, c := range encodeBenches {
		for _, steps := range []int{20, 200} {
			b.Run(fmt.Sprint(c.name, "/", steps), func(b *testing.B) {
				benchmarkEncode(b, tokenize.Options{Mode: tokenize.PerStep}, c.policy, withCalls(trajectory(b, steps)))
			})
		}
	}
}

func BenchmarkMerged(b *testing.B) {
	for _, c := range encodeBenches {
		b.Run(c.name+"/200", func(b *testing.B) {
			benchmarkEncode(b, tokenize.Options{}, c.policy, trajectory(b, 200))
		})
	}
}
