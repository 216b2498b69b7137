package tokenize_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize"
)

// withTemplate is the embedded model with another template.
func withTemplate(t testing.TB, template string) *tokenize.Model {
	t.Helper()
	fs := fstest.MapFS{"chat_template.jinja": {Data: []byte(template)}}
	for _, f := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := os.ReadFile(filepath.Join("embedded", f))
		require.NoError(t, err)
		fs[f] = &fstest.MapFile{Data: b}
	}
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: fs})
	require.NoError(t, err)
	return m
}

const chatML = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

func TestGenerationPrompt(t *testing.T) {
	m := embeddedModel(t)
	ids, err := m.GenerationPrompt(t.Context())
	require.NoError(t, err)
	require.Equal(t, "<|im_start|>assistant\n", decode(t, m, ids))
	ids, err = withTemplate(t, `{% for m in messages %}{{ m.content }}{% endfor %}`).GenerationPrompt(t.Context())
	require.NoError(t, err)
	require.Nil(t, ids)
}
