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

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/internal/kit"
)

func run(t *testing.T, in string, args ...string) (int, string, string) {
	var out, errOut bytes.Buffer
	code := cli.Main(&struct {
		Pivot Cmd `cmd:""`
	}{}, &cli.Program{Ctx: t.Context(), In: strings.NewReader(in), Out: &out, Err: &errOut}, append([]string{"pivot"}, args...))
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
	for _, server := range []string{"argument_comparison", "swe_pivot"} {
		code, out, errOut := run(t, `{"expected_answer": "", "metadata": {"category": "edit"}, "response_output": [`+call+`], "reward": 1}`+"\n", "score", "--server", server)
		require.Equal(t, 1, code)
		require.Contains(t, errOut, "says of no step what was expected", server)
		require.NotContains(t, out, "reward")
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

// Flags out of range or of the other verifier are refused, and so is input without lines.
func TestScoreRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--words", "0.6"}, "--words: expected 0 to 0.5, found 0.6"},
		{[]string{"--words", "-1"}, "--words: expected 0 to 0.5, found -1"},
		{[]string{"--words", "NaN"}, "--words: expected 0 to 0.5, found NaN"},
		{[]string{"--words", "0.2", "--server", "swe_pivot"}, "--words: does nothing with --server swe_pivot"},
		{[]string{"--mode", "continuous"}, "--mode: does nothing with --server argument_comparison"},
	} {
		code, _, errOut := run(t, "", append([]string{"score"}, c.args...)...)
		require.Equal(t, 2, code)
		require.Contains(t, errOut, c.want)
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	code, _, errOut := run(t, "\n", "score", "--out", out)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "standard input: holds no line to score")
	require.NoFileExists(t, out)
}

// With swe_pivot, an expected step that is not a tool call gets reward 0, wherever it is
// in the line.
func TestScoreOfNoExpectedCall(t *testing.T) {
	for _, expected := range []string{`null`, `{"type": "message"}`, `{"type": 3}`, `[]`} {
		for _, line := range []string{`{"expected_action": ` + expected + `, "response_output": [` + call + `]}`, `{"response_output": [` + call + `], "expected_action": ` + expected + `}`} {
			code, out, errOut := run(t, line, "score", "--server", "swe_pivot")
			require.Zero(t, code, "%s: %s", line, errOut)
			require.Contains(t, out, `"reward":0,`)
			require.Contains(t, out, `"failure":"expected_action_invalid"`)
		}
	}
}

// kitCase is a case of the kit's pivot files.
type kitCase struct {
	ID       string
	Config   map[string]any
	Expected struct{ Reward *float64 }
}

// The cases of the kit, run through the command, get the rewards of NeMo-Gym. Cases with
// settings that no flag sets are skipped.
func TestScoreAsNeMoGym(t *testing.T) {
	least := map[string]int{"argument_comparison": 50, "swe_pivot": 50}
	for server := range least {
		f, err := os.Open(kit.Dir(t, "conformance", "pivot", server+".jsonl"))
		require.NoError(t, err)
		defer f.Close()
		in, want, ids := map[string]*strings.Builder{}, map[string][]float64{}, map[string][]string{}
		cases := 0
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<24)
		for s.Scan() {
			var c kitCase
			require.NoError(t, json.Unmarshal(s.Bytes(), &c))
			mode, ok := c.Config["reward_mode"].(string)
			if !ok {
				mode = "binary"
			}
			flags := true // settings without a flag must have their default
			for key, value := range c.Config {
				switch key {
				case "reward_mode", "allow_subset", "allow_superset", "parallel_tool_call_reward_mode":
				case "word_count_similarity_threshold":
					flags = flags && value == 0.0
				case "parallel_tool_call_rewarding":
					flags = flags && value == false
				default:
					flags = false
				}
			}
			if !flags || c.Expected.Reward == nil {
				continue
			}
			if in[mode] == nil {
				in[mode] = new(strings.Builder)
			}
			in[mode].WriteString(s.Text() + "\n")
			want[mode], ids[mode] = append(want[mode], *c.Expected.Reward), append(ids[mode], c.ID)
			cases++
		}
		require.NoError(t, s.Err())
		require.GreaterOrEqual(t, cases, least[server], server)
		for mode := range in {
			code, out, errOut := run(t, in[mode].String(), "score", "--server", server, "--mode", mode)
			require.Zero(t, code, errOut)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			require.Len(t, lines, len(want[mode]))
			for i, line := range lines {
				var got struct{ Reward float64 }
				require.NoError(t, json.Unmarshal([]byte(line), &got))
				require.InDelta(t, want[mode][i], got.Reward, 1e-9, ids[mode][i])
			}
		}
	}
}
