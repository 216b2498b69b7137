package certify_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/certify"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

// withTemplate is the embedded model with another template, and with more files by name.
func withTemplate(t testing.TB, template string, more ...string) *tokenize.Model {
	t.Helper()
	fs := fstest.MapFS{"chat_template.jinja": {Data: []byte(template)}}
	for _, f := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := os.ReadFile(filepath.Join("..", "embedded", f))
		require.NoError(t, err)
		fs[f] = &fstest.MapFile{Data: b}
	}
	for i := 0; i < len(more); i += 2 {
		fs[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: fs})
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
		want  map[certify.Property]certify.Verdict
	}{
		{"embedded", loaded(t, embedded.Model), map[certify.Property]certify.Verdict{
			"append_only": certify.Holds, "generation_prompt": certify.Holds, "stop_token": certify.Holds,
			"reasoning_kept": certify.Holds, "tool_calls": certify.Holds, "tool_runs_apart": certify.Holds,
			"system_role": certify.Holds, "nothing_injected": certify.Holds, "no_clock": certify.Holds, "content_verbatim": certify.Holds}},
		{"plain ChatML", withTemplate(t, chatML), map[certify.Property]certify.Verdict{
			"append_only": certify.Holds, "reasoning_written": certify.Fails, "tool_calls": certify.Fails}},
		{"a default system message", withTemplate(t, "<|im_start|>system\nYou help people.<|im_end|>\n"+chatML), map[certify.Property]certify.Verdict{"nothing_injected": certify.Fails, "system_role": certify.Holds}},
		{"a folder that names no stop token", withTemplate(t, chatML, "tokenizer_config.json", "{}"), map[certify.Property]certify.Verdict{"stop_token": certify.Holds}},
		{"a folder that lists another one", withTemplate(t, chatML, "tokenizer_config.json", "{}", "generation_config.json", `{"eos_token_id": 4087}`), map[certify.Property]certify.Verdict{"stop_token": certify.Fails}},
		{"needs tools", withTemplate(t, `{% for t in tools %}{% endfor %}`+chatML), map[certify.Property]certify.Verdict{
			"generation_prompt": certify.Holds, "stop_token": certify.Holds, "no_clock": certify.Holds}},
		{"no generation prompt", withTemplate(t, `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}`), map[certify.Property]certify.Verdict{"generation_prompt": certify.Fails}},
		{"replies without a header", withTemplate(t, `{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %} {{ m.content }}<|im_end|>{% endif %}{% endfor %}`),
			map[certify.Property]certify.Verdict{"generation_prompt": certify.Holds, "stop_token": certify.Holds}},
		{"a prompt that ends in what no reply has", withTemplate(t, chatML+`{% if add_generation_prompt %}<|channel>thought
<channel|>{% endif %}`), map[certify.Property]certify.Verdict{"generation_prompt": certify.Holds}},
		{"a stop token only where the conversation goes on", withTemplate(t, strings.Replace(chatML, "<|im_end|>", "{% if not loop.last or m.role == 'user' %}<|im_end|>{% endif %}", 1)),
			map[certify.Property]certify.Verdict{"generation_prompt": certify.Holds, "stop_token": certify.Holds}},
		{"no stop token", withTemplate(t, `{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}`), map[certify.Property]certify.Verdict{"stop_token": certify.Fails}},
		{"trims and dates", withTemplate(t, `{{ strftime_now("%Y-%m-%d") }}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content | trim }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`), map[certify.Property]certify.Verdict{"no_clock": certify.Fails, "content_verbatim": certify.Fails}},
		{"refuses system", withTemplate(t, `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`), map[certify.Property]certify.Verdict{"system_role": certify.NotApplicable, "no_clock": certify.Holds}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cert, err := certify.Model(t.Context(), c.model)
			require.NoError(t, err)
			for p, want := range c.want {
				require.Equal(t, want, cert.Verdict(p), "%s: %+v", p, cert.Findings)
			}
			for _, f := range cert.Findings {
				if f.Verdict == certify.Fails {
					require.NotEmpty(t, f.Witness, f.Property)
					require.NotEmpty(t, f.Detail, f.Property)
				}
			}
		})
	}
}

func TestCertifyQwen3(t *testing.T) {
	cert, err := certify.Model(t.Context(), loaded(t, func() (*tokenize.Model, error) { return tokenize.Load(".", tokenize.LoadOptions{FS: kit.Qwen3(t)}) }))
	require.NoError(t, err)
	require.Equal(t, certify.Fails, cert.Verdict("append_only"), "a user message takes earlier reasoning away")
	require.Equal(t, certify.Fails, cert.Verdict("reasoning_kept"))
	require.Equal(t, certify.Fails, cert.Verdict("tool_runs_apart"))
	require.Equal(t, certify.Holds, cert.Verdict("stop_token"))
	require.Empty(t, cert.Missing(tokenize.Merged))
}

// A finding shows where two prompts diverge, however long the marker in which they do.
func TestCertifyShowsTheDifference(t *testing.T) {
	m := withTemplate(t, `{% for m in messages %}<|im_start|>{{ m.role }}
[{"written": {"by": "the template", "text": "{{ m.content }}"{{ ', "old": true' if not loop.last and m.role == "assistant" }}}}]<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`)
	cert, err := certify.Model(t.Context(), m)
	require.NoError(t, err)
	for _, f := range cert.Findings {
		if f.Property == "append_only" {
			require.Equal(t, `plain replies: the prompt of turn 1 says ", \"old\": true}}]<|im_end" where it said "}}]<|im_end|>"`, f.Detail)
		}
	}
}

func TestCertifyNeedsATemplate(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "embedded", "tokenizer.json"))
	require.NoError(t, err)
	m, err := tokenize.Load(".", tokenize.LoadOptions{FS: fstest.MapFS{"tokenizer.json": {Data: b}}})
	require.NoError(t, err)
	_, err = certify.Model(t.Context(), m)
	require.ErrorIs(t, err, rollout.KindTemplate)
	m, err = tokenize.Load(".", tokenize.LoadOptions{FS: fstest.MapFS{"tokenizer.json": {Data: b}, "additional_chat_templates/rag.jinja": {Data: []byte(chatML)}}})
	require.NoError(t, err)
	_, err = certify.Model(t.Context(), m)
	require.ErrorIs(t, err, rollout.KindTemplate)
	require.ErrorContains(t, err, "rag")
}

// Rollouts with tools take another template than those without, and each template gets the probes
// that apply to it.
func TestCertifyToolUse(t *testing.T) {
	tok, err := os.ReadFile(filepath.Join("..", "embedded", "tokenizer.json"))
	require.NoError(t, err)
	const prompt = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	turns := strings.TrimSuffix(chatML, prompt)
	for _, c := range []struct {
		reason, plain, tools string
		missing              []certify.Property
	}{
		{"both are whole", chatML, chatML, nil},
		{"a template that needs tools", chatML, "{{ tools[0].function.name }}" + chatML, nil},
		{"a template that takes none", "{% if tools %}{{ raise_exception('no tools') }}{% endif %}" + chatML, chatML, nil},
		{"the one for tools lacks a prompt", chatML, turns, []certify.Property{"generation_prompt"}},
		{"the default one lacks a prompt", turns, chatML, []certify.Property{"generation_prompt"}},
		{"no default one", "", chatML, nil},
		{"no default one, and no prompt", "", turns, []certify.Property{"generation_prompt"}},
	} {
		files := fstest.MapFS{
			"tokenizer.json": {Data: tok}, "tokenizer_config.json": {Data: []byte(`{"eos_token":"<|im_end|>"}`)},
			"chat_template.jinja": {Data: []byte(c.plain)}, "additional_chat_templates/tool_use.jinja": {Data: []byte(c.tools)},
		}
		if c.plain == "" {
			delete(files, "chat_template.jinja")
		}
		m, err := tokenize.Load(".", tokenize.LoadOptions{FS: files})
		require.NoError(t, err)
		cert, err := certify.Model(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, c.missing, cert.Missing(tokenize.Merged), c.reason)
		if c.plain != "" {
			require.Equal(t, certify.NotApplicable, cert.Verdict("tool_calls"), c.reason)
		} else {
			require.Equal(t, []certify.Finding{}, cert.Findings, "nothing writes rollouts without tools")
			require.Empty(t, cert.Template)
		}
		require.Equal(t, certify.Fails, cert.ToolUse.Verdict("tool_calls"), "ChatML writes none")
		for _, f := range cert.ToolUse.Findings {
			if f.Property == "arguments" {
				continue // the template writes no calls
			}
			require.NotEqual(t, certify.NotApplicable, f.Verdict, "%s: %s %s", c.reason, f.Property, f.Detail)
		}
		require.NotEqual(t, c.plain == c.tools, cert.Template != cert.ToolUse.Template, c.reason)
	}
}

// A certificate says what happens to a call's arguments in either form, and which form is given.
func TestCertifyArguments(t *testing.T) {
	const head = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>"
	const tail = "</tool_call>{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	for _, c := range []struct {
		writes  string
		verdict certify.Verdict
		detail  string
	}{
		{"{{ c.function.arguments | tojson }}", certify.Holds, "objects are given; text would be escaped within a string"},
		{"{{ c.function | tojson }}", certify.Holds, "objects are given; text would be escaped within a string"},
		{"{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}", certify.Holds, "objects are given; text would be written alike"},
		{"{% for k, v in c.function.arguments.items() %}<p={{ k }}>{{ v }}</p>{% endfor %}", certify.Holds, "objects are given; text would be refused or left out"},
		{"{{ '`' + c.function.arguments + '`' }}", certify.Holds, "text is given; objects would be refused or left out"},
		{"{{ c.function.arguments }}", certify.Holds, "text is given; objects would be written as Python shows them"},
		{"{{ {'a': c.function.arguments ~ ''} | tojson }}", certify.Fails, "objects are written as Python shows them, text is escaped within a string"},
		{"{{ c.function.name }}", certify.NotApplicable, "the template writes no calls"},
	} {
		cert, err := certify.Model(t.Context(), withTemplate(t, head+c.writes+tail))
		require.NoError(t, err)
		for _, f := range cert.Findings {
			if f.Property == "arguments" {
				require.Equal(t, c.verdict, f.Verdict, c.writes)
				require.Equal(t, c.detail, f.Detail, c.writes)
			}
		}
		require.Equal(t, c.verdict, cert.Verdict("arguments"), c.writes)
	}
}

func loaded(t *testing.T, load func() (*tokenize.Model, error)) *tokenize.Model {
	t.Helper()
	m, err := load()
	require.NoError(t, err)
	return m
}
