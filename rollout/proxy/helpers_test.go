package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
)

func withCancel() (context.Context, context.CancelFunc) {
	return context.WithCancel(context.Background())
}

const (
	waitLong  = 5 * time.Second
	waitShort = 2 * time.Millisecond
)

const cutRequest = `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"run"}}]`

// recordStream returns the fake engine's stream for a call with tools.
func recordStream(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(fakeengine.New(fakeengine.Options{Script: []fakeengine.Reply{{Text: `é<tool_call>{"name":"run","arguments":{}}</tool_call>`}}, Event: 16}))
	defer s.Close()
	res, err := http.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(cutRequest+`,"stream":true,"stream_options":{"include_usage":true},"return_token_ids":true,"logprobs":true}`))
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(b)
}

// Streams of SGLang's /generate with cumulative events, and with incremental ones
// (--incremental-streaming-output).
const (
	sglangCumulative = `data: {"text":"Hi","output_ids":[13],"meta_info":{"id":"a1","finish_reason":null,"prompt_tokens":3,"weight_version":"4","cached_tokens":0,"completion_tokens":1,"output_token_logprobs":[[-0.5,13,null]]}}

data: {"text":"Hi you","output_ids":[13,14,15],"meta_info":{"id":"a1","finish_reason":null,"prompt_tokens":3,"weight_version":"4","cached_tokens":0,"completion_tokens":3,"output_token_logprobs":[[-0.5,13,null],[-0.25,14,null],[-0.125,15,null]]}}

data: {"text":"Hi you.","output_ids":[13,14,15,16,2],"meta_info":{"id":"a1","finish_reason":{"type":"stop","matched":2},"prompt_tokens":3,"weight_version":"5","cached_tokens":1,"completion_tokens":5,"output_token_logprobs":[[-0.5,13,null],[-0.25,14,null],[-0.125,15,null],[-1,16,null],[0,2,null]]}}

data: [DONE]

`
	sglangIncremental = `data: {"text":"Hi","output_ids":[13],"meta_info":{"id":"a1","finish_reason":null,"prompt_tokens":3,"weight_version":"4","cached_tokens":0,"completion_tokens":1,"output_token_logprobs":[[-0.5,13,null]]}}

data: {"text":" you","output_ids":[14,15],"meta_info":{"id":"a1","finish_reason":null,"prompt_tokens":3,"weight_version":"4","cached_tokens":0,"completion_tokens":3,"output_token_logprobs":[[-0.25,14,null],[-0.125,15,null]]}}

data: {"text":".","output_ids":[16,2],"meta_info":{"id":"a1","finish_reason":{"type":"stop","matched":2},"prompt_tokens":3,"weight_version":"5","cached_tokens":1,"completion_tokens":5,"output_token_logprobs":[[-1,16,null],[0,2,null]]}}

data: [DONE]

`
)
