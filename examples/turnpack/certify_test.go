package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/certify"
)

func TestCertifyExitCodes(t *testing.T) {
	kit.Long(t)
	template := func(text string) func(string) {
		return func(dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(text), 0o644))
		}
	}
	toolUse := func(text string) func(string) {
		return func(dir string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "additional_chat_templates"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "additional_chat_templates", "tool_use.jinja"), []byte(text), 0o644))
		}
	}
	const turns = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
	const prompted = turns + "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	for _, c := range []struct {
		name, mode string
		edit       func(dir string)
		code       int
		says       string
	}{
		{"holds", "merged", nil, 0, "stop_token        * holds"},
		{"a property fails that no mode needs", "perstep", template(strings.Replace(prompted, "m.content", "m.content|trim", 1)), 0, "content_verbatim    fails"},
		{"no generation prompt", "merged", template(turns), 1, "generation_prompt * fails"},
		{"no generation prompt, per step", "perstep", template(turns), 1, "generation_prompt * fails"},
		{"no generation prompt, whole", "whole", template(turns), 0, "generation_prompt   fails"},
		{"no stop token", "whole", template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"), 1, "stop_token        * fails"},
		{"rollouts with tools have another one", "merged", toolUse(prompted), 0, "template tool_use, for rollouts with tools\n"},
		{"and it has no generation prompt", "merged", toolUse(turns), 1, "generation_prompt * fails"},
		{"none for rollouts without tools", "merged", func(dir string) {
			toolUse(prompted)(dir)
			require.NoError(t, os.Remove(filepath.Join(dir, "chat_template.jinja")))
		}, 0, "no template default: the text of rollouts without tools is refused\n\ntemplate tool_use, for rollouts with tools\n"},
		{"a template that refuses all messages", "merged", template("{{ raise_exception('no') }}"), 1, "lacks or refuses to show: stop_token, generation_prompt"},
		{"no template", "merged", func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "chat_template.jinja"))) }, 2, "no chat template"},
		{"a template that is none", "merged", template("{% for %}"), 2, "chat_template.jinja"},
		{"no tokenizer", "merged", func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "tokenizer.json"))) }, 2, "no tokenizer.json"},
		{"no such mode", "both", nil, 2, "--mode"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := call(t, "certify", "--mode", c.mode, "--model", modelDir(t, c.edit))
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stdout+stderr, c.says)
			if c.mode == "both" {
				return
			}
			for _, line := range strings.Split(stdout, "\n") {
				require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
			}
			if strings.Contains(stdout, " fails ") {
				require.Contains(t, stdout, "shown by: user ")
				require.Contains(t, stdout, "advice: ")
			}
		})
	}
}

func TestCertifyJSON(t *testing.T) {
	code, stdout, stderr := call(t, "certify", "--json", "--model", modelDir(t, func(dir string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte("{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}"), 0o644))
	}))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "merged rows need what the template lacks or refuses to show: stop_token, generation_prompt")
	var cert certify.Certificate
	require.NoError(t, json.Unmarshal([]byte(stdout), &cert))
	for _, f := range cert.Findings {
		require.Equal(t, f.Verdict == certify.Fails, f.Advice != "", f.Property)
		if f.Verdict == certify.Fails {
			require.NotEmpty(t, f.Witness, f.Property)
		}
	}
}
