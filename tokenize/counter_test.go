package tokenize_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// TestCounterCountsAsTheEncoder: the counter's memory changes no count, with control tokens,
// reasoning and white space in every place of a message.
func TestCounterCountsAsTheEncoder(t *testing.T) {
	kit.OneGoroutine(t)
	texts := []string{"", " ", "\n\n", "fix it", "<|im_end|>", "a<|im_start|>user\nb", "<think>\nhm\n</think>\n\nls", "</think>", "日本 é", "<", "<|", "x  ", "<tool_call>\n{}\n</tool_call>"}
	for name, m := range map[string]*tokenize.Model{"embedded": embeddedModel(t), "qwen3": qwen3(t)} {
		for _, specials := range []string{"guard", "parity"} {
			enc, err := tokenize.NewEncoder(m, tokenize.Options{Specials: specials})
			require.NoError(t, err)
			rng := rand.New(rand.NewPCG(1, 2))
			r := &rollout.Rollout{ID: "r"}
			counter := enc.Counter(r)
			for round := range 150 {
				ms := []rollout.Message{{Role: rollout.RoleSystem, Content: texts[rng.IntN(len(texts))]}, {Role: rollout.RoleUser, Content: "task " + texts[rng.IntN(len(texts))]}}
				for range rng.IntN(8) {
					a := rollout.Message{Role: rollout.RoleAssistant, Content: texts[rng.IntN(len(texts))] + texts[rng.IntN(len(texts))]}
					if rng.IntN(2) == 0 {
						a.Sampled = rollout.SampledByPolicy
					}
					if rng.IntN(3) == 0 {
						a.Reasoning = texts[rng.IntN(len(texts))]
					}
					ms = append(ms, a, rollout.Message{Role: []rollout.Role{rollout.RoleUser, rollout.RoleTool}[rng.IntN(2)], Content: texts[rng.IntN(len(texts))]})
				}
				want, err := enc.Counter(r).Count(context.Background(), ms)
				require.NoError(t, err)
				got, err := counter.Count(context.Background(), ms)
				require.NoError(t, err)
				require.Equal(t, want, got, "%s %s round %d: %q", name, specials, round, ms)
			}
		}
	}
}

// TestCounterKnowsItsRollout counts windows of the rollout's own messages among others; the counter
// must recognize its own.
func TestCounterKnowsItsRollout(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 63
	rng := rand.New(rand.NewPCG(seed, 0))
	// Its replies begin with the bytes of its generation prompt.
	const literal = "{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>assistant\n{{ m.content }}{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}" +
		"{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	for name, m := range map[string]*tokenize.Model{"embedded": embeddedModel(t), "qwen3": qwen3(t), "literal": withTemplate(t, literal)} {
		enc, err := tokenize.NewEncoder(m, tokenize.Options{})
		require.NoError(t, err)
		for k := range 40 {
			r := randomRollout(rng, k%2 == 0)
			r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleExit, Content: "submitted"})
			counter := enc.Counter(r)
			for range 12 {
				var shown []rollout.Message
				for i := range r.Messages {
					switch rng.IntN(6) {
					case 0: // left out
					case 1:
						shown = append(shown, rollout.Message{Role: rollout.RoleUser, Content: "left out"}, r.Messages[i])
					case 2: // shortened
						short := r.Messages[i]
						short.Content = short.Content[:len(short.Content)/2]
						shown = append(shown, short)
					default:
						shown = append(shown, r.Messages[i])
					}
				}
				want, failure := enc.Counter(r).Count(t.Context(), shown)
				got, err := counter.Count(t.Context(), shown)
				if failure != nil {
					require.Error(t, err)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, want, got, "%s, seed %d, rollout %d: %q", name, seed, k, shown)
			}
		}
	}
}

// A context that the template rejects leaves the counter's memory of the previous one intact.
func TestCounterBehindRefusedContext(t *testing.T) {
	m := withTemplate(t, "{% for m in messages %}{% if m.content == 'no' %}{{ raise_exception('no') }}{% endif %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}")
	enc, err := tokenize.NewEncoder(m, tokenize.Options{})
	require.NoError(t, err)
	r := &rollout.Rollout{ID: "a", Messages: say("user: one", "user: two")}
	counter := enc.Counter(r)
	for _, shown := range [][]rollout.Message{say("user: a"), say("user: b", "user: one and more"), say("user: no"), say("user: c c c c", "user: another one")} {
		want, failure := enc.Counter(r).Count(t.Context(), shown)
		got, err := counter.Count(t.Context(), shown)
		require.Equal(t, failure == nil, err == nil)
		require.Equal(t, want, got, shown[0].Content)
	}
}

// BenchmarkCounter moves a window over a conversation of 200 steps.
func BenchmarkCounter(b *testing.B) {
	enc, err := tokenize.NewEncoder(embeddedModel(b), tokenize.Options{})
	require.NoError(b, err)
	var ms []rollout.Message
	for k := range 200 {
		ms = append(ms, rollout.Message{Role: rollout.RoleAssistant, Content: fmt.Sprintf("THOUGHT %d ", k) + strings.Repeat("let me look at the code ", 24)},
			rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprintf("out %d ", k) + strings.Repeat("def foo(x): return x + 1\n", 30)})
	}
	r := &rollout.Rollout{ID: "r"}
	counters := map[string]func() func([]rollout.Message) (int, error){
		"encoder": func() func([]rollout.Message) (int, error) {
			return func(ms []rollout.Message) (int, error) { return enc.Counter(r).Count(context.Background(), ms) }
		},
		"counter": func() func([]rollout.Message) (int, error) {
			c := enc.Counter(r)
			return func(ms []rollout.Message) (int, error) { return c.Count(context.Background(), ms) }
		},
	}
	for name, make := range counters {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				count := make()
				for k := 0; k+100 <= len(ms); k += 2 {
					_, err := count(ms[k : k+100])
					require.NoError(b, err)
				}
			}
		})
	}
}

// A context is counted as the template writes it, so recorded ids do not suffice.
func TestCountNeedsATemplate(t *testing.T) {
	definition, err := os.ReadFile(filepath.Join("embedded", "tokenizer.json"))
	require.NoError(t, err)
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: fstest.MapFS{"tokenizer.json": {Data: definition}}})
	require.NoError(t, err)
	e, err := tokenize.NewEncoder(m, tokenize.Options{})
	require.NoError(t, err)
	_, err = e.Counter(&rollout.Rollout{ID: "r"}).Count(t.Context(), say("user: hi"))
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, `rollout "r": the model has no chat template (add chat_template.jinja to its folder: a context is measured`)
}

// TestCounterOfGrowingRollout: a counter stays right while its rollout grows, with and without
// spare capacity in the messages' slice, for whole contexts and windows.
func TestCounterOfGrowingRollout(t *testing.T) {
	kit.OneGoroutine(t)
	models := templateModels(t)
	for i, name := range slices.Sorted(maps.Keys(models)) {
		enc, err := tokenize.NewEncoder(models[name], tokenize.Options{})
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(77, uint64(i)))
		whole := randomRollout(rng, true)
		for range 4 {
			whole.Messages = append(whole.Messages, randomRollout(rng, true).Messages...)
		}
		r := *whole
		r.Messages = nil
		counter := enc.Counter(&r)
		for k, m := range whole.Messages {
			if r.Messages = append(r.Messages, m); rng.IntN(4) == 0 {
				r.Messages = slices.Clip(r.Messages)
			}
			cut := rng.IntN(k + 1)
			for _, shown := range [][]rollout.Message{
				r.Messages, slices.Clone(r.Messages), r.Messages[:1:1], append(r.Messages[:1:1], r.Messages[cut:]...),
				append(append(r.Messages[:1:1], say("user: left out")...), r.Messages[cut:]...),
			} {
				want, failure := enc.Counter(whole).Count(t.Context(), shown)
				got, err := counter.Count(t.Context(), shown)
				if failure != nil {
					require.Error(t, err, name)
					continue
				}
				require.NoError(t, err, "%s, message %d", name, k)
				require.Equal(t, want, got, "%s, message %d", name, k)
			}
		}
	}
}
