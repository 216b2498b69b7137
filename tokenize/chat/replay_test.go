package chat

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// sameRendering renders c with and without a Replay, reuses the memory of the result before the last, and compares
// the results.
type sameRendering struct {
	replay Replay
	spent  [2]*Result
}

func (s *sameRendering) check(t *testing.T, tmpl *Template, c *Conversation, in Input) {
	t.Helper()
	want, wantErr := tmpl.Render(t.Context(), c, in)
	in.Replay, in.Reuse = &s.replay, s.spent[0]
	got, err := tmpl.Render(t.Context(), c, in)
	s.spent[0] = nil
	if sameResult(t, want, got, wantErr, err) {
		s.spent[0], s.spent[1] = s.spent[1], got
	}
}

// sameResult requires that got equals want, or that both failed with the same error, and reports whether there is a
// result.
func sameResult(t *testing.T, want, got *Result, wantErr, err error) bool {
	t.Helper()
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error())
		return false
	}
	require.NoError(t, err)
	require.Equal(t, want.Text, got.Text)
	require.Equal(t, slices.Collect(want.Spans()), slices.Collect(got.Spans()))
	require.Equal(t, want.Generation, got.Generation)
	require.Len(t, got.Extents, len(want.Extents))
	for i := range want.Extents {
		require.Equal(t, want.Extents[i], got.Extents[i])
	}
	return true
}

// A growing conversation whose prompts are rendered in turn with a Replay gives the results of rendering each prompt
// from scratch: with every template, prefix, setting and window.
func TestReplayChangesNothing(t *testing.T) {
	convs := kit.TemplateConversations(t)
	var names []string
	for name := range convs {
		names = append(names, name)
	}
	slices.Sort(names)
	every := 3
	if testing.Short() {
		every = 10
	}
	i := 0
	for _, tmpl := range kitTemplates(t) {
		for _, name := range names {
			if i++; i%every != 0 {
				continue
			}
			c := prepared(t, convs[name], false)
			var s sameRendering
			in := Input{AddGenerationPrompt: true, Now: kit.TemplateClock, Kwargs: map[string]Value{"bos_token": String("<s>"), "eos_token": String("</s>")}}
			for n := 1; n <= c.Len(); n++ {
				s.check(t, tmpl, c.Prefix(n), in)
				if n%3 == 0 { // the whole conversation with its reply, twice
					in.AddGenerationPrompt = false
					s.check(t, tmpl, c.Prefix(n), in)
					s.check(t, tmpl, c.Prefix(n), in)
					in.AddGenerationPrompt = true
				}
				if n%4 == 0 {
					in.Kwargs["enable_thinking"] = Bool(n%8 == 0)
				}
			}
			for n := 2; n < c.Len(); n++ { // a window
				var numbers []int
				for k := range c.Len() {
					if k < 2 || k >= n {
						numbers = append(numbers, k)
					}
				}
				window, err := c.Select(numbers)
				require.NoError(t, err)
				s.check(t, tmpl, window, in)
			}
		}
	}
}

// The same as TestReplayChangesNothing for the conversation of an agent, with templates that look ahead, at the last
// message, or at the last question.
func TestReplayOfALongConversation(t *testing.T) {
	c := agentConversation(t)
	for _, name := range []string{"qwen3", "qwen3_instruct_2507", "llama3_1", "gptoss", "glm4moe", "phi3", "deepseekv3"} {
		tmpl := kitTemplate(t, name)
		var s sameRendering
		in := Input{AddGenerationPrompt: true, Now: kit.TemplateClock, Kwargs: map[string]Value{"bos_token": String("<s>")}}
		for n := 2; n <= c.Len(); n += 2 {
			s.check(t, tmpl, c.Prefix(n), in)
		}
		s.check(t, tmpl, c.Prefix(7), in)
		s.check(t, tmpl, c, in)
	}
}
