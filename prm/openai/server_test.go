package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// seen is a request as read by the server.
type seen struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	N              int             `json:"n"`
	Seed           int64           `json:"seed"`
	Temperature    *float64        `json:"temperature"`
	MaxTokens      int             `json:"max_tokens"`
	ResponseFormat json.RawMessage `json:"response_format"`
	Kwargs         map[string]any  `json:"chat_template_kwargs"`
	Auth           string          `json:"-"`
	Number         int             `json:"-"` // 1-based over the lifetime of the server
}

// fake is a server on loopback. It sends a well-formed reply unless misbehave returns true, after
// answering itself.
type fake struct {
	*httptest.Server
	requests  atomic.Int64
	inFlight  atomic.Int64
	peak      atomic.Int64
	misbehave func(w http.ResponseWriter, r *http.Request, req seen) bool

	mu  sync.Mutex
	log []seen
}

func newFake(t testing.TB, misbehave func(http.ResponseWriter, *http.Request, seen) bool) *fake {
	f := &fake{misbehave: misbehave}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) url() string { return f.URL + "/v1" }

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	n := f.inFlight.Add(1)
	defer f.inFlight.Add(-1)
	for {
		p := f.peak.Load()
		if n <= p || f.peak.CompareAndSwap(p, n) {
			break
		}
	}
	var req seen
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/v1/chat/completions" || json.Unmarshal(body, &req) != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	req.Auth = r.Header.Get("Authorization")
	req.Number = int(f.requests.Add(1))
	f.mu.Lock()
	f.log = append(f.log, req)
	f.mu.Unlock()
	if f.misbehave != nil && f.misbehave(w, r, req) {
		return
	}
	choices(w, max(req.N, 1), verdictOf(req.Seed))
}

// verdictOf returns an answer that depends only on the seed.
func verdictOf(seed int64) string {
	if seed%3 == 0 {
		return `No. \boxed{-1}`
	}
	return `Yes. \boxed{1}`
}

func choices(w http.ResponseWriter, n int, text string) {
	w.Header().Set("Content-Type", "application/json")
	parts := make([]string, n)
	for i := range parts {
		b, _ := json.Marshal(text)
		parts[i] = fmt.Sprintf(`{"index":%d,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}`, i, b)
	}
	fmt.Fprintf(w, `{"id":"x","object":"chat.completion","choices":[%s],"usage":{"prompt_tokens":100,"completion_tokens":%d}}`, strings.Join(parts, ","), 10*n)
}

func status(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	io.WriteString(w, body)
}

// reset closes the connection without an answer.
func reset(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		conn.Close()
	}
}

// truncated announces more bytes than it sends.
func truncated(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "5000")
	io.WriteString(w, `{"choices":[{"message":{"content":"I thi`)
}

// checkGoroutines fails the test if goroutines are left at its end.
func checkGoroutines(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		deadline := time.Now().Add(5 * time.Second)
		for runtime.NumGoroutine() > before {
			if time.Now().After(deadline) {
				buf := make([]byte, 1<<20)
				require.FailNow(t, "goroutines left", "%d before, %d after\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}
