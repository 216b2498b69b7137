package tokenize_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Folders with several templates, each of which writes its own name: the choice is that of
// transformers 5.23.0.
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
		{"none for rollouts without tools", fstest.MapFS{"tokenizer_config.json": file(list("rag", "tool_use"))}, "", "", "tool_use:", ""},
		{"the same in files", fstest.MapFS{"additional_chat_templates/tool_use.jinja": file(named("tool_use"))}, "", "", "tool_use:", ""},
		{"the one for tools asked for", fstest.MapFS{"tokenizer_config.json": file(list("rag", "tool_use"))}, "tool_use", "tool_use:", "tool_use:", ""},
		{"neither default nor for tools", fstest.MapFS{"tokenizer_config.json": file(list("rag", "plan"))}, "", "", "", ""},
		{"no such name", fstest.MapFS{"tokenizer_config.json": file(list("rag", "tool_use"))}, "default", "", "", "take one of rag, tool_use"},
		{"no template at all to name", fstest.MapFS{}, "rag", "", "", `no chat template is named "rag"`},
		{"no template of any kind", fstest.MapFS{"tokenizer_config.json": file(`{"chat_template": 3}`)}, "", "", "", "found 3"},
		{"a damaged one for tools", fstest.MapFS{"chat_template.jinja": file("x"), "additional_chat_templates/tool_use.jinja": file("{%")}, "", "", "", "additional_chat_templates/tool_use.jinja"},
	} {
		t.Run(c.why, func(t *testing.T) {
			definition, err := os.ReadFile(filepath.Join(kit.Dir(t, "conformance", "tokenizers"), "tiny_bytelevel.tokenizer.json"))
			require.NoError(t, err)
			c.files["tokenizer.json"] = &fstest.MapFile{Data: definition}
			m, err := tokenize.Load(".", tokenize.LoadOptions{FS: c.files, Template: c.pick})
			if c.fail != "" {
				require.ErrorContains(t, err, c.fail)
				return
			}
			require.NoError(t, err)
			e, err := tokenize.NewEncoder(m, tokenize.Options{Mode: tokenize.Whole, Edges: "document"})
			require.NoError(t, err)
			r := &rollout.Rollout{ID: "r", Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "hi"}, {Role: rollout.RoleAssistant, Content: "yo", Sampled: rollout.SampledByPolicy}}}
			for i, want := range []string{c.plain, c.tools} {
				if r.Tools = nil; i > 0 {
					r.Tools = []rollout.Tool{rollout.Tool(`{"name":"cat"}`)}
				}
				seqs, _, err := e.Encode(t.Context(), r)
				if want == "" {
					refusesNamed(t, m, r, err)
					continue
				}
				require.NoError(t, err)
				text, err := m.Tokenizer.Decode(seqs[0].IDs)
				require.NoError(t, err)
				require.Contains(t, text, want)
				require.Equal(t, m.TemplateDigest(), seqs[0].Template, "rows with tools and without fit into one file")
			}
		})
	}
}

// refusesNamed requires that all rows of r that need its text are rejected.
func refusesNamed(t *testing.T, m *tokenize.Model, r *rollout.Rollout, err error) {
	t.Helper()
	errs := map[string]error{"whole": err}
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
		e, err := tokenize.NewEncoder(m, tokenize.Options{Mode: mode})
		require.NoError(t, err)
		_, _, errs[string(mode)] = e.Encode(t.Context(), r)
		_, errs["count"] = e.Counter(r).Count(t.Context(), r.Messages)
		captured := *r
		captured.Turns = []rollout.Turn{{Message: 1, Prompt: rollout.PromptIDs{Add: []rollout.TokenID{1}}, Output: []rollout.TokenID{2, 3}}}
		seqs, report, err := e.Encode(t.Context(), &captured)
		require.NoError(t, err, "recorded ids need no template")
		require.Equal(t, []rollout.TokenID{1, 2, 3}, seqs[0].IDs)
		require.Equal(t, 1, report.Unattributed, "but nothing tells which message is where in the prompt")
	}
	for way, err := range errs {
		require.ErrorIs(t, err, rollout.KindTemplate, way)
		e, ok := errors.AsType[*rollout.Error](err)
		require.True(t, ok)
		require.Equal(t, "r", e.Where.Rollout, way)
		want := "rollouts without tools take a chat template named default; the model folder has only "
		if len(r.Tools) > 0 {
			want = "rollouts with tools take a chat template named tool_use or default; the model folder has only "
		}
		require.Contains(t, e.Msg, want, way)
		require.Contains(t, e.Fix, "LoadOptions.Template", way)
	}
}

// A folder's digest depends on the templates it uses, and on which of them is for tools.
func TestTemplateDigest(t *testing.T) {
	definition, err := os.ReadFile(filepath.Join("embedded", "tokenizer.json"))
	require.NoError(t, err)
	digests := map[string]string{}
	for _, row := range []struct{ name, plain, tools, pick string }{
		{"default", "a", "", ""},
		{"default for all", "a", "a", "default"},
		{"tools alone", "", "a", ""},
		{"both", "a", "b", ""},
		{"both, the other way round", "b", "a", ""},
		{"alike", "a", "a", ""},
	} {
		files := fstest.MapFS{"tokenizer.json": {Data: definition}}
		for file, text := range map[string]string{"chat_template.jinja": row.plain, "additional_chat_templates/tool_use.jinja": row.tools} {
			if text != "" {
				files[file] = &fstest.MapFile{Data: []byte(text)}
			}
		}
		m, err := tokenize.Load(".", tokenize.LoadOptions{FS: files, Template: row.pick})
		require.NoError(t, err)
		require.Empty(t, digests[m.TemplateDigest()], row.name)
		if row.name != "default" { // its replacement has the same digest
			digests[m.TemplateDigest()] = row.name
		}
	}
	require.Len(t, digests, 5)
}

// TemplateText replaces every template of the folder.
func TestTemplateText(t *testing.T) {
	definition, err := os.ReadFile(filepath.Join("embedded", "tokenizer.json"))
	require.NoError(t, err)
	files := fstest.MapFS{"tokenizer.json": {Data: definition}, "chat_template.jinja": {Data: []byte("{%")}, "additional_chat_templates/tool_use.jinja": {Data: []byte("{%")}}
	load := func(o tokenize.LoadOptions) (*tokenize.Model, error) {
		o.FS = files
		return tokenize.Load(".", o)
	}
	m, err := load(tokenize.LoadOptions{TemplateText: chatML})
	require.NoError(t, err)
	require.Equal(t, withTemplate(t, chatML).TemplateDigest(), m.TemplateDigest())
	ids, err := m.GenerationPrompt(t.Context())
	require.NoError(t, err)
	require.Equal(t, "<|im_start|>assistant\n", decode(t, m, ids))
	_, err = load(tokenize.LoadOptions{TemplateText: "\n{% x"})
	e, ok := errors.AsType[*rollout.Error](err)
	require.True(t, ok)
	require.Equal(t, rollout.Where{Line: 2, Column: 4}, rollout.Where{File: e.Where.File, Line: e.Where.Line, Column: e.Where.Column}, "the file is the caller's")
	_, err = load(tokenize.LoadOptions{Template: "rag", TemplateText: chatML})
	require.ErrorIs(t, err, rollout.KindInput)
}

// Probes of a model use the template that it has, with a conversation that this template accepts.
func TestProbesOfNamedTemplates(t *testing.T) {
	definition, err := os.ReadFile(filepath.Join("embedded", "tokenizer.json"))
	require.NoError(t, err)
	needsTools := "{% if not tools %}{{ raise_exception('no tools') }}{% endif %}" + chatML
	for name, file := range map[string]string{"one for tools alone": "additional_chat_templates/tool_use.jinja", "a default one that needs tools": "chat_template.jinja"} {
		m, err := tokenize.Load(".", tokenize.LoadOptions{FS: fstest.MapFS{"tokenizer.json": {Data: definition}, file: {Data: []byte(needsTools)}}})
		require.NoError(t, err, name)
		ids, err := m.GenerationPrompt(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, "<|im_start|>assistant\n", decode(t, m, ids), name)
		_, err = m.StopRewrites(t.Context())
		require.NoError(t, err, name)
	}
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: fstest.MapFS{"tokenizer.json": {Data: definition}, "chat_template.jinja": {Data: []byte("{{ raise_exception('never') }}")}}})
	require.NoError(t, err)
	_, err = m.GenerationPrompt(t.Context())
	require.ErrorContains(t, err, "never")
}
