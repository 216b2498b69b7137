package turnpack_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/rollout"
)

// longRecord is a rollout whose messages hold n bytes of text that does not repeat,
// in so many observations.
func longRecord(n, observations int) *rollout.Rollout {
	rng := rand.New(rand.NewPCG(1, 2))
	r := attempt("long", 0, true)
	words := []string{"handler", "request", "response", "parser", "undefined", "value", "expected", "result"}
	var text strings.Builder
	r.Messages = r.Messages[:0]
	for range observations {
		text.Reset()
		for text.Len() < n/observations {
			fmt.Fprintf(&text, "a line of what the command printed: module %d, %s of the %s\n", rng.IntN(1e6), words[rng.IntN(len(words))], words[rng.IntN(len(words))])
		}
		r.Messages = append(r.Messages,
			rollout.Message{Role: rollout.RoleUser, Content: text.String()},
			rollout.Message{Role: rollout.RoleAssistant, Content: "next", Sampled: rollout.SampledByPolicy})
	}
	return r
}

// peakOf is the most that the heap holds while f runs, garbage included.
func peakOf(f func()) uint64 {
	runtime.GC()
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		most := uint64(0)
		for {
			metrics.Read(s)
			most = max(most, s[0].Value.Uint64())
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	return <-peak
}

// What one long record takes is a small multiple of its text, garbage included.
func TestMemoryOfOneLongRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: encodes records of 30 MB; run without -short")
	}
	const size, most = 30 << 20, 20
	for _, observations := range []int{1, 300} {
		t.Run(fmt.Sprintf("observations=%d", observations), func(t *testing.T) {
			r := longRecord(size, observations)
			p := turnpack.Pipeline{Model: model(t), TempDir: t.TempDir()}
			var tokens int64
			peak := peakOf(func() {
				report, err := p.Run(t.Context(), turnpack.Slice{r}, nowhere{})
				require.NoError(t, err)
				tokens = report.Tokens
			})
			t.Logf("%d tokens, %.0f MB, %.1f bytes for a byte", tokens, float64(peak)/1e6, float64(peak)/size)
			require.Less(t, float64(peak)/size, float64(most))
		})
	}
}
