package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// decodeLines decodes JSONL to maps and keeps number literals.
func decodeLines(t *testing.T, b []byte) []map[string]any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var out []map[string]any
	for dec.More() {
		var m map[string]any
		require.NoError(t, dec.Decode(&m))
		out = append(out, m)
	}
	return out
}

func TestImportReproducesTheKit(t *testing.T) {
	dir := kit.Dir(t, "data", "trajectories")
	b, err := os.ReadFile(filepath.Join(dir, "expected.jsonl"))
	require.NoError(t, err)
	var out, errs bytes.Buffer
	code := Main(context.Background(), []string{"import", "--root", dir, dir}, nil, &out, &errs)
	require.Zero(t, code, errs.String())
	got := map[string]map[string]any{}
	for _, m := range decodeLines(t, out.Bytes()) {
		if _, failed := m["error"]; failed {
			t.Errorf("%v: %v", m["id"], m["error"])
		}
		got[m["id"].(string)] = m
	}
	want := decodeLines(t, b)
	require.Len(t, want, 124)
	// In addition to the kit's facts: results of internal/oracle/contexts.py, which reads
	// the raw files independently of the importers.
	b, err = os.ReadFile("testdata/contexts.jsonl")
	require.NoError(t, err)
	seen := map[any]map[string]any{}
	for _, m := range decodeLines(t, b) {
		seen[m["id"]] = m
	}
	require.Len(t, seen, 124)
	for _, w := range want {
		id := w["id"].(string)
		g := got[id]
		if g == nil {
			t.Errorf("%s: not imported", id)
			continue
		}
		delete(got, id)
		for _, key := range []string{"tools_sha256", "contexts_sha256"} {
			w[key], g[key] = seen[id][key], shortened(g[key], 16)
		}
		for key, x := range w {
			if key == "traj_id" {
				continue
			}
			if d := cmp.Diff(number(x), number(g[key])); d != "" {
				t.Errorf("%s: %s differs (-want +got):\n%s", id, key, clip(d))
			}
		}
	}
	for id, g := range got {
		t.Errorf("%s: read as %v, which nothing expects", id, g["format"])
	}
}

// For fixtures of clients, frameworks and traces, tools and contexts equal those found by
// internal/oracle/sessions.py, which shares no code with the importers.
func TestImportOfSessions(t *testing.T) {
	b, err := os.ReadFile("testdata/sessions.jsonl")
	require.NoError(t, err)
	var out, errs bytes.Buffer
	require.Zero(t, Main(context.Background(), []string{"import", "--root", "testdata/sessions", "testdata/sessions"}, nil, &out, &errs), errs.String())
	got := map[any]map[string]any{}
	for _, m := range decodeLines(t, out.Bytes()) {
		got[m["id"]] = m
		require.Contains(t, m["id"], m["format"], "read as its own format")
	}
	want := decodeLines(t, b)
	require.Len(t, want, 31)
	require.Len(t, got, len(want))
	for _, w := range want {
		for _, key := range []string{"tools_sha256", "contexts_sha256"} {
			require.Equal(t, w[key], got[w["id"]][key], "%s: %s", w["id"], key)
		}
	}
}

// A Parquet data set is read as it was written, and is not overwritten by a second one.
func TestImportWritesSets(t *testing.T) {
	for to, format := range map[string]string{"chat": "openai-chat", "sharegpt": "sharegpt"} {
		path := filepath.Join(t.TempDir(), "set.parquet")
		var out, errs bytes.Buffer
		args := []string{"import", "--to", to, "--parquet", path, "testdata/sessions/26-autogen/x.json"}
		require.Zero(t, Main(context.Background(), args, nil, &out, &errs), errs.String())
		require.Equal(t, json.Number("1"), decodeLines(t, out.Bytes())[0]["rollouts"])
		require.NotZero(t, Main(context.Background(), args, nil, &out, &errs), "it exists")
		out.Reset()
		require.Zero(t, Main(context.Background(), []string{"import", path}, nil, &out, &errs))
		m := decodeLines(t, out.Bytes())[0]
		require.Equal(t, format, m["format"])
		require.Equal(t, "system,user,assistant,tool,assistant", m["roles"])
	}
	var out, errs bytes.Buffer
	require.Equal(t, 2, Main(context.Background(), []string{"import", "--to", "atif", "--parquet", "x", "y"}, nil, &out, &errs))
}

// shortened cuts each digest to its first digits.
func shortened(list any, digits int) any {
	out := []any{}
	for _, d := range list.([]any) {
		if s, ok := d.(string); ok {
			d = s[:digits]
		}
		out = append(out, d)
	}
	return out
}

func clip(s string) string {
	if len(s) > 1500 {
		return s[:1500] + "…"
	}
	return s
}

// number returns JSON numbers as float64, so that 1 equals 1.0.
func number(v any) any {
	if n, ok := v.(json.Number); ok {
		f, _ := n.Float64()
		return f
	}
	return v
}

func TestImportNamesWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}\n<PLACEHOLDER ROW>\n{\"messages\":[{\"content\":\"no role\"}]}\n"), 0o600))
	var out, errs bytes.Buffer
	code := Main(context.Background(), []string{"import", file, "--root", dir}, nil, &out, &errs)
	require.Equal(t, 1, code, "some line failed")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	require.Contains(t, lines[0], `"id":"x.jsonl#0","format":"openai-chat"`)
	require.Contains(t, lines[1], `{"id":"x.jsonl:2","error":{"kind":"format"`)
	require.Contains(t, lines[2], `{"id":"x.jsonl:3","error":{"kind":"input"`)
}

func TestImportConverts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"id":"a","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"<b>"}]}`), 0o600))
	for to, want := range map[string]string{
		"native": `"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"<b>","sampled":"sampled"}]`,
		"chat":   `"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"<b>"}]`,
		"atif":   `"steps":[{"step_id":1,"source":"user","message":"q"},{"step_id":2,"source":"agent","message":"<b>"}]`,
	} {
		var out, errs bytes.Buffer
		require.Zero(t, Main(context.Background(), []string{"import", "--to", to, file}, nil, &out, &errs), errs.String())
		require.Contains(t, out.String(), want)
	}
	var out, errs bytes.Buffer
	require.Equal(t, 2, Main(context.Background(), []string{"import", "--to", "verse", file}, nil, &out, &errs))
}
