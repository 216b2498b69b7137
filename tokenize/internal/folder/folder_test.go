package folder

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// files returns a model folder with a tokenizer and the files in more.
func files(t *testing.T, more map[string]string) fstest.MapFS {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "embedded", "tokenizer.json"))
	require.NoError(t, err)
	out := fstest.MapFS{"tokenizer.json": {Data: b}}
	for name, text := range more {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestFaultsNameTheFile(t *testing.T) {
	_, err := Read(fstest.MapFS{"config.json": {Data: []byte("{}")}}, nil)
	require.ErrorContains(t, err, "tokenizer.json", "a folder without a tokenizer")
	var e *rollout.Error
	for name, text := range map[string]string{
		"tokenizer_config.json":   `{"eos_token": `,
		"generation_config.json":  `{"eos_token_id": [1,}`,
		"special_tokens_map.json": `[]`,
		"tokenizer.json":          "version https://git-lfs.github.com/spec/v1\n",
	} {
		_, err := Read(files(t, map[string]string{name: text}), nil)
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, name, e.Where.File)
	}
	f, err := Read(files(t, map[string]string{"tokenizer_config.json": `{"chat_template": 3}`}), nil)
	require.NoError(t, err)
	_, err = f.Templates()
	require.ErrorAs(t, err, &e)
	require.Equal(t, "tokenizer_config.json", e.Where.File)
}

func TestTemplatesByName(t *testing.T) {
	config := `{"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]}`
	for _, c := range []struct {
		why  string
		more map[string]string
		want map[string]Template
	}{
		{"a folder without a template", nil, map[string]Template{}},
		{"one text of the configuration", map[string]string{"tokenizer_config.json": `{"chat_template": "C"}`},
			map[string]Template{"default": {"C", "tokenizer_config.json"}}},
		{"one text of a processor", map[string]string{"chat_template.json": `{"chat_template": "P"}`}, map[string]Template{"default": {"P", "chat_template.json"}}},
		{"named ones of the configuration", map[string]string{"tokenizer_config.json": config},
			map[string]Template{"default": {"D", "tokenizer_config.json"}, "tool_use": {"T", "tokenizer_config.json"}}},
		{"files of their own replace those of the configuration", map[string]string{"tokenizer_config.json": config, "chat_template.jinja": "F", "additional_chat_templates/rag.jinja": "R"},
			map[string]Template{"default": {"F", "chat_template.jinja"}, "rag": {"R", "additional_chat_templates/rag.jinja"}}},
	} {
		f, err := Read(files(t, c.more), nil)
		require.NoError(t, err, c.why)
		got, err := f.Templates()
		require.NoError(t, err, c.why)
		require.Equal(t, c.want, got, c.why)
	}
}
