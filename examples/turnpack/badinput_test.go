package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/internal/kit"
)

// Each bad input gives one clear error and leaves no file that looks complete.
func TestBadInput(t *testing.T) {
	kit.Long(t)
	good := goodDump(t)
	for _, c := range []struct {
		name  string
		model func(dir string)
		in    string
		want  []string // parts of the message: what, where, how to fix it
	}{
		{"empty folder", nil, t.TempDir(), []string{"no rollout found"}},
		{"missing folder", nil, filepath.Join(t.TempDir(), "nowhere"), []string{"nowhere"}},
		{"unknown format", nil, dump(t, `{"hello": "world"}`), []string{"dump.jsonl"}},
		{"broken JSON only", nil, dump(t, `{"messages": [`), []string{"dump.jsonl:1"}},
		{"bad lines only", nil, dump(t, `{"messages": [`, `{"messages": [{"content": "x"}]}`), []string{"none of the 2 records", "dump.jsonl:1"}},
		{"a message without a role", nil, dump(t, `{"messages": [{"content": "x"}]}`), []string{"dump.jsonl:1", "role"}},
		{"a tool result without a call", nil, dump(t, `{"messages": [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "c9", "content": "y"}, {"role": "assistant", "content": "z"}]}`), []string{"c9"}},
		{"no template", func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "chat_template.jinja"))) }, good, []string{"template"}},
		{"a broken template", func(dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte("{% for m in messages %}"), 0o644))
		}, good, []string{"chat_template.jinja:1"}},
		{"a broken tokenizer", func(dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte("{"), 0o644))
		}, good, []string{"tokenizer.json"}},
		{"no tokenizer", func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "tokenizer.json"))) }, good, []string{"tokenizer.json", "Hugging Face", "save_pretrained"}},
		{"no outcome", nil, dump(t, `{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "z"}]}`), []string{"outcome", "--rewards FILE", "--estimator none"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "batch")
			code, stdout, stderr := call(t, "convert", "--model", modelDir(t, c.model), "--in", c.in, "--out", out)
			require.Equal(t, exitFailed, code, stdout)
			for _, part := range c.want {
				require.Contains(t, stderr, part)
			}
			require.NotContains(t, stderr, "goroutine")
			left, err := filepath.Glob(filepath.Join(out, "*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// Bad records are left out, counted and listed, and the rest of the batch is written.
// --on-error changes only the exit code, or stops at the first.
func TestOnError(t *testing.T) {
	kit.Long(t)
	in := dump(t, chatLine("a", true), `{"messages": [`, chatLine("b", false), `{"messages": [{"content": "x"}]}`)
	for _, c := range []struct {
		reason string
		flags  []string
		code   int
	}{
		{"the default", nil, exitLeftOut},
		{"asked for", []string{"--on-error", "report"}, exitLeftOut},
		{"accepted", []string{"--on-error", "skip"}, exitOK},
	} {
		t.Run(c.reason, func(t *testing.T) {
			out := t.TempDir()
			convert := func(more ...string) (int, string, string) {
				return call(t, slices.Concat([]string{"convert", "--model", modelDir(t, nil), "--in", in, "--out", out}, c.flags, more)...)
			}
			code, stdout, stderr := convert()
			require.Equal(t, c.code, code, stderr)
			require.Regexp(t, `records left out +2 of 4\n`, stdout)
			require.Contains(t, stdout, in+string(filepath.Separator)+"dump.jsonl:2, byte 14: not JSON")
			require.Contains(t, stdout, "dump.jsonl:4, message 0, /role")
			if c.code == exitOK {
				require.Empty(t, stderr)
			} else {
				require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
				require.Contains(t, stderr, "2 of 4 records were left out")
				require.Contains(t, stderr, "--on-error skip (exit status 0); --on-error stop ends at the first")
			}
			var made record
			_, err := cli.RecordOf(filepath.Join(out, "batch.parquet"), &made)
			require.NoError(t, err)
			require.Equal(t, [2]int{2, 2}, [2]int{made.Summary.LeftOut, made.Summary.Rows})

			code, stdout, _ = convert("--json")
			require.Equal(t, c.code, code, "the batch is there and lacks the same records")
			var s summary
			require.NoError(t, json.Unmarshal([]byte(stdout), &s))
			require.True(t, s.Complete)
			require.Equal(t, 2, s.LeftOut)
			require.Equal(t, []int{2, 4}, []int{s.Skipped[0].Line, s.Skipped[1].Line})
			code, _, _ = convert("--dry-run")
			require.Equal(t, c.code, code)
		})
	}
	out := filepath.Join(t.TempDir(), "batch")
	code, _, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--out", out, "--on-error", "stop")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "dump.jsonl:2")
	require.NoDirExists(t, out)
}

// If no record can be encoded, the error says why.
func TestNothingEncoded(t *testing.T) {
	image := `{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}, {"role": "assistant", "content": "y"}], "reward": 1}`
	out := filepath.Join(t.TempDir(), "batch")
	code, _, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", dump(t, image), "--out", out)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no rollout gave a row: 1 could not be encoded; the first: ")
	require.Contains(t, stderr, "dump.jsonl:1")
	require.NoDirExists(t, out)
}

// The summary says what would keep rollouts without rows, and shows the first error of
// each record.
func TestSummaryHelps(t *testing.T) {
	in := dump(t, chatLine("a", true), chatLine("b", false), `{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}`,
		`{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}], "reward": 0.5}`,
		`{"messages": [{"role": "tool", "tool_call_id": "c1", "content": "x"}, {"role": "tool", "tool_call_id": "c2", "content": "y"}]}`)
	code, stdout, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--out", t.TempDir(), "--on-error", "skip")
	require.Zero(t, code, stderr)
	for _, part := range []string{"1 rollouts record no result: join one with --rewards", "dump.jsonl:5, rollout", `"c1"`, "(and 1 more: --json has them)"} {
		require.Contains(t, stdout, part)
	}
	require.NotContains(t, stdout, `"c2"`)
	require.Regexp(t, `rows +3\n`, stdout, "a recorded number is a reward")
	code, stdout, stderr = call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--out", t.TempDir(), "--on-error", "skip", "--scale", "signed")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "1 rollouts record a number as their reward: --scale auto")
}

// Variables of the template come from flags if the dump does not record them, and the
// summary points at a missing date.
func TestTemplateVariables(t *testing.T) {
	kit.Long(t)
	const template = `{{ strftime_now("%Y-%m-%d") }} {{ mode }}
{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`
	model := modelDir(t, func(dir string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(template), 0o600))
	})
	line := `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]`
	in := dump(t, line+`,"id":"1"}`, line+`,"id":"2","chat_template_kwargs":{"mode":"recorded"}}`)
	for _, c := range []struct {
		flags  []string
		date   string
		modes  [2]string
		hinted bool
	}{
		{nil, "1970-01-01", [2]string{"", "recorded"}, true},
		{[]string{"--now", "2026-01-15", "--template-kwargs", `{"mode": "given"}`}, "2026-01-15", [2]string{"given", "recorded"}, false},
		{[]string{"--now", "2026-01-15T23:00:00"}, "2026-01-15", [2]string{"", "recorded"}, false},
	} {
		out := t.TempDir()
		code, stdout, stderr := call(t, append([]string{"convert", "--model", model, "--in", in, "--out", out, "--estimator", "none"}, c.flags...)...)
		require.Zero(t, code, stderr)
		require.Equal(t, c.hinted, strings.Contains(stdout, "--now"), stdout)
		for i, mode := range c.modes {
			code, stdout, stderr = call(t, "show", out, strconv.Itoa(i), "--model", model)
			require.Zero(t, code, stderr)
			require.Contains(t, stdout, c.date+" "+mode+"\n")
		}
	}
	for flag, text := range map[string]string{"--now": "yesterday", "--template-kwargs": "[1]"} {
		code, _, stderr := call(t, "convert", "--model", model, "--in", in, flag, text)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, flag+": ")
	}
}
