package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

func runMerge(t *testing.T, in string, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(context.Background(), append([]string{"merge"}, args...), strings.NewReader(in), &out, &errs)
	require.Zero(t, code, "%s%s", errs.String(), out.String())
	return out.Bytes()
}

// The kit's own checker accepts the verb's output.
func TestMergeKit(t *testing.T) {
	kit.OneGoroutine(t)
	dir := kit.Dir(t, "conformance", "lineage")
	cases := filepath.Join(dir, "cases.jsonl.gz")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: the kit's checker needs python3 on the PATH: install it to run this test")
	}
	for _, tc := range []struct {
		mode    string
		rows    int
		dropped int
		args    []string
	}{
		{"exact", 598, 0, []string{"--drift", "fork"}},
		{"repair", 457, 0, []string{"--drift", "splice", "--max-sub-tokens", "64"}},
		{"repair", 446, 21, []string{"--drift", "repair"}},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.jsonl")
			require.NoError(t, os.WriteFile(path, runMerge(t, "", append(tc.args, cases)...), 0o600))
			out, err := exec.Command(python, filepath.Join(dir, "check.py"), cases, path, "--mode", tc.mode, "--json").Output()
			require.NoError(t, err, "%s", out)
			var sum struct {
				Rows    int `json:"rows"`
				Dropped int `json:"declared_dropped"`
			}
			require.NoError(t, json.Unmarshal(out, &sum))
			require.LessOrEqual(t, sum.Rows, tc.rows)
			require.LessOrEqual(t, sum.Dropped, tc.dropped)
		})
	}
}

func TestMergePlainPromptsAndFailures(t *testing.T) {
	const line = `{"id":"a","turns":[{"prompt_ids":[1],"completion_ids":[10000,2],"logprobs":[-0.5,-0.25],"finish_reason":"stop"},` +
		`{"prompt_ids":[1,10001,10002,2],"completion_ids":[10003,2],"logprobs":[-0.5,-0.125],"finish_reason":"stop"}]}` + "\n"
	require.Contains(t, string(runMerge(t, line)), `"rows":[{"input_ids":[1,10000,2],"loss_mask":[0,1,1],"logprobs":[0,-0.5,-0.25]`)
	require.Contains(t, string(runMerge(t, line, "--drift", "auto")), `"subs":[[1,1,2]]`)

	var out, errs bytes.Buffer
	require.Equal(t, 1, Main(context.Background(), []string{"merge", "--drift", "fail"}, strings.NewReader(line), &out, &errs))
	require.Contains(t, out.String(), `"kind":"drift"`)
	out.Reset()
	require.Equal(t, 1, Main(context.Background(), []string{"merge"}, strings.NewReader(`{"id":"b"}`), &out, &errs))
	require.Contains(t, out.String(), `"kind":"format"`, "a case without turns is not an empty rollout")
	require.Equal(t, 2, Main(context.Background(), []string{"merge", "--drift", "guess"}, strings.NewReader(line), &out, &errs))
	require.Equal(t, 2, Main(context.Background(), []string{"merge", "--max-drop-frac", "2"}, strings.NewReader(line), &out, &errs))
}
