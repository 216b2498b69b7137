package chat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// agentConversation returns a tool conversation of 30 assistant turns, about 33 kB of text;
// internal/oracle/bench_chat.py makes the same one.
func agentConversation(t testing.TB) *Conversation {
	t.Helper()
	m := func(k string, v Value) Member { return Member{k, v} }
	messages := []Value{Object(m("role", String("system")), m("content", String(strings.Repeat("You are a software engineering agent. ", 8))))}
	for i := range 30 {
		if i%5 == 0 {
			text := fmt.Sprintf("Turn %d: please look at file src/module_%d.py and tell me what is wrong. ", i, i)
			messages = append(messages, Object(m("role", String("user")), m("content", String(strings.Repeat(text, 3)))))
		} else {
			messages = append(messages, Object(m("role", String("tool")), m("tool_call_id", String(fmt.Sprintf("call%05d", i))), m("name", String("bash")),
				m("content", String(strings.Repeat(fmt.Sprintf("line %d: def f(x): return x + 1\n", i), 30)))))
		}
		if i%5 == 4 {
			messages = append(messages, Object(m("role", String("assistant")), m("content", String(strings.Repeat("The bug is in the loop. ", 10)))))
			continue
		}
		arguments := Object(m("command", String(fmt.Sprintf("cat src/module_%d.py | head -50", i))), m("timeout", Int(30)))
		call := Object(m("id", String(fmt.Sprintf("call%05d", i+1))), m("type", String("function")),
			m("function", Object(m("name", String("bash")), m("arguments", arguments))))
		messages = append(messages, Object(m("role", String("assistant")), m("content", String(strings.Repeat("I will look at it now. ", 4))), m("tool_calls", List(call))))
	}
	tools, err := ParseJSON([]byte(`[{"type":"function","function":{"name":"bash","description":"Run a shell command","parameters":{"type":"object","properties":{"command":{"type":"string","description":"the command"},"timeout":{"type":"integer"}},"required":["command"]}}}]`))
	require.NoError(t, err)
	c, err := NewConversation(List(messages...), tools, Null(), ConversationOptions{})
	require.NoError(t, err)
	return c
}

// BenchmarkRender renders a conversation repeatedly ("provenance", and "plain" without it). Each result reuses the
// memory of the one before, as in an Encoder with whole conversations and as with Python's allocator for Jinja; in
// "kept" each result has its own memory. "first" renders each conversation once, right after it is prepared; "cold"
// does so after 400 others. The time to prepare a conversation is not measured.
func BenchmarkRender(b *testing.B) {
	for _, name := range []string{"qwen3", "llama3_1", "gptoss"} {
		tmpl := kitTemplate(b, name)
		for _, mode := range []struct {
			name  string
			kept  bool
			first bool
			cold  bool
		}{{name: "provenance"}, {name: "kept", kept: true}, {name: "first", first: true}, {name: "cold", cold: true}} {
			b.Run(name+"/"+mode.name, func(b *testing.B) {
				const block = 400
				in := Input{AddGenerationPrompt: true, Now: kit.TemplateClock, Kwargs: map[string]Value{"bos_token": String("<s>"), "eos_token": String("</s>")}}
				c := agentConversation(b)
				timed := func(list ...*Conversation) time.Duration {
					start := kit.CPUTime()
					for _, c := range list {
						r, err := tmpl.Render(b.Context(), c, in)
						if err != nil || len(r.Text) < 30000 {
							b.Fatal(err, len(r.Text))
						}
						if !mode.kept {
							in.Reuse = r
						}
					}
					return kit.CPUTime() - start
				}
				b.ReportAllocs()
				best := time.Duration(math.MaxInt64)
				for b.Loop() {
					var sum time.Duration
					list := slices.Repeat([]*Conversation{c}, block)
					for i := range list {
						switch {
						case mode.first:
							sum += timed(agentConversation(b))
						case mode.cold:
							list[i] = agentConversation(b)
						}
					}
					if !mode.first {
						sum = timed(list...)
					}
					best = min(best, sum)
				}
				b.ReportMetric(float64(best.Nanoseconds())/block, "cpu-ns/render")
			})
		}
	}
}

// BenchmarkPrompts renders the 30 prompts of the conversation in turn, as an Encoder does: "each" from the first
// message, "replay" with a Replay. With "questions" the tool results are user messages, as some harnesses write them.
func BenchmarkPrompts(b *testing.B) {
	for _, name := range []string{"qwen3", "llama3_1", "gptoss"} {
		tmpl := kitTemplate(b, name)
		for _, mode := range []string{"each", "replay", "questions/each", "questions/replay"} {
			b.Run(name+"/"+mode, func(b *testing.B) {
				c := agentConversation(b)
				if strings.HasPrefix(mode, "questions") {
					var messages []Value
					for i := range c.Len() {
						message := c.messages.Items[i].(*value.Dict)
						role := map[string]string{"system": "system", "assistant": "assistant"}[c.Role(i)]
						messages = append(messages, Object(Member{"role", String(cmp.Or(role, "user"))}, Member{"content", Value{message.GetString("content")}}))
					}
					var err error
					c, err = NewConversation(List(messages...), Null(), Null(), ConversationOptions{})
					require.NoError(b, err)
				}
				in := Input{AddGenerationPrompt: true, Now: kit.TemplateClock, Kwargs: map[string]Value{"bos_token": String("<s>"), "eos_token": String("</s>")}}
				var spent [2]*Result
				best := time.Duration(math.MaxInt64)
				for b.Loop() {
					start := kit.CPUTime()
					const rollouts = 20
					for range rollouts {
						if in.Replay = nil; strings.HasSuffix(mode, "replay") {
							in.Replay = &Replay{}
						}
						for n := 2; n < c.Len(); n += 2 {
							in.Reuse = spent[0]
							r, err := tmpl.Render(b.Context(), c.Prefix(n), in)
							if err != nil {
								b.Fatal(err)
							}
							spent[0], spent[1] = spent[1], r
						}
					}
					best = min(best, (kit.CPUTime()-start)/rollouts)
				}
				b.ReportMetric(float64(best.Nanoseconds()), "cpu-ns/rollout")
			})
		}
	}
}

func BenchmarkNewConversation(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		agentConversation(b)
	}
}

func BenchmarkCompile(b *testing.B) {
	src := kitTemplate(b, "gptoss").Source()
	for b.Loop() {
		if _, err := Compile(src, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
