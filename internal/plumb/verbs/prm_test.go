package verbs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/internal/plumb/pipe"
)

// runPRMKit runs a kit file through a verb and compares every expected field except those
// in skip, numbers within 1e-12 and everything else exactly.
func runPRMKit(t *testing.T, file, verb string, want int, skip ...string) {
	t.Helper()
	path := kit.Dir(t, "conformance", "prm", file)
	r, err := pipe.Open(path)
	require.NoError(t, err)
	defer r.Close()
	var stripped, out, errs bytes.Buffer
	var expected []map[string]any
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var line map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(sc.Bytes(), &line))
		var e map[string]any
		require.NoError(t, json.Unmarshal(line["expected"], &e))
		for _, s := range skip {
			delete(e, s)
		}
		e["id"] = mustAny(t, line["id"])
		expected = append(expected, e)
		delete(line, "expected")
		b, err := json.Marshal(line)
		require.NoError(t, err)
		stripped.Write(append(b, '\n'))
	}
	require.NoError(t, sc.Err())
	require.Len(t, expected, want, "the kit has changed size")

	code := Main(context.Background(), []string{verb}, &stripped, &out, &errs)
	require.Equal(t, 0, code, errs.String())
	dec := json.NewDecoder(&out)
	for _, e := range expected {
		var got map[string]any
		require.NoError(t, dec.Decode(&got))
		for key, w := range e {
			g, ok := got[key]
			require.Truef(t, ok, "%v: no field %q in the answer", e["id"], key)
			if !near(w, g) {
				t.Errorf("%v: %s is %v, want %v", e["id"], key, g, w)
			}
		}
	}
	require.False(t, dec.More(), "more answers than lines")
}

func mustAny(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal(raw, &v))
	return v
}

func near(w, g any) bool {
	switch w := w.(type) {
	case float64:
		g, ok := g.(float64)
		return ok && math.Abs(w-g) <= 1e-12
	case []any:
		g, ok := g.([]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for i := range w {
			if !near(w[i], g[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := g.(map[string]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for k := range w {
			v, ok := g[k]
			if !ok || !near(w[k], v) {
				return false
			}
		}
		return true
	}
	return w == g
}

func TestVotesKit(t *testing.T) {
	runPRMKit(t, "judge_texts.jsonl", "votes", 116)
	runPRMKit(t, "votes.jsonl", "votes", 64)
	runPRMKit(t, "combine.jsonl", "votes", 40)
}

func TestVotesRefusesForeignLine(t *testing.T) {
	var out, errs bytes.Buffer
	code := Main(context.Background(), []string{"votes"}, bytes.NewBufferString(`{"id":"x","expected":{"score":1}}`+"\n"), &out, &errs)
	require.Equal(t, 1, code)
	require.Contains(t, out.String(), `"kind":"input"`)
}

// The kit's complete prompts use another system's wording, so only the sections are
// compared.
func TestJudgePromptKit(t *testing.T) {
	runPRMKit(t, "prompts.jsonl.gz", "judge-prompt", 20, "user_prompt_len", "user_prompt_sha256")
}

// The index also counts steps missing in the log: of the eight steps before it, those
// that exist are shown.
func TestHistoryIsCountedFromTheIndexNotFromTheLog(t *testing.T) {
	line := `{"id": 1, "problem": "p", "step_index": 11, "steps": [` + strings.TrimSuffix(strings.Repeat(`{"action": "a", "returncode": 0, "output": ""},`, 10), ",") + `]}`
	var stdout, stderr bytes.Buffer
	require.Equal(t, 0, Main(context.Background(), []string{"judge-prompt"}, strings.NewReader(line), &stdout, &stderr), stderr.String())
	require.Contains(t, stdout.String(), `"n_history":7`)
}
