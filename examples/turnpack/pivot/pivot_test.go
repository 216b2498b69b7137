package pivot

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func run(t *testing.T, in string, args ...string) (int, string, string) {
	var out, errOut bytes.Buffer
	code := Main(t.Context(), args, strings.NewReader(in), &out, &errOut)
	return code, out.String(), errOut.String()
}

const call = `{"type": "function_call", "name": "view", "arguments": "{\"path\": \"/a/b.py\"}"}`

func TestScore(t *testing.T) {
	good := `{"id": 1, "expected_action": ` + call + `, "response": {"output": [` + call + `]}, "reward": 9}`
	other := `{"id": 2, "expected_action": ` + call + `, "response_output": [` + strings.ReplaceAll(call, "view", "edit") + `]}`
	for _, server := range []string{"argument_comparison", "swe_pivot"} {
		code, out, errOut := run(t, good+"\n\n"+other+"\n", "score", "--server", server)
		require.Zero(t, code, errOut)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Len(t, lines, 2)
		require.Contains(t, lines[0], `"reward":1,`, server)
		require.Contains(t, lines[1], `"reward":0,`, server)
		require.Contains(t, errOut, "2 steps scored, mean reward 0.5000, 0 not scored")
	}
	code, out, errOut := run(t, `{"id": 3, "expected_action": `+call+`, "reward": 1}`+"\n", "score")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "standard input:1")
	require.NotContains(t, out, "reward", "an old reward is no new one")
	code, _, _ = run(t, "[]\n", "score")
	require.Equal(t, 1, code)
	code, _, _ = run(t, "", "no such verb")
	require.Equal(t, 2, code)
	file := filepath.Join(t.TempDir(), "out.jsonl")
	for _, want := range []int{0, 1} {
		code, _, _ = run(t, good, "score", "--out", file)
		require.Equal(t, want, code)
	}
}

// The kit's cases, through the command, have the rewards of NeMo-Gym.
func TestScoreAsNeMoGym(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "..", "..", "shared", "conformance", "pivot", "argument_comparison.jsonl"))
	if err != nil {
		t.Skipf("SKIPPED: the conformance kit pivot is not beside the checkout: %v", err)
	}
	defer f.Close()
	var in strings.Builder
	var want []float64
	for s := bufio.NewScanner(f); s.Scan(); {
		var c struct {
			Config struct {
				Words float64 `json:"word_count_similarity_threshold"`
				Count bool    `json:"parallel_tool_call_rewarding"`
			}
			Expected struct{ Reward *float64 }
		}
		require.NoError(t, json.Unmarshal(s.Bytes(), &c))
		if c.Config.Words != 0 || c.Config.Count || c.Expected.Reward == nil {
			continue
		}
		in.WriteString(s.Text() + "\n")
		want = append(want, *c.Expected.Reward)
	}
	require.NotEmpty(t, want)
	code, out, errOut := run(t, in.String(), "score")
	require.Zero(t, code, errOut)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, len(want))
	for i, line := range lines {
		var got struct{ Reward float64 }
		require.NoError(t, json.Unmarshal([]byte(line), &got))
		require.InDelta(t, want[i], got.Reward, 1e-9, line)
	}
}
