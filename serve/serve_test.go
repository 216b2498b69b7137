package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/serve"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/prompt"
)

// service starts a service with the embedded model and a fake engine for it.
func service(t *testing.T, o serve.Options, f fakeengine.Options) (ask func(method, path, body string) (int, string)) {
	t.Helper()
	return serviceOf(t, o, f, nil)
}

// serviceOf also counts the bytes that the engine sends.
func serviceOf(t *testing.T, o serve.Options, f fakeengine.Options, sent *atomic.Int64) (ask func(method, path, body string) (int, string)) {
	t.Helper()
	m, err := embedded.Model()
	require.NoError(t, err)
	f.Model = m
	h := fakeengine.New(f)
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(flushes{w, sent}, r) }))
	t.Cleanup(fake.Close)
	o.Engines, o.Model, o.Journal, o.Out = []engine.Options{{URL: fake.URL}}, m, t.TempDir(), t.TempDir()
	o.Groups = serve.Groups{Size: 1, Rows: func(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error {
		_, err := turnpack.Pipeline{Model: m}.Run(ctx, turnpack.Slice(group), w)
		return err
	}}
	s, err := serve.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return func(method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
}

// flushes counts the flushes of a reply.
type flushes struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (f flushes) Flush() {
	f.ResponseWriter.(http.Flusher).Flush()
	if f.n != nil {
		f.n.Add(1)
	}
}

// Ids outside the model's vocabulary: the call is not trained, and the session continues.
func TestIDsOfNoToken(t *testing.T) {
	for _, exact := range []bool{false, true} {
		ask := service(t, serve.Options{Exact: exact}, fakeengine.Options{Faults: fakeengine.Faults{Beyond: true}, Script: []fakeengine.Reply{{Content: "hello"}}})
		messages := `{"role":"user","content":"hi"}`
		for range 3 {
			code, text := ask("POST", "/rollouts/a/v1/chat/completions", `{"model":"m","messages":[`+messages+`]}`)
			require.Equal(t, 200, code, "exact %v: %s", exact, text)
			messages += `,{"role":"assistant","content":"hello"},{"role":"user","content":"and?"}`
		}
		_, text := ask("GET", "/rollouts/a/calls", "")
		require.Equal(t, 3, strings.Count(text, `"state":"incomplete"`), "exact %v: %s", exact, text)
	}
}

// A secret file that a kill or a full disk left empty is written anew, and a truncated one is refused: with
// either, anybody could make tokens.
func TestSecret(t *testing.T) {
	for text, fine := range map[string]bool{"": true, "cut": false, "a secret of somebody's own": true} {
		o := serve.Options{Engines: []engine.Options{{URL: "http://127.0.0.1:1"}}, Journal: t.TempDir(), Out: t.TempDir(),
			Groups: serve.Groups{Rows: func(context.Context, []*rollout.Rollout, *export.Writer) error { return nil }}}
		path := filepath.Join(o.Journal, ".secret")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := serve.Open(o)
		if !fine {
			require.ErrorContains(t, err, "the secret of the sessions' tokens has 3 bytes")
			continue
		}
		require.NoError(t, err)
		require.NotEmpty(t, s.Token("a"))
		require.NoError(t, s.Close(t.Context()))
		now, err := os.ReadFile(path)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(now), 16)
		require.Contains(t, string(now), text)
		files, err := filepath.Glob(filepath.Join(o.Journal, "[^.]*"))
		require.NoError(t, err)
		require.Equal(t, []string{filepath.Join(o.Journal, "00000001.tpj")}, files, "the folder is a dump to read, and other files are told as unread")
	}
}

// Arguments whose spacing differs from the template's: one row for all turns if the spelling is kept, one for
// each turn if not.
func TestKeptSpelling(t *testing.T) {
	for keep, rows := range map[string]int{"": 4, "spelling": 1} {
		var script []fakeengine.Reply
		for i := range 4 {
			script = append(script, fakeengine.Reply{Text: fmt.Sprintf("<tool_call>\n{\"name\":\"bash\",   \"arguments\":{\"command\":\"cat %d\"}}\n</tool_call>", i)})
		}
		ask := service(t, serve.Options{Exact: true, Prompt: prompt.Options{Keep: keep}}, fakeengine.Options{Script: script})
		messages := []any{map[string]any{"role": "user", "content": "hi"}}
		for range 4 {
			body, err := json.Marshal(map[string]any{"model": "m", "messages": messages, "tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "bash", "parameters": map[string]any{"type": "object"}}}}})
			require.NoError(t, err)
			code, text := ask("POST", "/rollouts/a/v1/chat/completions", string(body))
			require.Equal(t, 200, code, text)
			var got struct {
				Choices []struct{ Message json.RawMessage }
			}
			require.NoError(t, json.Unmarshal([]byte(text), &got))
			var said struct {
				ToolCalls []struct{ ID string } `json:"tool_calls"`
			}
			require.NoError(t, json.Unmarshal(got.Choices[0].Message, &said))
			require.Len(t, said.ToolCalls, 1, text)
			messages = append(messages, got.Choices[0].Message, map[string]any{"role": "tool", "tool_call_id": said.ToolCalls[0].ID, "content": "ok"})
		}
		code, text := ask("POST", "/rollouts/a/end", `{"group":"g","resolved":true}`)
		require.Equal(t, 200, code, text)
		require.Contains(t, text, fmt.Sprintf(`"rows":%d,`, rows), keep)
		_, text = ask("GET", "/metrics", "")
		require.Contains(t, text, "turnpack_prompts")
		require.Regexp(t, `turnpack_engine_down{engine="http://127.0.0.1:\d+"} 0\n`, text)
	}
}

// A trainer changes the weights while replies are sampled: the record is that of one uninterrupted reply, and
// holds which weights sampled what.
func TestContinue(t *testing.T) {
	reply := fakeengine.Reply{Text: "<think>\n" + strings.Repeat("naïve 🙂 ", 20) + "\n</think>\n\nIt is 你好."}
	var turns [2]rollout.Turn
	for i := range turns {
		var sent atomic.Int64
		ask := serviceOf(t, serve.Options{Exact: true}, fakeengine.Options{Script: []fakeengine.Reply{reply}, Faults: fakeengine.Faults{Delay: time.Millisecond}}, &sent)
		steer := func(path, body string) {
			code, text := ask("POST", path, body)
			require.Equal(t, 200, code, text)
		}
		steer("/version", `{"version":1}`)
		done := make(chan string)
		go func() {
			_, text := ask("POST", "/rollouts/a/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
			done <- text
		}()
		text := ""
		for v := 2; text == ""; {
			select {
			case text = <-done:
			case <-time.After(time.Millisecond):
				if i == 0 || v > 5 || sent.Load() < 30 {
					continue
				}
				steer("/pause", `{"policy":"continue"}`)
				steer("/version", fmt.Sprintf(`{"version":%d}`, v))
				sent.Store(0)
				v++
				steer("/resume", "")
			}
		}
		require.Contains(t, text, "It is 你好.")
		require.Contains(t, text, strings.TrimSpace(strings.Repeat("naïve 🙂 ", 20)))
		_, line := ask("GET", "/rollouts/a", "")
		r, err := jsonl.Parse([]byte(strings.TrimSpace(line)), jsonl.Options{})
		require.NoError(t, err)
		require.Len(t, r.Turns, 1)
		require.Empty(t, r.Turns[0].Incomplete)
		turns[i] = r.Turns[0]
	}
	require.Equal(t, turns[0].Output, turns[1].Output)
	require.Equal(t, turns[0].Logprobs, turns[1].Logprobs)
	require.Equal(t, turns[0].Prompt, turns[1].Prompt)
	require.Empty(t, turns[0].Versions)
	require.Greater(t, len(turns[1].Versions), 1)
}
