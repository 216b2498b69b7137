package proxy_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// TestPythonClients: the official Python clients of OpenAI and Anthropic, streaming and not, with tools, over
// two steps, receive what was sampled, and all of it is recorded.
func TestPythonClients(t *testing.T) {
	bin := os.Getenv("TURNPACK_LIVE_PYTHON")
	if bin == "" {
		bin = os.Getenv("TURNPACK_PYTHON")
	}
	if bin == "" {
		bin = "python3"
	}
	if out, err := exec.Command(bin, "-c", "import openai, anthropic").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: %s has no openai and anthropic (%.100s): set TURNPACK_LIVE_PYTHON=$(sh internal/oracle/python.sh live)", bin, bytes.TrimSpace(out[max(0, len(out)-100):]))
	}
	last := fakeengine.Reply{Content: "Done <&>."}
	w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply, last}, Event: 3})
	cmd := exec.Command(bin, "../../internal/oracle/live_clients.py", w.url+"/rollouts/py")
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	require.NoError(t, err, failed.String())
	type line struct {
		Case, Text, Reasoning, Finish string
		Calls                         [][]any
		Tokens, Step, Counted, Prompt int
		Models                        []string
	}
	seen := map[string]int{}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		var x line
		require.NoError(t, json.Unmarshal(s.Bytes(), &x))
		if x.Models != nil {
			require.Equal(t, []string{"fake"}, x.Models)
			continue
		}
		seen[x.Case]++
		dialect, _, _ := strings.Cut(x.Case, "-")
		switch dialect {
		case "errors":
			require.Contains(t, x.Text, "no session is named")
			require.Equal(t, 401, x.Tokens)
			continue
		case "completions":
			require.Equal(t, toolText, x.Text)
			require.Equal(t, "stop", x.Finish)
			continue
		}
		finish := map[string][]string{"chat": {"tool_calls", "stop"}, "responses": {"completed", "completed"}, "anthropic": {"tool_use", "end_turn"}}[dialect]
		require.Equal(t, finish[x.Step], x.Finish, x.Case)
		require.Equal(t, x.Counted, x.Prompt, x.Case)
		if x.Step == 1 {
			require.Equal(t, last.Content, x.Text, x.Case)
			continue
		}
		require.Equal(t, "Reading é.", x.Text, x.Case)
		require.Equal(t, "Look first.", x.Reasoning, x.Case)
		require.Equal(t, [][]any{{"run", map[string]any{"command": "ls"}}, {"run", map[string]any{"command": `cat "a"`}}}, x.Calls)
		require.Equal(t, len(sampled(toolText)), x.Tokens, x.Case)
	}
	require.Len(t, seen, 10)
	for name := range seen {
		if strings.HasPrefix(name, "errors") {
			continue
		}
		r := w.rollout("py-" + name)
		want := [][]rollout.TokenID{sampled(toolText), sampled(last.Content)}
		if strings.HasPrefix(name, "completions") {
			want = want[:1]
		}
		require.Len(t, r.Turns, len(want), name)
		for i, ids := range want {
			require.Equal(t, ids, r.Turns[i].Output, name)
			require.Equal(t, "", r.Turns[i].Incomplete, name)
		}
		for _, c := range w.calls("py-" + name) {
			require.Equal(t, live.StateOK, c.State, name)
		}
		if len(want) == 2 { // the second request repeats the first reply
			roles := []rollout.Role{}
			for _, m := range r.Messages {
				roles = append(roles, m.Role)
			}
			require.Equal(t, []rollout.Role{"tool", "tool", "assistant"}, roles[len(roles)-3:], name)
			require.Equal(t, 1, strings.Count(string(text(t, r)), "Look first."), name)
			require.Equal(t, 1, strings.Count(string(text(t, r)), "cat"), name)
		}
	}
}

// text returns the messages of a rollout as JSON.
func text(t *testing.T, r *rollout.Rollout) []byte {
	t.Helper()
	b, err := json.Marshal(r.Messages)
	require.NoError(t, err)
	return b
}
