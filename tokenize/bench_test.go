package tokenize_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// trajectory is a run of the mini-swe shape: a task, then steps of a reply and
// an observation, about 740 tokens each. Texts come from the seed_parity kit in
// order, so internal/oracle/bench_encode.py can make the same.
func trajectory(t testing.TB, steps int) *rollout.Rollout {
	t.Helper()
	var task [2]string
	var replies, outputs []string
	for _, c := range kitLines[seedCase](t, "conformance", "seed_parity", "seed_parity.jsonl.gz") {
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

func benchmarkEncode(b *testing.B, o tokenize.Options, r *rollout.Rollout) {
	enc, err := tokenize.NewEncoder(qwen3(b), o)
	require.NoError(b, err)
	emitted := 0
	b.ReportAllocs()
	for b.Loop() {
		seqs, err := enc.Encode(context.Background(), r)
		require.NoError(b, err)
		emitted = 0
		for i := range seqs {
			emitted += seqs[i].Len()
		}
	}
	b.ReportMetric(float64(emitted), "tokens")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(emitted), "ns/token")
}

func BenchmarkPerStep(b *testing.B) {
	for _, steps := range []int{5, 20, 50, 200} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			benchmarkEncode(b, tokenize.Options{Mode: tokenize.PerStep}, trajectory(b, steps))
		})
	}
}

func BenchmarkMerged(b *testing.B) {
	benchmarkEncode(b, tokenize.Options{}, trajectory(b, 200))
}
