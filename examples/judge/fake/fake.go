// Package fake is a small OpenAI-compatible server that imitates an LLM judge, so that
// examples and tests run anywhere. It counts words for failures in the step and disagrees
// for some seeds.
package fake

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// Options configure the server. The zero value answers at once and never fails.
type Options struct {
	// FailEvery makes every n-th request fail with status 503; 0 = never.
	FailEvery int
	// NoBatches refuses requests for more than one choice.
	NoBatches bool
}

// Server is the HTTP handler. It counts requests and votes.
type Server struct {
	o        Options
	requests atomic.Int64
	votes    atomic.Int64
}

// New returns a server.
func New(o Options) *Server { return &Server{o: o} }

// Requests returns the number of requests so far.
func (s *Server) Requests() int64 { return s.requests.Load() }

// Votes returns the number of choices returned so far.
func (s *Server) Votes() int64 { return s.votes.Load() }

type request struct {
	Model    string `json:"model"`
	Messages []struct {
		Content string `json:"content"`
	} `json:"messages"`
	N              int   `json:"n"`
	Seed           int64 `json:"seed"`
	ResponseFormat *struct {
		Type string `json:"type"`
	} `json:"response_format"`
}

type choice struct {
	Index        int     `json:"index"`
	Message      message `json:"message"`
	FinishReason string  `json:"finish_reason"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// maxBody is the largest request accepted, in bytes.
const maxBody = 8 << 20

// ServeHTTP answers POST /v1/chat/completions.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.requests.Add(1)
	if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
		fail(w, http.StatusNotFound, "only POST /v1/chat/completions is served")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var req request
	if err != nil || json.Unmarshal(body, &req) != nil || len(req.Messages) == 0 {
		fail(w, http.StatusBadRequest, "the body is no chat completion request")
		return
	}
	if s.o.NoBatches && req.N > 1 {
		fail(w, http.StatusBadRequest, "n must be 1")
		return
	}
	if s.o.FailEvery > 0 && n%int64(s.o.FailEvery) == 0 {
		fail(w, http.StatusServiceUnavailable, "overloaded")
		return
	}
	s.answer(w, req)
}

func (s *Server) answer(w http.ResponseWriter, req request) {
	choices := make([]choice, max(req.N, 1))
	prompt, completion := 0, 0
	for _, m := range req.Messages {
		prompt += len(strings.Fields(m.Content))
	}
	shown := req.Messages[len(req.Messages)-1].Content
	for i := range choices {
		text := verdict(shown, req.Seed+int64(i), req.ResponseFormat != nil)
		choices[i] = choice{Index: i, Message: message{Role: "assistant", Content: text}, FinishReason: "stop"}
		completion += len(strings.Fields(text))
	}
	s.votes.Add(int64(len(choices)))
	w.Header().Set("Content-Type", "application/json")
	// The error is ignored: the client may have gone away.
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "chatcmpl-fake", "object": "chat.completion", "model": req.Model, "choices": choices,
		"usage": map[string]int{"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
	})
}

var trouble = []string{"error", "traceback", "failed", "not found", "no such file"}

// verdict grades the last step of a prompt: negative if its text shows a failure, and
// inverted for one seed in eight.
func verdict(prompt string, seed int64, structured bool) string {
	step := prompt
	if i := strings.LastIndex(prompt, "The step to grade"); i >= 0 {
		step = prompt[i:]
	}
	step = strings.ToLower(step)
	signs := 0
	for _, t := range trouble {
		signs += strings.Count(step, t)
	}
	mark := 1
	if signs > 0 {
		mark = -1
	}
	if seed%8 == 0 {
		mark = -mark
	}
	if structured {
		return fmt.Sprintf(`{"reason": "%d signs of trouble", "score": %d}`, signs, mark)
	}
	return fmt.Sprintf(`I count %d signs of trouble. \boxed{%d}`, signs, mark)
}

func fail(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": text, "type": "fake", "param": nil, "code": nil}})
}
