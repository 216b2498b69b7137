package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// An engine that accepts a request and never answers, and a tool call index that would take all memory, are
// errors that name the engine.
func TestNoReply(t *testing.T) {
	for body, what := range map[string]string{
		"": "it says nothing for 300ms",
		`{"choices":[{"index":0,"message":{"tool_calls":[{"index":2000000000,"function":{"name":"a"}}]},"finish_reason":"tool_calls"}]}`: "tool call 2000000000",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if body == "" {
				<-r.Context().Done()
			}
			fmt.Fprint(w, body)
		}))
		o := engine.Options{URL: server.URL}
		if body == "" {
			o.Silence = 50 * time.Millisecond
		}
		e, err := engine.New(o)
		require.NoError(t, err)
		err = e.Generate(t.Context(), &engine.Request{Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "hi"}}}, func(*engine.Chunk) error { return nil })
		var broken *engine.Error
		require.ErrorAs(t, err, &broken)
		require.Equal(t, http.StatusBadGateway, broken.Status)
		require.Contains(t, broken.Message, what)
		e.Close()
		server.Close()
	}
}

// Each fault of the options is reported under the field that has it.
func TestFaultsOfOptions(t *testing.T) {
	for field, o := range map[string]engine.Options{"MaxReply": {MaxReply: -1}, "Silence": {Silence: -1}} {
		o.URL = "http://localhost"
		_, err := engine.New(o)
		fault, ok := errors.AsType[*rollout.Error](err)
		require.True(t, ok, field)
		require.Equal(t, field, fault.Where.Field)
		require.NotContains(t, err.Error(), "\n", "one fault")
	}
}

// A stream that goes on forever, with text or without, is an error at MaxReply.
func TestEndlessStreams(t *testing.T) {
	for _, delta := range []string{`"content":"x"`, `"reasoning":"x"`, `"tool_calls":[{"index":0,"function":{"arguments":"x"}}]`, `"content":""`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			for err := error(nil); err == nil && r.Context().Err() == nil; {
				_, err = fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{`+delta+`}}]}`+"\n\n")
			}
		}))
		e, err := engine.New(engine.Options{URL: server.URL, MaxReply: 1000})
		require.NoError(t, err)
		n := 0
		err = e.Generate(t.Context(), &engine.Request{Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "hi"}}, Stream: true}, func(*engine.Chunk) error {
			if n++; n > 2000 {
				return errors.New("it goes on")
			}
			return nil
		})
		var broken *engine.Error
		require.ErrorAs(t, err, &broken, delta)
		require.Contains(t, broken.Message, "its reply has over 1000 bytes", delta)
		e.Close()
		server.Close()
	}
}

// A pool reports the faults of all its servers, and which server has each.
func TestFaultsOfPools(t *testing.T) {
	_, err := engine.NewPool(engine.Options{URL: "http://localhost"}, engine.Options{}, engine.Options{URL: "http://localhost", Silence: -1})
	require.ErrorContains(t, err, "servers[1].URL: ")
	require.ErrorContains(t, err, "servers[2].Silence: ")
}

// A server ends the body of a stream after its last event, or keeps it open: the connection is then reused or
// closed.
func TestConnectionsOfStreams(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration // from the last event to the end
		calls int
		most  int64 // connections
	}{{"it ends", time.Millisecond, 20, 2}, {"it stays open", time.Minute, 2, 2}} {
		var opened atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop","token_ids":[1]}]}`+"\n\ndata: [DONE]\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(c.after):
			case <-r.Context().Done():
			}
		}))
		server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				opened.Add(1)
			}
		}
		server.Start()
		e, err := engine.New(engine.Options{URL: server.URL})
		require.NoError(t, err)
		for range c.calls {
			err := e.Generate(context.Background(), &engine.Request{Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "hi"}}, Stream: true}, func(*engine.Chunk) error { return nil })
			require.NoError(t, err, c.name)
		}
		require.LessOrEqual(t, opened.Load(), c.most, c.name)
		e.Close()
		server.Close()
	}
}

// TestRequests: each kind of server gets a request in its own words.
func TestRequests(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	say := []rollout.Message{{Role: rollout.RoleUser, Content: "hi", Name: "bob", Parts: []rollout.Part{{Type: "text", Text: "hi"}}}}
	for _, x := range []struct {
		o    engine.Options
		r    engine.Request
		want string
	}{
		{engine.Options{Model: "served"}, engine.Request{Messages: say, Raw: []byte(`{"model":"gpt","messages":[]}`)}, `/v1/chat/completions {"logprobs":true,"return_token_ids":true,"model":"served","messages":[]}`},
		{engine.Options{Model: "served"}, engine.Request{Messages: say, Fields: map[string]json.RawMessage{"model": raw(`"gpt"`), "stop": raw(`"."`)}},
			`/v1/chat/completions {"messages":[{"role":"user","content":[{"type":"text","text":"hi"}],"name":"bob"}],"stop":".","model":"served","logprobs":true,"return_token_ids":true}`},
		{engine.Options{Model: "served"}, engine.Request{Prompt: []rollout.TokenID{1, 2}, Fields: map[string]json.RawMessage{"model": raw(`"gpt"`), "tools": raw(`[]`), "max_completion_tokens": raw(`5`)}},
			`/v1/completions {"prompt":[1,2],"max_tokens":5,"model":"served","return_token_ids":true,"logprobs":0}`},
		{engine.Options{Kind: "vllm-tokens"}, engine.Request{Text: "a", IDsOnly: true}, `/v1/completions {"prompt":"a","return_token_ids":true,"logprobs":0}`},
		{engine.Options{Kind: "sglang"}, engine.Request{Text: "a", N: 2, Fields: map[string]json.RawMessage{"top_p": raw(`null`)}},
			`/generate {"return_logprob":true,"logprob_start_len":-1,"sampling_params":{"max_new_tokens":null,"n":2},"text":"a"}`},
	} {
		got := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got = r.URL.Path + " " + string(body)
			http.Error(w, "seen", http.StatusBadRequest)
		}))
		x.o.URL = server.URL
		e, err := engine.New(x.o)
		require.NoError(t, err)
		require.Error(t, e.Generate(t.Context(), &x.r, func(*engine.Chunk) error { return nil }))
		require.Equal(t, x.want, got)
		e.Close()
		server.Close()
	}
}
