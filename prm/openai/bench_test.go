package openai_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/journal"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/rollout"
)

// instant starts a server that answers every request at once and reads no more than necessary.
func instant(b *testing.B) string {
	single := []byte(`{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"The step runs the failing test. \\boxed{1}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":900,"completion_tokens":12}}`)
	choice := `{"index":0,"message":{"role":"assistant","content":"The step runs the failing test. \\boxed{1}"},"finish_reason":"stop"}`
	triple := []byte(`{"id":"x","object":"chat.completion","choices":[` + choice + "," + choice + "," + choice + `],"usage":{"prompt_tokens":900,"completion_tokens":36}}`)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if bytes.Contains(body, []byte(`"n":3`)) {
			w.Write(triple)
		} else {
			w.Write(single)
		}
	}))
	b.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

func benchRuns(votes int) iter.Seq2[*rollout.Rollout, error] {
	return func(yield func(*rollout.Rollout, error) bool) {
		const steps = 20
		for i := 0; i*steps*3 < votes; i++ {
			r := &rollout.Rollout{ID: fmt.Sprint("run-", i), Messages: []rollout.Message{{Role: rollout.RoleUser, Content: strings.Repeat("fix the bug. ", 100)}}}
			for s := 0; s < steps && (i*steps+s)*3 < votes; s++ {
				r.Messages = append(r.Messages,
					rollout.Message{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy, Content: "I run it.\n```bash\npytest -x\n```"},
					rollout.Message{Role: rollout.RoleUser, Content: strings.Repeat("E   assert 1 == 2\n", 20)})
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// BenchmarkVotes scores 10,000 votes (and 100,000, to measure memory) at concurrency 256 against an
// instant server in the same process, including prompts, parsing and journal.
func BenchmarkVotes(b *testing.B) {
	for _, mode := range []struct {
		name     string
		oneByOne bool
		journal  bool
		votes    int
	}{
		{"one-request-per-vote", true, false, 10_000}, {"one-request-per-vote-journal", true, true, 10_000},
		{"three-votes-per-request", false, false, 10_000}, {"three-votes-per-request-100k", false, false, 100_000},
	} {
		b.Run(mode.name, func(b *testing.B) {
			url := instant(b)
			c := client(b, openai.Options{Endpoints: []string{url}, Model: "m", Concurrency: 256, OneByOne: mode.oneByOne})
			var got atomic.Int64
			var peak uint64
			began := kit.CPUTime()
			for b.Loop() {
				o := prm.Options{Concurrency: 256, OnVote: func(_ prm.VoteID, v rollout.Vote, _ bool) {
					if v.Score == nil {
						b.Error(v.Error)
					}
					if got.Add(1)%1000 == 0 {
						var m runtime.MemStats
						runtime.ReadMemStats(&m)
						peak = max(peak, m.HeapInuse)
					}
				}}
				if mode.journal {
					j, err := journal.Open(b.TempDir() + "/votes")
					if err != nil {
						b.Fatal(err)
					}
					o.Journal = j
				}
				s, err := prm.NewScorer(c, o)
				if err != nil {
					b.Fatal(err)
				}
				if err := s.ScoreAll(context.Background(), benchRuns(mode.votes), func(*rollout.Rollout, []rollout.StepScore) error { return nil }); err != nil {
					b.Fatal(err)
				}
				if o.Journal != nil {
					if err := o.Journal.Close(); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(got.Load())/b.Elapsed().Seconds(), "votes/s")
			b.ReportMetric(float64((kit.CPUTime()-began).Microseconds())/float64(got.Load()), "cpu-µs/vote")
			b.ReportMetric(float64(peak)/(1<<20), "peak-heap-MiB")
		})
	}
}

// BenchmarkOverhead compares a call of the client with the same exchange over a bare http.Client,
// alternately against the same server, and reports the client's overhead at the median and the 99th
// percentile.
func BenchmarkOverhead(b *testing.B) {
	for _, workers := range []int{1, 16} {
		b.Run(fmt.Sprint("callers=", workers), func(b *testing.B) {
			url := instant(b)
			c := client(b, openai.Options{Endpoints: []string{url}, Model: "m", Concurrency: 64})
			tr := &http.Transport{MaxIdleConnsPerHost: 64}
			defer tr.CloseIdleConnections()
			bare := &http.Client{Transport: tr}
			prompt := strings.Repeat("the judge reads this. ", 400)
			body := []byte(fmt.Sprintf(`{"model":"m","seed":1,"messages":[{"role":"user","content":%q}]}`, prompt))
			req := prm.Request{Seed: 1, Messages: []prm.Message{{Role: rollout.RoleUser, Content: prompt}}}
			viaClient := func() error { _, err := c.Judge(context.Background(), req); return err }
			viaBare := func() error {
				resp, err := bare.Post(url+"/chat/completions", "application/json", bytes.NewReader(body))
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				return err
			}
			var mu sync.Mutex
			var ours, theirs []time.Duration
			timed := func(f func() error, to *[]time.Duration) {
				began := time.Now()
				err := f()
				took := time.Since(began)
				mu.Lock()
				*to = append(*to, took)
				mu.Unlock()
				if err != nil {
					b.Error(err)
				}
			}
			for b.Loop() {
				var wg sync.WaitGroup
				for range workers {
					wg.Go(func() {
						for range 50 {
							timed(viaClient, &ours)
							timed(viaBare, &theirs)
						}
					})
				}
				wg.Wait()
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			at := func(d []time.Duration, q float64) float64 {
				return float64(d[int(q*float64(len(d)-1))].Microseconds())
			}
			b.ReportMetric(at(ours, .5)-at(theirs, .5), "added-p50-µs")
			b.ReportMetric(at(ours, .99)-at(theirs, .99), "added-p99-µs")
			b.ReportMetric(at(theirs, .99), "bare-p99-µs")
		})
	}
}
