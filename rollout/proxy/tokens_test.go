package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// askedOf serves an engine and records which paths are requested.
func askedOf(t *testing.T, o fakeengine.Options) (url string, asked *[]string) {
	asked = &[]string{}
	fake := fakeengine.New(o)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path)
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(upstream.Close)
	return upstream.URL, asked
}

// TestTokensOut: vLLM's tokens-only endpoint, streamed or not, gives each dialect the same replies and record
// as the engine's text; stop strings and prompts without ids go to the endpoints with text.
func TestTokensOut(t *testing.T) {
	for _, unstreamed := range []bool{false, true} {
		for name, q := range requests {
			for _, stream := range []string{"", `,"stream":true`} {
				url, asked := askedOf(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}, Event: 3, Unstreamed: unstreamed})
				w := (&world{t: t}).on(url, "vllm-tokens", tokenIn)
				for i, id := range []string{"a", "b"} {
					status, body := w.ask("/rollouts/"+id+q.path, q.body+stream+"}")
					require.Equal(t, 200, status, body)
					text, reasoning, calls := told(t, name, stream != "", body)
					require.Equal(t, "Reading é.", text)
					require.Equal(t, "Look first.", reasoning)
					require.Equal(t, []string{`run {"command": "ls"}`, `run {"command": "cat \"a\""}`}, calls)
					turn := &w.rollout(id).Turns[0]
					require.Equal(t, sampled(toolText), turn.Output)
					require.Equal(t, "<system>Be brief.<user>What is here?<assistant>", string(bytesOf(turn.Prompt.Add)))
					require.Equal(t, live.StateOK, w.calls(id)[0].State)
					want := i + 1
					if unstreamed {
						want++ // the first is refused, and the next not tried
					}
					require.Len(t, *asked, want)
					require.Equal(t, "/inference/v1/generate", (*asked)[i])
				}
			}
		}
	}
	url, asked := askedOf(t, fakeengine.Options{Script: []fakeengine.Reply{{Content: "one two"}}})
	w := (&world{t: t}).on(url, "vllm-tokens", tokenIn)
	w.ask("/rollouts/r/v1/chat/completions", requests["chat"].body+`,"stop":["two"]}`)
	w.ask("/rollouts/r/v1/chat/completions", requests["chat"].body+`,"tool_choice":"required"}`)
	w.ask("/rollouts/r/v1/chat/completions", requests["chat"].body+`,"n":2}`)
	require.Equal(t, []string{"/v1/completions", "/v1/chat/completions", "/v1/completions"}, *asked)
	url, _ = askedOf(t, fakeengine.Options{Script: []fakeengine.Reply{{Content: "né"}}})
	w = (&world{t: t}).on(url, "vllm-tokens", tokenIn)
	_, body := w.ask("/rollouts/r/v1/chat/completions", requests["chat"].body+`,"max_tokens":2}`)
	require.Equal(t, "m", parsed(t, body)["model"], "as the client calls it: these replies have no name")
	require.Equal(t, "n\uFFFD", at(parsed(t, body), "choices", 0, "message", "content"), "the limit cut a character")

	w, p := paused(t, fakeengine.Options{}, 5, 2)
	url, _ = askedOf(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}, Event: 3})
	e, err := engine.New(engine.Options{URL: url, Kind: "vllm-tokens"})
	require.NoError(t, err)
	p.Engine = e
	_, body = w.ask("/rollouts/r/v1/chat/completions", requests["chat"].body+`}`)
	text, _, _ := told(t, "chat", false, body)
	require.Equal(t, "Reading é.", text)
	turn := &w.rollout("r").Turns[0]
	require.Equal(t, sampled(toolText), turn.Output)
	require.Len(t, turn.Versions, 3, "pauses continue it, too")
}

// TestPrefill: a reply that continues an assistant message is recorded with that message in its prompt, and
// messages that cannot be continued are refused in the dialect's format.
func TestPrefill(t *testing.T) {
	const said = `{"role":"user","content":"What is here?"},{"role":"assistant","content":"Let me"}]`
	for _, exact := range []bool{false, true} {
		set := []func(*proxy.Options){}
		if exact {
			set = append(set, tokenIn)
		}
		for path, body := range map[string]string{
			"/v1/chat/completions": `{"model":"m","continue_final_message":true,"add_generation_prompt":false,"messages":[` + said,
			"/v1/messages":         `{"model":"m","max_tokens":99,"messages":[` + said,
		} {
			w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{{Content: " look."}}}, set...)
			status, text := w.ask("/rollouts/r"+path, body+"}")
			require.Equal(t, 200, status, text)
			require.Contains(t, text, `" look."`)
			turn := w.rollout("r").Turns[0]
			require.Equal(t, sampled(" look."), turn.Output)
			prompt := string(bytesOf(turn.Prompt.Add))
			require.True(t, strings.HasSuffix(prompt, "<assistant>Let me"), prompt)
			r := w.rollout("r")
			require.Equal(t, rollout.SampledPrefilled, r.Messages[1].Sampled)
			require.Equal(t, live.StateOK, w.calls("r")[0].State)
			if path == "/v1/messages" {
				_, text = w.ask("/rollouts/r/v1/messages/count_tokens", body+"}")
				require.EqualValues(t, len(prompt), parsed(t, text)["input_tokens"])
			}
		}
	}
	w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{{Content: "x"}}})
	for body, why := range map[string]string{
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b "}]}`:                                                   "white space",
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":""}]}`:                                                     "empty",
		`{"model":"m","max_tokens":9,"thinking":{"type":"enabled","budget_tokens":5},"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`:    "thinking",
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"run","input":{}}]}]}`: "tool calls without",
	} {
		status, text := w.ask("/rollouts/p/v1/messages", body)
		require.Equal(t, 400, status, text)
		require.Contains(t, text, why)
		require.Equal(t, "invalid_request_error", at(parsed(t, text), "error", "type"))
	}
	status, text := w.ask("/rollouts/p/v1/chat/completions", `{"model":"m","continue_final_message":true,"messages":[{"role":"user","content":"a"}]}`)
	require.Equal(t, 400, status, text)
	require.Contains(t, text, "last message")
	require.Zero(t, w.fake.Requests())
}
