package chat

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// Tools shared by several conversations render as if each conversation had its own copy, with the same origins.
func TestSharedTools(t *testing.T) {
	tools, err := ParseJSON([]byte(`[{"type":"function","function":{"name":"cat","description":"Print","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"lines":[1,null,true]}}}]`))
	require.NoError(t, err)
	shared := Recorded("tools", tools)
	for _, name := range []string{"qwen3", "gptoss", "llama3_1"} {
		tmpl := kitTemplate(t, name)
		for range 3 { // later renderings must not differ from the first
			var text []string
			var paths [][]string
			for _, tools := range []Value{tools, shared} {
				c, err := NewConversation(List(Object(Member{"role", String("user")}, Member{"content", String("Hi.")})), tools, Null(), ConversationOptions{})
				require.NoError(t, err)
				r, err := tmpl.Render(t.Context(), c, Input{Now: kit.TemplateClock})
				require.NoError(t, err)
				text = append(text, r.Text)
				var list []string
				for s := range r.Spans() {
					list = append(list, s.Field.Path())
				}
				paths = append(paths, list)
			}
			require.Equal(t, text[0], text[1], name)
			require.Equal(t, paths[0], paths[1], name)
			require.True(t, slices.Contains(paths[1], "/tools/0/function/name"), name)
		}
	}
}
