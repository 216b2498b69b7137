package chat

import (
	"encoding/json"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

func kitTemplate(t testing.TB, name string) *Template {
	t.Helper()
	tmpl, err := Compile(kit.TemplateSource(t, name), Options{Name: name})
	require.NoError(t, err)
	return tmpl
}

// kitTemplates yields the templates of the kit by name, in the kit's order.
func kitTemplates(t testing.TB) iter.Seq2[string, *Template] {
	t.Helper()
	return func(yield func(string, *Template) bool) {
		for _, name := range kit.TemplateNames(t) {
			if !yield(name, kitTemplate(t, name)) {
				return
			}
		}
	}
}

func parse(t testing.TB, data json.RawMessage) Value {
	t.Helper()
	if len(data) == 0 {
		return Null()
	}
	v, err := ParseJSON(data)
	require.NoError(t, err)
	return v
}

func prepared(t testing.TB, c *kit.TemplateConversation, keepNull bool) *Conversation {
	t.Helper()
	conv, err := NewConversation(parse(t, c.Messages), parse(t, c.Tools), parse(t, c.Documents), ConversationOptions{KeepNull: keepNull})
	require.NoError(t, err)
	return conv
}

func inputOf(t testing.TB, s *kit.TemplateSetting) Input {
	t.Helper()
	in := Input{AddGenerationPrompt: s.AddGenerationPrompt, ContinueFinalMessage: s.ContinueFinalMessage, Now: kit.TemplateClock, Kwargs: map[string]Value{}}
	for k, v := range s.Kwargs {
		in.Kwargs[k] = parse(t, v)
	}
	return in
}

// kitCases calls each for every golden with the engine's result.
func kitCases(t *testing.T, each func(c *kit.TemplateGolden, r *Result, err error)) {
	convs := kit.TemplateConversations(t)
	templates := map[string]*Template{}
	kit.Templates(t)
	for c := range kit.Lines[*kit.TemplateGolden](t, kit.Dir(t, "conformance", "templates", "goldens.jsonl.gz")) {
		if templates[c.Template] == nil {
			templates[c.Template] = kitTemplate(t, c.Template)
		}
		r, err := templates[c.Template].Render(t.Context(), prepared(t, convs[c.Conversation], !c.DropNullKeys), inputOf(t, &c.TemplateSetting))
		each(c, r, err)
	}
}
