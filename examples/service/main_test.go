package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// server answers as vLLM does: the reply to the last message is that message
// backwards.
type server struct {
	t     *testing.T
	model *tokenize.Model
	bare  bool // answer without token ids

	mu      sync.Mutex
	sampled int // tokens over all answers
}

func (e *server) encode(text string) []rollout.TokenID {
	var enc engine.Encoding
	require.NoError(e.t, e.model.Tokenizer.Encode(&enc, text, engine.EncodeOptions{}))
	return enc.IDs
}

func (e *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Messages       json.RawMessage `json:"messages"`
		ReturnTokenIDs bool            `json:"return_token_ids"`
		Logprobs       bool            `json:"logprobs"`
	}
	if json.NewDecoder(r.Body).Decode(&q) != nil || !q.ReturnTokenIDs || !q.Logprobs || r.URL.Path != "/v1/chat/completions" {
		http.Error(w, `{"error":"refused"}`, http.StatusTeapot)
		return
	}
	messages, err := chat.ParseJSON(q.Messages)
	require.NoError(e.t, err)
	conv, err := chat.NewConversation(messages, chat.Null(), chat.Null(), chat.ConversationOptions{})
	require.NoError(e.t, err)
	prompt, err := e.model.Template.Render(r.Context(), conv, chat.Input{AddGenerationPrompt: true})
	require.NoError(e.t, err)
	var said []struct{ Content string }
	require.NoError(e.t, json.Unmarshal(q.Messages, &said))
	var back strings.Builder
	for _, c := range said[len(said)-1].Content {
		back.WriteString(string(c) + "?")
	}
	output := append(e.encode(back.String()), e.model.Stops()[0])
	e.mu.Lock()
	e.sampled += len(output)
	e.mu.Unlock()
	probs := make([]map[string]any, len(output))
	for i := range probs {
		probs[i] = map[string]any{"token": "x", "logprob": -0.25}
	}
	choice := map[string]any{
		"index": 0, "finish_reason": "stop", "token_ids": output,
		"message":  map[string]any{"role": "assistant", "content": back.String()},
		"logprobs": map[string]any{"content": probs},
	}
	answer := map[string]any{"id": fmt.Sprintf("call-%d", len(said)), "choices": []any{choice}, "prompt_token_ids": e.encode(prompt.Text)}
	if e.bare {
		delete(choice, "token_ids")
		delete(answer, "prompt_token_ids")
	}
	json.NewEncoder(w).Encode(answer)
}

// start serves a fake engine and the service that talks to it.
func start(t *testing.T, group int) (*server, string, string) {
	t.Helper()
	model, err := embedded.Model()
	require.NoError(t, err)
	e := &server{t: t, model: model}
	upstream := httptest.NewServer(e)
	t.Cleanup(upstream.Close)
	dir := filepath.Join(t.TempDir(), "batches")
	b, err := newBatches(model, dir)
	require.NoError(t, err)
	server := httptest.NewServer(newService(upstream.URL, group, b).handler())
	t.Cleanup(server.Close)
	return e, server.URL, dir
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	answer, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

// play is an agent of three steps.
func play(t *testing.T, base, task string) {
	t.Helper()
	messages := []map[string]string{{"role": "user", "content": task}}
	for step := range 3 {
		body, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
		require.NoError(t, err)
		status, text := post(t, base+"/v1/chat/completions", string(body))
		require.Equal(t, http.StatusOK, status, text)
		var answer struct {
			Choices []struct{ Message map[string]string }
		}
		require.NoError(t, json.Unmarshal([]byte(text), &answer))
		messages = append(messages, answer.Choices[0].Message, map[string]string{"role": "user", "content": fmt.Sprint("observation ", step)})
	}
}

// Two groups of four run at once; each becomes one batch in which every sampled
// token is trained once with the engine's ids and log probabilities.
func TestGroupsBecomeBatches(t *testing.T) {
	e, url, dir := start(t, 4)
	var wg sync.WaitGroup
	for g := range 2 {
		for i := range 4 {
			wg.Go(func() {
				base := fmt.Sprintf("%s/rollouts/g%d-%d", url, g, i)
				play(t, base, fmt.Sprint("task ", g))
				status, text := post(t, base+"/end", fmt.Sprintf(`{"group":"g%d","resolved":%t}`, g, i == 0))
				require.Equal(t, http.StatusOK, status, text)
			})
		}
	}
	wg.Wait()
	trained, groups := 0, map[string]bool{}
	for n := 1; n <= 2; n++ {
		stem := filepath.Join(dir, fmt.Sprintf("batch_%06d", n))
		rows, _, err := export.ReadAll(stem + ".parquet")
		require.NoError(t, err)
		require.Len(t, rows, 4)
		sum := 0.0
		for _, r := range rows {
			groups[r.Group] = true
			sum += *r.Advantage
			trained += r.Trained()
			for i, f := range r.Flags {
				if f&rollout.FlagSampled != 0 {
					require.InDelta(t, -0.25, r.Logprob[i], 1e-6)
				}
			}
		}
		require.InDelta(t, 0, sum, 1e-6)
		recorded, err := os.ReadFile(stem + ".jsonl")
		require.NoError(t, err)
		require.Equal(t, 4, bytes.Count(recorded, []byte("\n")))
	}
	require.Len(t, groups, 2)
	require.Equal(t, e.sampled, trained)
}

func TestRefusals(t *testing.T) {
	e, url, dir := start(t, 1)
	for name, c := range map[string]struct {
		path, body string
		status     int
		says       string
	}{
		"streaming":    {"/rollouts/a/v1/chat/completions", `{"stream":true}`, http.StatusBadRequest, "without streaming"},
		"not JSON":     {"/rollouts/a/v1/chat/completions", `hello`, http.StatusBadRequest, "invalid character"},
		"no call":      {"/rollouts/a/end", `{"group":"g","resolved":true}`, http.StatusConflict, "no recorded call"},
		"no group":     {"/rollouts/a/end", `{"resolved":true}`, http.StatusBadRequest, "expected a group"},
		"no verdict":   {"/rollouts/a/end", `{"group":"g"}`, http.StatusBadRequest, "resolved or failure"},
		"unknown word": {"/rollouts/a/end", `{"group":"g","reslved":true}`, http.StatusBadRequest, "reslved"},
	} {
		status, text := post(t, url+c.path, c.body)
		require.Equal(t, c.status, status, name)
		require.Contains(t, text, c.says, name)
	}
	e.bare = true
	status, text := post(t, url+"/rollouts/a/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`)
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, text, "return_token_ids")

	e.bare = false
	play(t, url+"/rollouts/a", "x")
	status, text = post(t, url+"/rollouts/a/end", `{"group":"g","failure":"sandbox lost"}`)
	require.Equal(t, http.StatusOK, status, text)
	require.NotContains(t, text, "batch", "a failure of the infrastructure is never trained")

	_, err := newBatches(e.model, dir)
	require.ErrorContains(t, err, "earlier run")
}

// A second attempt of an id is refused when it ends, not when the group is
// complete: then the whole group would give no batch.
func TestSecondAttemptOfAnID(t *testing.T) {
	_, url, _ := start(t, 2)
	play(t, url+"/rollouts/a", "x")
	status, text := post(t, url+"/rollouts/a/end", `{"group":"g","failure":"sandbox lost"}`)
	require.Equal(t, http.StatusOK, status, text)
	play(t, url+"/rollouts/a", "x")
	status, text = post(t, url+"/rollouts/a/end", `{"group":"g","resolved":true}`)
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, text, "an id of its own")
	play(t, url+"/rollouts/b", "x")
	status, text = post(t, url+"/rollouts/b/end", `{"group":"g","resolved":true}`)
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, `"rows":1`)
}
