package chat

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// mixedConversation draws turns that end in all kinds of ways: with text, with one
// call or two, with arguments of all shapes or without any; results with a name of
// their own or without, and empty texts.
func mixedConversation(t *testing.T, rng *rand.Rand, turns int) *Conversation {
	t.Helper()
	m := func(k string, v Value) Member { return Member{k, v} }
	pick := func(list ...Value) Value { return list[rng.IntN(len(list))] }
	text := func() Value {
		return pick(String("look at it"), String("two\nlines"), String("x"), String(" padded "), String("bash"), String(""))
	}
	var list []Value
	if rng.IntN(2) == 0 {
		list = append(list, Object(m("role", String("system")), m("content", text())))
	}
	list = append(list, Object(m("role", String("user")), m("content", text())))
	for k := range turns {
		reply := []Member{m("role", String("assistant")), m("content", text())}
		if rng.IntN(4) == 0 {
			reply = append(reply, m("reasoning_content", text()))
		}
		var calls, results []Value
		for n := range rng.IntN(3) {
			id, name := m("id", String(fmt.Sprintf("call%02d%03d", n, k))), pick(String("bash"), String("ls"))
			args := pick(Object(), Object(m("command", text())), Object(m("a", Int(1)), m("b", Bool(true))), Object(m("list", List()), m("deep", Object(m("x", List(String("y")))))), Object(m("list", List(Int(1), Object()))))
			calls = append(calls, Object(id, m("type", String("function")), m("function", Object(m("name", name), m("arguments", args)))))
			result := []Member{m("role", String("tool")), m("tool_call_id", id.Value), m("content", text())}
			if rng.IntN(2) == 0 {
				result = append(result, m("name", name))
			}
			results = append(results, Object(result...))
		}
		if calls != nil {
			reply = append(reply, m("tool_calls", List(calls...)))
		}
		list = append(append(list, Object(reply...)), results...)
		if calls == nil || rng.IntN(4) == 0 {
			list = append(list, Object(m("role", String("user")), m("content", text())))
		}
	}
	c, err := NewConversation(List(list...), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	return c
}

// Where a conversation goes on after the prompt of a turn, and after its answer, the
// turn is what lies between, without any stop text being given. These differ:
//   - Phi-3 ends the whole text with </s>;
//   - DiffusionGemma has no generation prompt after a tool result, but a header.
func TestTurnsAreAnswers(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 31
	k, checked := uint64(0), 0
	for name, tmpl := range kitTemplates(t) {
		rng := rand.New(rand.NewPCG(seed, k))
		k++
		in := Input{Now: kitClock, Kwargs: map[string]Value{"bos_token": String("<s>"), "eos_token": String("</s>")}}
		asking := in
		asking.AddGenerationPrompt = true
		for j := range 40 {
			c := mixedConversation(t, rng, 4)
			whole, err := tmpl.Render(t.Context(), c, in)
			if err != nil {
				continue
			}
			list, err := tmpl.Turns(t.Context(), c, in, whole, TurnOptions{})
			require.NoError(t, err)
			turns := map[int]Turn{}
			for _, turn := range list {
				turns[turn.Message] = turn
			}
			for i := range c.Len() {
				if c.Role(i) != "assistant" {
					continue
				}
				asked, err := tmpl.Render(t.Context(), c.Prefix(i), asking)
				if err != nil {
					continue
				}
				answered, err := tmpl.Render(t.Context(), c.Prefix(i+1), in)
				if err != nil {
					continue
				}
				text := strings.TrimRight(answered.Text, "\n ")
				if strings.HasPrefix(name, "phi3") {
					text = strings.TrimRight(strings.TrimSuffix(text, "</s>"), "\n ")
				}
				if !strings.HasPrefix(whole.Text, text) || !strings.HasPrefix(text, asked.Text) || len(text) == len(asked.Text) {
					continue
				}
				got, want := turns[i], text[len(asked.Text):]
				if strings.HasPrefix(name, "diffusion_gemma") {
					want = strings.TrimPrefix(want, "<|turn>model\n")
				}
				checked++
				require.Equal(t, want, whole.Text[got.Start:got.End], "%s, seed %d, conversation %d, message %d of %q", name, seed, j, i, whole.Text)
				require.Equal(t, len(text), got.End)
			}
		}
	}
	require.Greater(t, checked, 5000)
	t.Logf("%d turns", checked)
}
