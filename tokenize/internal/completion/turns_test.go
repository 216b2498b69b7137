package completion

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// mixedConversation draws turns that end in all kinds of ways: with text, with one or two calls,
// with arguments of all shapes or without any; results with or without a name, and empty texts.
func mixedConversation(t *testing.T, rng *rand.Rand, turns int) *chat.Conversation {
	t.Helper()
	m := func(k string, v chat.Value) chat.Member { return chat.Member{Key: k, Value: v} }
	pick := func(list ...chat.Value) chat.Value { return list[rng.IntN(len(list))] }
	text := func() chat.Value {
		return pick(chat.String("look at it"), chat.String("two\nlines"), chat.String("x"), chat.String(" padded "), chat.String("bash"), chat.String(""))
	}
	var list []chat.Value
	if rng.IntN(2) == 0 {
		list = append(list, chat.Object(m("role", chat.String("system")), m("content", text())))
	}
	list = append(list, chat.Object(m("role", chat.String("user")), m("content", text())))
	for k := range turns {
		reply := []chat.Member{m("role", chat.String("assistant")), m("content", text())}
		if rng.IntN(4) == 0 {
			reply = append(reply, m("reasoning_content", text()))
		}
		var calls, results []chat.Value
		for n := range rng.IntN(3) {
			id, name := m("id", chat.String(fmt.Sprintf("call%02d%03d", n, k))), pick(chat.String("bash"), chat.String("ls"))
			args := pick(chat.Object(), chat.Object(m("command", text())), chat.Object(m("a", chat.Int(1)), m("b", chat.Bool(true))), chat.Object(m("list", chat.List()), m("deep", chat.Object(m("x", chat.List(chat.String("y")))))), chat.Object(m("list", chat.List(chat.Int(1), chat.Object()))))
			calls = append(calls, chat.Object(id, m("type", chat.String("function")), m("function", chat.Object(m("name", name), m("arguments", args)))))
			result := []chat.Member{m("role", chat.String("tool")), m("tool_call_id", id.Value), m("content", text())}
			if rng.IntN(2) == 0 {
				result = append(result, m("name", name))
			}
			results = append(results, chat.Object(result...))
		}
		if calls != nil {
			reply = append(reply, m("tool_calls", chat.List(calls...)))
		}
		list = append(append(list, chat.Object(reply...)), results...)
		if calls == nil || rng.IntN(4) == 0 {
			list = append(list, chat.Object(m("role", chat.String("user")), m("content", text())))
		}
	}
	c, err := chat.NewConversation(chat.List(list...), chat.Null(), chat.Null(), chat.ConversationOptions{})
	require.NoError(t, err)
	return c
}

// If a conversation continues with the prompt of a turn, and then with its answer, the turn is the
// text in between, without any stop text being given. Exceptions:
//   - Phi-3 ends the whole text with </s>;
//   - DiffusionGemma has no generation prompt after a tool result, but a header.
func TestTurnsAreAnswers(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 31
	k, checked := uint64(0), 0
	for name, tmpl := range kitTemplates(t) {
		rng := rand.New(rand.NewPCG(seed, k))
		k++
		in := chat.Input{Now: kit.TemplateClock, Kwargs: map[string]chat.Value{"bos_token": chat.String("<s>"), "eos_token": chat.String("</s>")}}
		asking := in
		asking.AddGenerationPrompt = true
		for j := range 40 {
			c := mixedConversation(t, rng, 4)
			whole, err := tmpl.Render(t.Context(), c, in)
			if err != nil {
				continue
			}
			list, err := Find(t.Context(), tmpl, c, in, whole, nil)
			require.NoError(t, err)
			turns := map[int]Span{}
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
