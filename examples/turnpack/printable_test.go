package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// No command passes terminal escapes or hidden characters from a dump to the terminal.
func TestVerbsCleanWhatTheyPrint(t *testing.T) {
	kit.Long(t)
	const bad = "a\x1b]0;own\x07\r\u202e\u200b\x00\u009b2J"
	line := func(resolved bool, more map[string]any) string {
		r := map[string]any{"id": bad + map[bool]string{true: "1", false: "2"}[resolved], "group_id": "g" + bad, "instance_id": bad, "status": "completed",
			"outcome":  map[string]any{"resolved": resolved},
			"metadata": map[string]any{"k" + bad: bad},
			"messages": []map[string]any{{"role": "user", "content": bad}, {"role": "assistant", "content": "done " + bad, "sampled": "sampled"}}}
		for k, v := range more {
			r[k] = v
		}
		b, err := json.Marshal(r)
		require.NoError(t, err)
		return string(b)
	}
	model, out := modelDir(t, nil), t.TempDir()
	clean := func(args ...string) string {
		code, stdout, stderr := call(t, args...)
		for _, text := range []string{stdout, stderr} {
			at := strings.IndexFunc(text, func(c rune) bool { return c != '\n' && unicode.In(c, unicode.Cc, unicode.Cf) })
			if at >= 0 {
				t.Errorf("%q (exit %d): control character at %q", args[0], code, text[max(at-80, 0):min(at+40, len(text))])
			}
		}
		return stderr
	}
	said := clean("convert", "--model", model, "--in", dump(t, line(true, nil), line(false, nil)), "--out", out, "--format", "native")
	require.FileExists(t, filepath.Join(out, "batch.parquet"), said)
	batch := filepath.Join(out, "batch.parquet")
	odd := filepath.Join(t.TempDir(), strings.ReplaceAll(bad, "\x00", ""))
	again := []string{"convert", "--model", model, "--in", dump(t, line(true, nil)), "--out", odd, "--format", "native"}
	clean(again...)
	clean(again...) // already complete
	clean("diff", filepath.Join(odd, "batch.parquet"), batch)
	clean("view", odd)
	clean("demo", "--out", odd+"demo")
	clean("grade", bad, bad)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, bad, http.StatusBadRequest) }))
	defer refuses.Close()
	said = clean("score", "--in", again[4], "--judge", refuses.URL, "--model", "m", "--votes", "1", "--retries", "0", "--out", filepath.Join(t.TempDir(), "o"))
	require.Contains(t, said, `\x1b]0;own`)
	for _, c := range [][]string{{"audit", batch}, {"show", batch, "0"}, {"show", batch, "9"}, {"grade", out}, {"pivot", batch}, {"diff", batch, batch}, {"view", batch, "--out", filepath.Join(out, "page.html")}, {"score", "--in", bad, "--out", bad, "--endpoint", bad, "--model", bad}, {"audit", filepath.Join(out, "no"+bad)}, {"show", filepath.Join(out, "no"+bad), "0"}, {"certify", "--model", bad}, {"convert", "--in", bad, "--model", bad}, {bad}} {
		clean(c...)
	}
	for _, more := range []map[string]any{
		{"status": bad}, {"status": "aborted", "status_reason": bad}, {"status": "error", "error": bad}, {"outcome": map[string]any{bad: bad}},
		{"turns": []map[string]any{{"message": 9, bad: bad}}}, {"messages": []map[string]any{{"role": bad, "content": "x"}}}, {"messages": []map[string]any{{"role": "tool", "tool_call_id": bad, "content": "x"}}},
		{bad: bad}, {"outcome": nil}, {"template_kwargs": map[string]any{bad: bad}},
	} {
		in := dump(t, line(true, more), line(false, nil))
		clean("convert", "--model", model, "--in", in, "--out", t.TempDir(), "--format", "native")
		clean("convert", "--model", model, "--in", in, "--out", t.TempDir())
	}
}
