//go:build unix

package proxy_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// still serves an engine that always sends the same reply at once, with as little processor time as possible,
// since it shares the cores with the proxy.
func still(listener net.Listener) error {
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
	reply := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", stream.Len(), stream.Bytes())
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			in := bufio.NewReader(conn)
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				if _, err = io.Copy(io.Discard, r.Body); err != nil {
					return
				}
				answer := reply
				if r.URL.Path == "/used" {
					text := fmt.Sprint(int64(used()))
					answer = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
				}
				if _, err = conn.Write(answer); err != nil {
					return
				}
			}
		}()
	}
}

// calls are the measurements of a client process: latencies and processor time.
type calls struct{ First50, First99, Seconds, CPU float64 }

// callsOf requests n streamed replies, 50 per session, with some clients: as fast as possible, or at the given
// rate per second.
func callsOf(url string, clients, n, rate int) (c calls, err error) {
	host := strings.TrimPrefix(url, "http://")
	var next atomic.Int64
	var mu sync.Mutex
	var firsts []float64
	var wg sync.WaitGroup
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	began := time.Now()
	for range clients {
		wg.Go(func() {
			conn, e := net.Dial("tcp", host)
			if e != nil {
				mu.Lock()
				err = e
				mu.Unlock()
				return
			}
			defer conn.Close()
			in, one := bufio.NewReader(conn), make([]byte, 1)
			for k := int(next.Add(1)); k <= n; k = int(next.Add(1)) {
				body := fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"question %d"}]}`, k)
				if rate > 0 {
					time.Sleep(time.Until(began.Add(time.Duration(k) * time.Second / time.Duration(rate))))
				}
				sent := time.Now()
				_, e := fmt.Fprintf(conn, "POST /rollouts/%s-%d/v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", run, k/50, host, len(body), body)
				first := time.Duration(0)
				var res *http.Response
				if e == nil {
					res, e = http.ReadResponse(in, nil)
				}
				if e == nil {
					_, e = io.ReadFull(res.Body, one)
					first = time.Since(sent)
				}
				if e == nil {
					_, e = io.Copy(io.Discard, res.Body)
				}
				mu.Lock()
				firsts = append(firsts, first.Seconds()*1000)
				if e != nil {
					err = e
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(firsts)
	at := func(q int) float64 { return firsts[min(len(firsts)-1, len(firsts)*q/100)] }
	return calls{at(50), at(99), time.Since(began).Seconds(), used().Seconds()}, err
}

// TestBenchmarkProcess is the engine or the clients of BenchmarkProxy, in a process of their own.
func TestBenchmarkProcess(t *testing.T) {
	switch role := os.Getenv("PROXY_BENCHMARK"); role {
	case "":
		t.Skip("SKIPPED: it is a part of BenchmarkProxy")
	case "engine":
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		fmt.Println("at http://" + listener.Addr().String())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // until the benchmark ends
			listener.Close()
		}()
		require.ErrorIs(t, still(listener), net.ErrClosed)
	default:
		var url string
		var clients, n, rate int
		_, err := fmt.Sscan(role, &url, &clients, &n, &rate)
		require.NoError(t, err)
		c, err := callsOf(url, clients, n, rate)
		require.NoError(t, err)
		text, err := json.Marshal(c)
		require.NoError(t, err)
		fmt.Println("told", string(text))
	}
}

func process(b *testing.B, role string) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.run=^TestBenchmarkProcess$", "-test.v")
	c.Env = append(os.Environ(), "PROXY_BENCHMARK="+role, "GOMAXPROCS=1")
	c.Stderr = os.Stderr
	return c
}

func after(b *testing.B, text, word string) string {
	_, rest, ok := strings.Cut(text, word+" ")
	require.True(b, ok, text)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// BenchmarkProxy measures a streamed chat call of 1,000 prompt ids and 32 sampled ones through the proxy, in
// memory and with a journal on disk, by one client, by 64 as fast as they can, and by clients at a fixed rate.
// Engine and clients are separate processes: proxy-ms, engine-ms and clients-ms are the core time of each per
// call, busy-% is their sum relative to two cores. ttfb is the time to the first byte; direct/ is the engine
// without a proxy.
func BenchmarkProxy(b *testing.B) {
	upstream := process(b, "engine")
	stop, err := upstream.StdinPipe()
	require.NoError(b, err)
	out, err := upstream.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, upstream.Start())
	b.Cleanup(func() { stop.Close(); _ = upstream.Wait() })
	said := make([]byte, 4096)
	text := ""
	for !strings.Contains(text, "at http") || !strings.HasSuffix(text, "\n") {
		n, err := out.Read(said)
		require.NoError(b, err)
		text += string(said[:n])
	}
	engineURL := after(b, text, "at")
	for _, by := range []struct {
		name          string
		clients, rate int
	}{{"1", 1, 0}, {"1000-a-second", 64, 1000}, {"2000-a-second", 64, 2000}, {"3000-a-second", 64, 3000}, {"64", 64, 0}, {"256", 256, 0}} {
		for _, kind := range []string{"direct", "memory", "journal"} {
			b.Run(kind+"/"+by.name, func(b *testing.B) {
				b.ReportAllocs()
				// An fsync occupies one of the scheduler's processors: one more keeps the cores busy. The
				// allocation stands for a service's model and sessions.
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1))
				defer runtime.KeepAlive(make([]byte, 64<<20))
				url := engineURL
				if kind != "direct" {
					url = proxyOf(b, engineURL, kind == "journal")
				}
				clients := process(b, fmt.Sprint(url, " ", by.clients, " ", b.N, " ", by.rate))
				before, engineBefore := used(), usedBy(b, engineURL)
				b.ResetTimer()
				text, err := clients.Output()
				b.StopTimer()
				require.NoError(b, err, "%s", text)
				cpu, engineCPU := used()-before, usedBy(b, engineURL)-engineBefore
				var seen calls
				require.NoError(b, json.Unmarshal([]byte(after(b, string(text), "told")), &seen))
				b.ReportMetric(seen.First50, "ttfb50-ms")
				b.ReportMetric(seen.First99, "ttfb99-ms")
				b.ReportMetric(float64(b.N)/seen.Seconds, "calls/s")
				call := func(seconds float64) float64 { return seconds * 1000 / float64(b.N) }
				b.ReportMetric(call(cpu.Seconds()), "proxy-ms/call")
				b.ReportMetric(call(engineCPU.Seconds()), "engine-ms/call")
				b.ReportMetric(call(seen.CPU), "clients-ms/call")
				b.ReportMetric(100*(cpu.Seconds()+engineCPU.Seconds()+seen.CPU)/seen.Seconds/2, "busy-%")
			})
		}
	}
}

// proxyOf serves an engine through a proxy in this process.
func proxyOf(b *testing.B, engineURL string, journal bool) string {
	e, err := engine.New(engine.Options{URL: engineURL})
	require.NoError(b, err)
	b.Cleanup(e.Close)
	var o live.Options
	if journal {
		o.Journal, err = live.OpenJournal(b.TempDir(), live.JournalOptions{})
		require.NoError(b, err)
		b.Cleanup(func() { o.Journal.Close() })
	}
	recorder, err := live.New(o)
	require.NoError(b, err)
	h, err := proxy.New(proxy.Options{Recorder: recorder, Engine: e, Open: recorder.Begin})
	require.NoError(b, err)
	b.Cleanup(h.Close)
	server := httptest.NewServer(h)
	b.Cleanup(server.Close)
	return server.URL
}

// used is the processor time of this process, usedBy that of the engine's process.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func usedBy(b *testing.B, engineURL string) time.Duration {
	res, err := http.Get(engineURL + "/used")
	require.NoError(b, err)
	defer res.Body.Close()
	var n int64
	_, err = fmt.Fscan(res.Body, &n)
	require.NoError(b, err)
	return time.Duration(n)
}
