package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

// recordedText returns the text of a field of a message as recorded in the dump.
func recordedText(t *testing.T, m *rollout.Message, field string) string {
	t.Helper()
	parts := strings.Split(field, "/")
	if key, ok := strings.CutSuffix(parts[len(parts)-1], "#key"); ok {
		return key
	}
	switch parts[0] {
	case "role":
		return string(m.Role)
	case "content":
		return m.Content
	case "reasoning_content", "reasoning", "thinking":
		return m.Reasoning
	case "tool_call_id":
		return m.ToolCallID
	}
	require.Equal(t, "tool_calls", parts[0])
	var n int
	_, err := fmt.Sscan(parts[1], &n)
	require.NoError(t, err)
	call := m.ToolCalls[n]
	switch strings.Join(parts[2:], "/") {
	case "id":
		return call.ID
	case "function/name":
		return call.Name
	case "function/arguments":
		return call.Arguments
	}
	var args map[string]any
	require.NoError(t, json.Unmarshal([]byte(call.Arguments), &args))
	return args[parts[4]].(string)
}

// Every token of a message is traced to the bytes of the recorded field, for templates
// that write messages in different ways, for all modes and windows, and for captured and
// rendered ids.
func TestTrace(t *testing.T) {
	kit.Long(t)
	embedded, err := embedded.Model()
	require.NoError(t, err)
	marked := modelDir(t, func(dir string) {
		const template = `{% for m in messages %}[{{ m.role | upper }}] {{ (m.content or '') | trim }}{% for c in m.tool_calls or [] %}{{ c.function.name }}({% for k, v in c.function.arguments | items %}{{ k }}={{ v }};{% endfor %}){% endfor %}{% if m.role == 'assistant' %}<|im_end|>{% endif %}
{% endfor %}{% if add_generation_prompt %}[ASSISTANT] {% endif %}`
		require.NoError(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(template), 0o644))
	})
	other, err := tokenize.Load(marked, tokenize.LoadOptions{})
	require.NoError(t, err)
	models := map[string]*tokenize.Model{"embedded": embedded, "another template": other}
	t.Run("Qwen3", func(t *testing.T) {
		m, err := tokenize.Load(".", tokenize.LoadOptions{FS: kit.Qwen3(t)})
		require.NoError(t, err)
		models["Qwen3"] = m
	})
	for name, m := range models {
		for _, o := range []struct {
			mode   tokenize.Mode
			window ctxwindow.Policy
		}{{tokenize.Merged, nil}, {tokenize.PerStep, nil}, {tokenize.PerStep, ctxwindow.HeadTail{Budget: 400}}, {tokenize.Whole, nil}} {
			t.Run(fmt.Sprintf("%s %s %v", name, o.mode, o.window != nil), func(t *testing.T) {
				p := turnpack.Pipeline{Model: m, Encode: tokenize.Options{Mode: o.mode}, Window: o.window}
				dumps := []string{filepath.Join("demo", "dumps")}
				if name == "embedded" && o.window == nil { // the model of the captured dump
					dumps = append(dumps, filepath.Join("..", "tutorial", "dumps"))
				}
				traced, unknown := traceAll(t, p, dumps)
				require.Greater(t, traced, 500)
				require.Zero(t, unknown)
			})
		}
	}
}

// traceAll traces every token that p encodes from the dumps. It counts the traced tokens
// of messages and the unknown ones.
func traceAll(t *testing.T, p turnpack.Pipeline, dumps []string) (traced, unknown int) {
	enc, err := tokenize.NewEncoder(p.Model, p.Encode)
	require.NoError(t, err)
	in, err := traj.Open(dumps, traj.Options{})
	require.NoError(t, err)
	spell := tokens.NewSpeller(p.Model.Tokenizer)
	n := 0
	for r, err := range in.All() {
		require.NoError(t, err)
		if n++; n%6 != 1 {
			continue
		}
		planned := r
		if p.Window != nil {
			contexts, _, err := ctxwindow.Plan(t.Context(), r, p.Window, enc.Counter(r))
			require.NoError(t, err)
			planned, err = ctxwindow.Apply(r, contexts)
			require.NoError(t, err)
		}
		seqs, _, err := enc.Encode(t.Context(), planned)
		require.NoError(t, err)
		for i := range seqs {
			row := rollout.Sample{Sequence: seqs[i]}
			src, err := encodedAgain(t.Context(), p, r, &row)
			require.NoError(t, err)
			for at, id := range row.IDs {
				origins, known, err := src.Tracer.At(t.Context(), at)
				require.NoError(t, err)
				if !known {
					unknown++
					continue
				}
				text, _ := spell.Bytes(id)
				for _, o := range origins {
					if !o.Exact || o.Message < 0 || o.Message >= len(r.Messages) {
						continue
					}
					field := recordedText(t, &r.Messages[o.Message], o.Field)
					require.Contains(t, string(text), field[o.From:o.To], "token %d of %s, %s of message %d", at, r.ID, o.Field, o.Message)
					require.Positive(t, o.To-o.From)
					if row.Flags[at]&(rollout.FlagContent|rollout.FlagReasoning|rollout.FlagToolCall) != 0 && o.Field != "role" {
						require.EqualValues(t, row.Source[at], o.Message, "token %d of %s: %q", at, r.ID, text)
					}
				}
				if row.Source[at] >= 0 && row.Flags[at]&rollout.FlagContent != 0 && !spelled(text) {
					require.NotEmpty(t, origins, "token %d of %s: %q", at, r.ID, text)
					traced++
				}
			}
		}
	}
	return traced, unknown
}

// spelled reports whether text is white space or a marker, as templates write around
// messages.
func spelled(text []byte) bool {
	s := strings.TrimSpace(string(text))
	return s == "" || strings.HasPrefix(s, "<")
}

// show finds the dumps and options through the record of the batch or --in, and reports
// what is unknown.
func TestShowToken(t *testing.T) {
	kit.Long(t)
	tutorial := filepath.Join("..", "tutorial")
	model, dumps := filepath.Join(tutorial, "model"), filepath.Join(tutorial, "dumps")
	out := t.TempDir()
	code, _, stderr := call(t, "convert", "--model", model, "--in", dumps, "--out", out, "--mode", "perstep", "--window", "headtail:300")
	require.Zero(t, code, stderr)
	batch := filepath.Join(out, "batch.parquet")
	show := func(args ...string) (int, string, string) {
		return call(t, append([]string{"show", batch, "1", "--model", model}, args...)...)
	}
	code, stdout, stderr := show("--token", "60")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "message    1, user, of ")
	require.Regexp(t, `field      content, bytes \d+ to \d+\n`, stdout)
	require.Contains(t, stdout, "weight     0, not trained: the policy read it")

	require.NoError(t, os.Remove(filepath.Join(out, cli.RecordName)))
	code, stdout, stderr = show("--token", "60")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "field      unknown: name the dumps with --in")
	code, _, stderr = call(t, "convert", "--model", modelDir(t, nil), "--in", filepath.Join("demo", "dumps"), "--out", out, "--force", "--mode", "perstep", "--window", "headtail:300")
	require.Zero(t, code, stderr)
	require.NoError(t, os.Remove(filepath.Join(out, cli.RecordName)))
	code, _, stderr = call(t, "show", batch, "3", "--token", "60", "--in", filepath.Join("demo", "dumps"))
	require.Equal(t, exitFailed, code, "without its record, nothing tells that the batch has a window")
	require.Contains(t, stderr, "gives other rows than the batch holds")
	code, _, stderr = show("--token", "60", "--in", goodDump(t))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "is not in")
	code, _, stderr = show("--token", "60", "--in", "none")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "none: cannot be read: ")
	code, _, stderr = show("--token", "99999")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "the row has tokens 0 to")
}

// If the dumps are known, a page shows the recorded field and bytes of its tokens, as
// show does.
func TestPageFields(t *testing.T) {
	kit.Long(t)
	tutorial := filepath.Join("..", "tutorial")
	model, out := filepath.Join(tutorial, "model"), t.TempDir()
	code, _, stderr := call(t, "convert", "--model", model, "--in", filepath.Join(tutorial, "dumps"), "--out", out)
	require.Zero(t, code, stderr)
	size := func() int {
		code, stdout, stderr := call(t, "view", out, "--model", model, "--out", "-")
		require.Zero(t, code, stderr)
		return len(stdout)
	}
	with := size()
	require.NoError(t, os.Remove(filepath.Join(out, cli.RecordName)))
	without := size()
	code, _, stderr = call(t, "view", out, "--model", model, "--out", "-", "--in", "none")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "none: cannot be read: ")
	code, _, stderr = call(t, "view", out, "--model", model, "--out", "-", "--in", goodDump(t))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "is not in")
	code, stdout, stderr := call(t, "view", out, "--model", model, "--out", "-", "--in", filepath.Join(tutorial, "dumps"))
	require.Zero(t, code, stderr)
	require.Greater(t, len(stdout), without, "--in names the dumps")
	require.Greater(t, with, len(stdout), "the record names them, and says what the run did")
}
