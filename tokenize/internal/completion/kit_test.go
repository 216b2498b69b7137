package completion

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// turnExceptions are left out: DiffusionGemma puts the content of a message after the results of
// its calls, where no model can have sampled it, and DeepSeek V3 writes neither header nor text for
// an empty list of calls.
var turnExceptions = map[string]bool{
	"diffusion_gemma_training/tools_content_and_call/s0": true,
	"diffusion_gemma_training/tools_parallel/s0":         true,
	"diffusion_gemma_training/tools_multi_step/s0":       true,
	"diffusion_gemma_training/tool_then_user/s0":         true,
	"deepseekv3_training/tool_calls_empty/s0":            true,
}

// TestKitTurnsAgreeWithGenerationSpans compares Find, which uses no generation marks, with the
// marks of the patched training templates. These differences are correct:
//   - white space after the stop marker is a separator, not sampled;
//   - text of the generation prompt is prompt: some templates mark the role header (DeepSeek,
//     gpt-oss, Muse), its newline (Qwen2.5) or a prefilled reasoning opener (Qwen3.5, Nemotron,
//     GLM in its no-thinking mode);
//   - Phi-3 marks the </s> that ends the whole text;
//   - DiffusionGemma stops at <|tool_response> when it calls a tool;
//   - DeepSeek marks the end of a tool result, which the environment writes.
func TestKitTurnsAgreeWithGenerationSpans(t *testing.T) {
	kit.OneGoroutine(t)
	convs := kit.TemplateConversations(t)
	prompts := map[string]string{}
	checked := 0
	kitCases(t, func(c *kit.TemplateGolden, r *chat.Result, err error) {
		if err != nil || c.GenerationSpans == nil {
			return
		}
		tmpl := kitTemplate(t, c.Template)
		conv, in := prepared(t, convs[c.Conversation], !c.DropNullKeys), inputOf(t, &c.TemplateSetting)
		turns, err := Find(t.Context(), tmpl, conv, in, r, nil)
		require.NoError(t, err)
		key := fmt.Sprint(c.Template, c.Kwargs)
		if prompts[key] == "" {
			prompts[key] = promptOf(t, tmpl, in)
		}
		want := merge(r.Text, *c.GenerationSpans)
		got := merge(r.Text, ranges(turns))
		ok := len(want) == len(got)
		for i := 0; ok && i < len(want); i++ {
			w, g := want[i], got[i]
			if strings.HasPrefix(c.Template, "phi3") && r.Text[g[1]:w[1]] == "\n</s>" {
				w[1] = g[1]
			}
			if c.Template == "diffusion_gemma_training" {
				g[1] -= len(suffix(r.Text[g[0]:g[1]], "<|tool_response>"))
			}
			if strings.HasPrefix(c.Template, "deepseek") && r.Text[w[0]:g[0]] == "<｜tool▁outputs▁end｜>" {
				w[0] = g[0]
			}
			ok = w[1] == g[1] && w[0] <= g[0] && strings.Contains(prompts[key], r.Text[w[0]:g[0]])
		}
		checked++
		if turnExceptions[c.ID] {
			return
		}
		assert.True(t, ok, "%s\nwant %q\ngot  %q\nprompt %q\ntext %q", c.ID, pieces(r.Text, want), pieces(r.Text, got), prompts[key], r.Text)
	})
	assert.Equal(t, 1707, checked)
}

// promptOf returns the generation prompt of a template after a user message.
func promptOf(t *testing.T, tmpl *chat.Template, in chat.Input) string {
	t.Helper()
	conv, err := chat.NewConversation(chat.List(chat.Object(chat.Member{Key: "role", Value: chat.String("user")}, chat.Member{Key: "content", Value: chat.String("x")})), chat.Null(), chat.Null(), chat.ConversationOptions{})
	require.NoError(t, err)
	in.AddGenerationPrompt = false
	without, err := tmpl.Render(t.Context(), conv, in)
	require.NoError(t, err)
	in.AddGenerationPrompt = true
	with, err := tmpl.Render(t.Context(), conv, in)
	require.NoError(t, err)
	return with.Text[commonMarkers(with.Text, without.Text):]
}

func suffix(s, end string) string {
	if strings.HasSuffix(s, end) {
		return end
	}
	return ""
}

// merge joins adjacent ranges and drops white space at their end, which the training templates
// include and Find does not.
func merge(text string, spans [][2]int) [][2]int {
	var out [][2]int
	for _, s := range spans {
		s[1] = s[0] + len(strings.TrimRight(text[s[0]:s[1]], "\n "))
		if n := len(out); n > 0 && strings.TrimSpace(text[out[n-1][1]:s[0]]) == "" {
			out[n-1][1] = max(s[1], out[n-1][1])
			continue
		}
		if s[1] > s[0] {
			out = append(out, s)
		}
	}
	return out
}

func pieces(text string, spans [][2]int) []string {
	var out []string
	for _, s := range spans {
		out = append(out, text[s[0]:s[1]])
	}
	return out
}

// ranges returns the byte ranges of the replies.
func ranges(turns []Span) [][2]int {
	out := make([][2]int, len(turns))
	for i, t := range turns {
		out[i] = [2]int{t.Start, t.End}
	}
	return out
}
