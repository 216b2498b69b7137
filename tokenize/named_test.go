package tokenize_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Folders with several templates, each of which writes its own name, and what
// transformers 5.23.0 takes from them.
func TestNamedTemplates(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	named := func(name string) string { return name + ":{% for m in messages %}{{ m.content }}{% endfor %}" }
	list := func(names ...string) string {
		var l []map[string]string
		for _, n := range names {
			l = append(l, map[string]string{"name": n, "template": named(n)})
		}
		b, err := json.Marshal(map[string]any{"chat_template": l})
		require.NoError(t, err)
		return string(b)
	}
	for _, c := range []struct {
		why                string
		files              fstest.MapFS
		pick               string
		plain, tools, fail string
	}{
		{"one template serves both", fstest.MapFS{"chat_template.jinja": file(named("one"))}, "", "one:", "one:", ""},
		{"a list in the configuration", fstest.MapFS{"tokenizer_config.json": file(list("rag", "tool_use", "default"))}, "", "default:", "tool_use:", ""},
		{"texts by name", fstest.MapFS{"tokenizer_config.json": file(`{"chat_template": {"default": "default:{{ messages[1].content }}", "tool_use": "tool_use:{{ messages[1].content }}"}}`)}, "", "default:", "tool_use:", ""},
		{"a file beside the default one", fstest.MapFS{"chat_template.jinja": file(named("own")), "additional_chat_templates/README.md": file("-"), "additional_chat_templates/tool_use.jinja": file(named("tool_use"))}, "", "own:", "tool_use:", ""},
		{"files replace the configuration", fstest.MapFS{"chat_template.jinja": file(named("own")), "tokenizer_config.json": file(list("default", "tool_use"))}, "", "own:", "own:", ""},
		{"the one asked for", fstest.MapFS{"tokenizer_config.json": file(list("rag", "tool_use", "default"))}, "rag", "rag:", "rag:", ""},
		{"the default one asked for", fstest.MapFS{"tokenizer_config.json": file(list("tool_use", "default"))}, "default", "default:", "default:", ""},
		{"no default one", fstest.MapFS{"tokenizer_config.json": file(list("rag", "tool_use"))}, "", "", "", "take one of rag, tool_use"},
		{"no template of any kind", fstest.MapFS{"tokenizer_config.json": file(`{"chat_template": 3}`)}, "", "", "", "found 3"},
		{"a damaged one for tools", fstest.MapFS{"chat_template.jinja": file("x"), "additional_chat_templates/tool_use.jinja": file("{%")}, "", "", "", "additional_chat_templates/tool_use.jinja"},
	} {
		t.Run(c.why, func(t *testing.T) {
			definition, err := os.ReadFile(filepath.Join(kit.Dir(t, "conformance", "tokenizers"), "tiny_bytelevel.tokenizer.json"))
			require.NoError(t, err)
			c.files["tokenizer.json"] = &fstest.MapFile{Data: definition}
			m, err := tokenize.LoadWith(c.files, ".", tokenize.LoadOptions{Template: c.pick})
			if c.fail != "" {
				require.ErrorContains(t, err, c.fail)
				return
			}
			require.NoError(t, err)
			e, err := tokenize.NewEncoder(m, tokenize.Options{Mode: tokenize.Whole, Edges: tokenize.EdgesDocument})
			require.NoError(t, err)
			r := &rollout.Rollout{ID: "r", Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "hi"}, {Role: rollout.RoleAssistant, Content: "yo", Sampled: rollout.SampledByPolicy}}}
			digests := map[string]bool{}
			for _, want := range []string{c.plain, c.tools} {
				seqs, err := e.Encode(context.Background(), r)
				require.NoError(t, err)
				text, err := m.Tokenizer.Decode(seqs[0].IDs)
				require.NoError(t, err)
				require.Contains(t, text, want)
				digests[seqs[0].Template] = true
				r.Tools = []rollout.Tool{rollout.Tool(`{"name":"cat"}`)}
			}
			require.Equal(t, c.plain != c.tools, len(digests) == 2, "a row says which template wrote it")
			require.Equal(t, c.plain == c.tools, digests[m.TemplateDigest()], "two templates have a digest together")
		})
	}
}
