package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// still is an engine that always says the same, at once.
func still(b *testing.B) *httptest.Server {
	var stream bytes.Buffer
	prompt := strings.Repeat("7,", 999) + "7"
	fmt.Fprintf(&stream, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":[%s]}`+"\n\n", prompt)
	for i := range 32 {
		finish := "null"
		if i == 31 {
			finish = `"stop"`
		}
		fmt.Fprintf(&stream, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":{"content":[{"token":" word","logprob":-0.25,"bytes":[32],"top_logprobs":[]}]},"finish_reason":%s,"token_ids":[%d]}]}`+"\n\n", finish, i)
	}
	stream.WriteString(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":32,"total_tokens":1032}}` + "\n\ndata: [DONE]\n\n")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write(stream.Bytes())
	}))
	b.Cleanup(s.Close)
	return s
}

// BenchmarkProxy is a streamed chat call of 1,000 prompt ids and 32 sampled ones through
// the proxy, in memory and with a journal on disk, by 16 clients and by one. ttfb is the
// time to the first byte, direct/ that of the engine alone.
func BenchmarkProxy(b *testing.B) {
	for _, c := range []struct {
		name    string
		journal bool
		proxy   bool
		clients int
	}{{"direct/1", false, false, 1}, {"memory/1", false, true, 1}, {"journal/1", true, true, 1}, {"direct/16", false, false, 16}, {"memory/16", false, true, 16}, {"journal/16", true, true, 16}} {
		b.Run(c.name, func(b *testing.B) {
			upstream := still(b)
			url := upstream.URL
			if c.proxy {
				e, err := engine.New(engine.Options{URL: url})
				require.NoError(b, err)
				defer e.Close()
				var o live.Options
				if c.journal {
					o.Journal, err = live.OpenJournal(b.TempDir(), live.JournalOptions{})
					require.NoError(b, err)
					defer o.Journal.Close()
				}
				recorder, err := live.New(o)
				require.NoError(b, err)
				h, err := proxy.New(proxy.Options{Recorder: recorder, Engine: e, Open: recorder.Begin})
				require.NoError(b, err)
				defer h.Close()
				server := httptest.NewServer(h)
				defer server.Close()
				url = server.URL
			}
			transport := &http.Transport{MaxIdleConnsPerHost: c.clients}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			var next atomic.Int64
			var mu sync.Mutex
			var firsts []time.Duration
			var wg sync.WaitGroup
			b.ResetTimer()
			for range c.clients {
				wg.Go(func() {
					one := make([]byte, 1)
					var mine []time.Duration
					for {
						n := int(next.Add(1))
						if n > b.N {
							break
						}
						body := fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"question %d"}]}`, n)
						began := time.Now()
						res, err := client.Post(fmt.Sprintf("%s/rollouts/r%d/v1/chat/completions", url, n/50), "application/json", strings.NewReader(body))
						if err != nil {
							b.Error(err)
							return
						}
						if _, err := io.ReadFull(res.Body, one); err != nil {
							b.Error(err)
						}
						mine = append(mine, time.Since(began))
						if _, err := io.Copy(io.Discard, res.Body); err != nil {
							b.Error(err)
						}
						res.Body.Close()
					}
					mu.Lock()
					firsts = append(firsts, mine...)
					mu.Unlock()
				})
			}
			wg.Wait()
			b.StopTimer()
			slices.Sort(firsts)
			at := func(q int) float64 {
				return float64(firsts[min(len(firsts)-1, len(firsts)*q/100)].Microseconds()) / 1000
			}
			b.ReportMetric(at(50), "ttfb50-ms")
			b.ReportMetric(at(99), "ttfb99-ms")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
