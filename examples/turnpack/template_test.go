package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// namedDir returns a model folder with named templates; each writes its name before the
// conversation.
func namedDir(t *testing.T, names ...string) string {
	t.Helper()
	return modelDir(t, func(dir string) {
		text, err := os.ReadFile(filepath.Join(dir, "chat_template.jinja"))
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(dir, "chat_template.jinja")))
		require.NoError(t, os.Mkdir(filepath.Join(dir, "additional_chat_templates"), 0o755))
		for _, name := range names {
			path := filepath.Join(dir, "additional_chat_templates", name+".jinja")
			if name == "default" {
				path = filepath.Join(dir, "chat_template.jinja")
			}
			require.NoError(t, os.WriteFile(path, []byte("{{ '["+name+"]' }}"+string(text)), 0o644))
		}
	})
}

// toolsDump writes two rollouts with tools and one without.
func toolsDump(t *testing.T) string {
	t.Helper()
	const tools = `, "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]}`
	return dump(t, strings.TrimSuffix(chatLine("with", true), "}")+tools, strings.TrimSuffix(chatLine("too", false), "}")+tools, chatLine("without", false))
}

// Model folders with named templates work from conversion to the commands that read the
// batch.
func TestNamedTemplates(t *testing.T) {
	kit.Long(t)
	in := toolsDump(t)
	for _, c := range []struct {
		reason    string
		names     []string
		flags     []string
		code      int
		with, not string // prefix of rows with and without tools; "" if there are none
		says      string
	}{
		{"one for tools beside the default one", []string{"default", "tool_use"}, nil, 0, "[tool_use]", "[default]", "rows                   3"},
		{"the one for tools alone", []string{"rag", "tool_use"}, nil, exitLeftOut, "[tool_use]", "", "rollouts without tools take a chat template named default; the model folder has only rag, tool_use"},
		{"the one for tools alone, for all", []string{"rag", "tool_use"}, []string{"--template", "tool_use"}, 0, "[tool_use]", "[tool_use]", "rows                   3"},
		{"another one", []string{"rag", "tool_use"}, []string{"--template", "rag"}, 0, "[rag]", "[rag]", "rows                   3"},
		{"none that fits", []string{"rag"}, nil, exitFailed, "", "", "rollouts with tools take a chat template named tool_use or default; the model folder has only rag"},
		{"no such name", []string{"rag"}, []string{"--template", "plan"}, exitFailed, "", "", `no chat template is named "plan" (take one of rag)`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			model, out := namedDir(t, c.names...), filepath.Join(t.TempDir(), "batch")
			convert := append([]string{"convert", "--model", model, "--in", in, "--out", out}, c.flags...)
			code, stdout, stderr := call(t, convert...)
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stdout+stderr, c.says)
			if c.with == "" {
				return
			}
			for row, want := range []string{c.with, c.with, c.not} {
				if want == "" {
					continue
				}
				_, stdout, stderr := call(t, append([]string{"show", out, string(rune('0' + row)), "--model", model, "--token", "0"}, c.flags...)...)
				require.Contains(t, stdout, "none: the chat template wrote it", stderr)
				_, stdout, _ = call(t, "show", out, string(rune('0'+row)), "--model", model)
				require.Contains(t, stdout, want)
			}
			code, stdout, stderr = call(t, append([]string{"audit", out, "--model", model}, c.flags...)...)
			require.Zero(t, code, stdout+stderr)
			code, _, stderr = call(t, append([]string{"view", out, "--model", model}, c.flags...)...)
			require.Zero(t, code, stderr)

			code, stdout, stderr = call(t, convert...)
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stdout, "already complete")
			other := []string{"--template", "tool_use"}
			if c.flags != nil {
				other = nil
			}
			code, _, stderr = call(t, append([]string{"convert", "--model", model, "--in", in, "--out", out}, other...)...)
			require.Equal(t, exitFailed, code)
			require.Contains(t, stderr, "--model or --template gives another chat template")
		})
	}
}

// A template file replaces the templates of the folder in all commands.
func TestTemplateFile(t *testing.T) {
	model, in, out := namedDir(t, "default"), toolsDump(t), filepath.Join(t.TempDir(), "batch")
	own := filepath.Join(namedDir(t, "own"), "additional_chat_templates", "own.jinja")
	code, _, stderr := call(t, "convert", "--model", model, "--template", own, "--in", in, "--out", out)
	require.Zero(t, code, stderr)
	_, stdout, _ := call(t, "show", out, "--model", model)
	require.Contains(t, stdout, "[own]")
	code, _, stderr = call(t, "show", out, "--model", model, "--token", "0")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "the --template")
	code, stdout, stderr = call(t, "show", out, "--model", model, "--token", "0", "--template", own)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "none: the chat template wrote it")
}

// Recorded ids become rows with any template. With a template that does not explain them,
// the command reports their sources as unknown.
func TestPromptsOfOtherText(t *testing.T) {
	kit.Long(t)
	tutorial := filepath.Join("..", "tutorial")
	dumps := filepath.Join(tutorial, "dumps")
	named := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.CopyFS(named, os.DirFS(filepath.Join(tutorial, "model"))))
	require.NoError(t, os.Mkdir(filepath.Join(named, "additional_chat_templates"), 0o755))
	template := filepath.Join(named, "additional_chat_templates", "tool_use.jinja")
	require.NoError(t, os.Rename(filepath.Join(named, "chat_template.jinja"), template))
	other := filepath.Join(t.TempDir(), "other.jinja")
	require.NoError(t, os.WriteFile(other, []byte("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"), 0o644))
	const unknown = "message    unknown: the engine's ids spell another text"
	for _, c := range []struct {
		reason string
		flags  []string
		plain  bool // the template explains the prompts
	}{
		{"the template of the run", []string{"--template", template}, true},
		{"another one", []string{"--template", other}, false},
		{"none for rollouts without tools", nil, false},
	} {
		out := filepath.Join(t.TempDir(), "batch")
		flags := append([]string{"--model", named}, c.flags...)
		code, stdout, stderr := call(t, append([]string{"convert", "--in", dumps, "--out", out}, flags...)...)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, "100.0 % of them trained exactly as recorded", c.reason)
		require.Equal(t, !c.plain, strings.Contains(stdout, "prompts of other text  72 of 72 turns"), "%s: %s", c.reason, stdout)
		code, stdout, stderr = call(t, append([]string{"show", out, "0", "--token", "60"}, flags...)...)
		require.Zero(t, code, stderr)
		require.Equal(t, !c.plain, strings.Contains(stdout, unknown), "%s: %s", c.reason, stdout)
		require.Contains(t, stdout, "not trained: the policy read it", c.reason)
	}
}
