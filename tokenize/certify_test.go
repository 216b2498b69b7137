package tokenize_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
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
	m, err := tokenize.LoadFS(fs, ".")
	require.NoError(t, err)
	return m
}

const chatML = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

func TestCertify(t *testing.T) {
	for _, c := range []struct {
		name  string
		model *tokenize.Model
		want  map[tokenize.Property]tokenize.Verdict
	}{
		{"embedded", embeddedModel(t), map[tokenize.Property]tokenize.Verdict{
			tokenize.PropAppendOnly: tokenize.Holds, tokenize.PropGenerationPrompt: tokenize.Holds, tokenize.PropStopToken: tokenize.Holds,
			tokenize.PropReasoningKept: tokenize.Holds, tokenize.PropToolCalls: tokenize.Holds, tokenize.PropToolRunsApart: tokenize.Holds,
			tokenize.PropSystemRole: tokenize.Holds, tokenize.PropNothingInjected: tokenize.Holds, tokenize.PropNoClock: tokenize.Holds, tokenize.PropContentVerbatim: tokenize.Holds}},
		{"plain ChatML", withTemplate(t, chatML), map[tokenize.Property]tokenize.Verdict{
			tokenize.PropAppendOnly: tokenize.Holds, tokenize.PropReasoningWritten: tokenize.Fails, tokenize.PropToolCalls: tokenize.Fails}},
		{"needs tools", withTemplate(t, `{% for t in tools %}{% endfor %}`+chatML), map[tokenize.Property]tokenize.Verdict{
			tokenize.PropGenerationPrompt: tokenize.Holds, tokenize.PropStopToken: tokenize.Holds, tokenize.PropNoClock: tokenize.Holds}},
		{"no generation prompt", withTemplate(t, `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}`), map[tokenize.Property]tokenize.Verdict{tokenize.PropGenerationPrompt: tokenize.Fails}},
		{"no stop token", withTemplate(t, `{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}`), map[tokenize.Property]tokenize.Verdict{tokenize.PropStopToken: tokenize.Fails}},
		{"trims and dates", withTemplate(t, `{{ strftime_now("%Y-%m-%d") }}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content | trim }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`), map[tokenize.Property]tokenize.Verdict{tokenize.PropNoClock: tokenize.Fails, tokenize.PropContentVerbatim: tokenize.Fails}},
		{"refuses system", withTemplate(t, `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`), map[tokenize.Property]tokenize.Verdict{tokenize.PropSystemRole: tokenize.NotApplicable, tokenize.PropNoClock: tokenize.Holds}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cert, err := tokenize.Certify(t.Context(), c.model)
			require.NoError(t, err)
			for p, want := range c.want {
				require.Equal(t, want, cert.Verdict(p), "%s: %+v", p, cert.Findings)
			}
			for _, f := range cert.Findings {
				if f.Verdict == tokenize.Fails {
					require.NotEmpty(t, f.Witness, f.Property)
					require.NotEmpty(t, f.Detail, f.Property)
				}
			}
		})
	}
}

func TestCertifyQwen3(t *testing.T) {
	cert, err := tokenize.Certify(t.Context(), qwen3(t))
	require.NoError(t, err)
	require.Equal(t, tokenize.Fails, cert.Verdict(tokenize.PropAppendOnly), "a user message takes earlier reasoning away")
	require.Equal(t, tokenize.Fails, cert.Verdict(tokenize.PropReasoningKept))
	require.Equal(t, tokenize.Fails, cert.Verdict(tokenize.PropToolRunsApart))
	require.Equal(t, tokenize.Holds, cert.Verdict(tokenize.PropStopToken))
	require.Empty(t, cert.Missing(tokenize.Merged))
}

// A finding shows where two prompts part, however long the marker they part in.
func TestCertifyShowsTheDifference(t *testing.T) {
	m := withTemplate(t, `{% for m in messages %}<|im_start|>{{ m.role }}
[{"written": {"by": "the template", "text": "{{ m.content }}"{{ ', "old": true' if not loop.last and m.role == "assistant" }}}}]<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`)
	cert, err := tokenize.Certify(t.Context(), m)
	require.NoError(t, err)
	for _, f := range cert.Findings {
		if f.Property == tokenize.PropAppendOnly {
			require.Equal(t, `plain replies: the prompt of turn 1 says ", \"old\": true}}]<|im_end" where it said "}}]<|im_end|>"`, f.Detail)
		}
	}
}

func TestCertifyNeedsATemplate(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("embedded", "tokenizer.json"))
	require.NoError(t, err)
	m, err := tokenize.LoadFS(fstest.MapFS{"tokenizer.json": {Data: b}}, ".")
	require.NoError(t, err)
	_, err = tokenize.Certify(t.Context(), m)
	require.ErrorIs(t, err, rollout.KindTemplate)
	m, err = tokenize.LoadFS(fstest.MapFS{"tokenizer.json": {Data: b}, "additional_chat_templates/rag.jinja": {Data: []byte(chatML)}}, ".")
	require.NoError(t, err)
	_, err = tokenize.Certify(t.Context(), m)
	require.ErrorIs(t, err, rollout.KindTemplate)
	require.ErrorContains(t, err, "rag")
}

func TestGenerationPrompt(t *testing.T) {
	m := embeddedModel(t)
	ids, err := m.GenerationPrompt(t.Context())
	require.NoError(t, err)
	require.Equal(t, "<|im_start|>assistant\n", decode(t, m, ids))
	ids, err = withTemplate(t, `{% for m in messages %}{{ m.content }}{% endfor %}`).GenerationPrompt(t.Context())
	require.NoError(t, err)
	require.Nil(t, ids)
}

// Rollouts with tools meet another template than those without, and each gets the
// probes that it can meet.
func TestCertifyToolUse(t *testing.T) {
	tok, err := os.ReadFile(filepath.Join("embedded", "tokenizer.json"))
	require.NoError(t, err)
	const prompt = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	turns := strings.TrimSuffix(chatML, prompt)
	for _, c := range []struct {
		reason, plain, tools string
		missing              []tokenize.Property
	}{
		{"both are whole", chatML, chatML, nil},
		{"a template that needs tools", chatML, "{{ tools[0].function.name }}" + chatML, nil},
		{"a template that takes none", "{% if tools %}{{ raise_exception('no tools') }}{% endif %}" + chatML, chatML, nil},
		{"the one for tools lacks a prompt", chatML, turns, []tokenize.Property{tokenize.PropGenerationPrompt}},
		{"the default one lacks a prompt", turns, chatML, []tokenize.Property{tokenize.PropGenerationPrompt}},
		{"no default one", "", chatML, nil},
		{"no default one, and no prompt", "", turns, []tokenize.Property{tokenize.PropGenerationPrompt}},
	} {
		files := fstest.MapFS{
			"tokenizer.json": {Data: tok}, "tokenizer_config.json": {Data: []byte(`{"eos_token":"<|im_end|>"}`)},
			"chat_template.jinja": {Data: []byte(c.plain)}, "additional_chat_templates/tool_use.jinja": {Data: []byte(c.tools)},
		}
		if c.plain == "" {
			delete(files, "chat_template.jinja")
		}
		m, err := tokenize.LoadFS(files, ".")
		require.NoError(t, err)
		cert, err := tokenize.Certify(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, c.missing, cert.Missing(tokenize.Merged), c.reason)
		if c.plain != "" {
			require.Equal(t, tokenize.NotApplicable, cert.Verdict(tokenize.PropToolCalls), c.reason)
		} else {
			require.Equal(t, []tokenize.Finding{}, cert.Findings, "nothing writes rollouts without tools")
			require.Empty(t, cert.Template)
		}
		require.Equal(t, tokenize.Fails, cert.ToolUse.Verdict(tokenize.PropToolCalls), "ChatML writes none")
		for _, f := range cert.ToolUse.Findings {
			if f.Property == tokenize.PropArguments {
				continue // of no calls
			}
			require.NotEqual(t, tokenize.NotApplicable, f.Verdict, "%s: %s %s", c.reason, f.Property, f.Detail)
		}
		require.NotEqual(t, c.plain == c.tools, cert.Template != cert.ToolUse.Template, c.reason)
	}
}

// What becomes of a call's arguments in either form, and which one is given.
func TestCertifyArguments(t *testing.T) {
	const head = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>"
	const tail = "</tool_call>{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	for _, c := range []struct {
		writes  string
		verdict tokenize.Verdict
		detail  string
	}{
		{"{{ c.function.arguments | tojson }}", tokenize.Holds, "objects are given; text would be escaped within a string"},
		{"{{ c.function | tojson }}", tokenize.Holds, "objects are given; text would be escaped within a string"},
		{"{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}", tokenize.Holds, "objects are given; text would be written alike"},
		{"{% for k, v in c.function.arguments.items() %}<p={{ k }}>{{ v }}</p>{% endfor %}", tokenize.Holds, "objects are given; text would be refused or left out"},
		{"{{ '`' + c.function.arguments + '`' }}", tokenize.Holds, "text is given; objects would be refused or left out"},
		{"{{ c.function.arguments }}", tokenize.Holds, "text is given; objects would be written as Python shows them"},
		{"{{ {'a': c.function.arguments ~ ''} | tojson }}", tokenize.Fails, "objects are written as Python shows them, text is escaped within a string"},
		{"{{ c.function.name }}", tokenize.NotApplicable, "the template writes no calls"},
	} {
		cert, err := tokenize.Certify(t.Context(), withTemplate(t, head+c.writes+tail))
		require.NoError(t, err)
		for _, f := range cert.Findings {
			if f.Property == tokenize.PropArguments {
				require.Equal(t, c.verdict, f.Verdict, c.writes)
				require.Equal(t, c.detail, f.Detail, c.writes)
			}
		}
		require.Equal(t, c.verdict, cert.Verdict(tokenize.PropArguments), c.writes)
	}
}
