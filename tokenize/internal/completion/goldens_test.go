package completion

import (
	"encoding/json"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/chat"
)

func kitTemplate(t testing.TB, name string) *chat.Template {
	t.Helper()
	tmpl, err := chat.Compile(kit.TemplateSource(t, name), chat.Options{Name: name})
	require.NoError(t, err)
	return tmpl
}

// kitTemplates are the templates of the kit by name, in its order.
func kitTemplates(t testing.TB) iter.Seq2[string, *chat.Template] {
	t.Helper()
	return func(yield func(string, *chat.Template) bool) {
		for _, name := range kit.TemplateNames(t) {
			if !yield(name, kitTemplate(t, name)) {
				return
			}
		}
	}
}

func parse(t testing.TB, data json.RawMessage) chat.Value {
	t.Helper()
	if len(data) == 0 {
		return chat.Null()
	}
	v, err := chat.ParseJSON(data)
	require.NoError(t, err)
	return v
}

func prepared(t testing.TB, c *kit.TemplateConversation, keepNull bool) *chat.Conversation {
	t.Helper()
	conv, err := chat.NewConversation(parse(t, c.Messages), parse(t, c.Tools), parse(t, c.Documents), chat.ConversationOptions{KeepNull: keepNull})
	require.NoError(t, err)
	return conv
}

func inputOf(t testing.TB, s *kit.TemplateSetting) chat.Input {
	t.Helper()
	in := chat.Input{AddGenerationPrompt: s.AddGenerationPrompt, ContinueFinalMessage: s.ContinueFinalMessage, Now: kit.TemplateClock, Kwargs: map[string]chat.Value{}}
	for k, v := range s.Kwargs {
		in.Kwargs[k] = parse(t, v)
	}
	return in
}

// kitCases calls each for every golden with the engine's result.
func kitCases(t *testing.T, each func(c *kit.TemplateGolden, r *chat.Result, err error)) {
	convs := kit.TemplateConversations(t)
	templates := map[string]*chat.Template{}
	kit.Templates(t)
	for c := range kit.Lines[*kit.TemplateGolden](t, kit.Dir(t, "conformance", "templates", "goldens.jsonl.gz")) {
		if templates[c.Template] == nil {
			templates[c.Template] = kitTemplate(t, c.Template)
		}
		r, err := templates[c.Template].Render(t.Context(), prepared(t, convs[c.Conversation], !c.DropNullKeys), inputOf(t, &c.TemplateSetting))
		each(c, r, err)
	}
}
