package openai_test

import (
	"cmp"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A request sent before an ejection neither ends nor extends it, and lets no second probe through,
// however it returns.
func TestOnlyTheProbeDecides(t *testing.T) {
	const old, sick, probe, other = 1, 2, 3, 4
	for _, row := range []struct {
		reason string
		code   int  // status of the old request
		during bool // it returns during the probe, else before it
		mend   bool // the probe succeeds
	}{
		{"an old success during the probe", 200, true, false},
		{"an old failure during the probe", 503, true, false},
		{"an old failure during a probe that succeeds", 503, true, true},
		{"an old success before the probe", 200, false, false},
		{"an old failure before the probe", 503, false, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			checkGoroutines(t)
			arrived, answer := make(chan int64, 8), map[int64]chan int{old: make(chan int), probe: make(chan int)}
			f := newFake(t, func(w http.ResponseWriter, _ *http.Request, req seen) bool {
				arrived <- req.Seed
				code := 200
				switch req.Seed {
				case sick:
					code = 503
				case old, probe:
					code = cmp.Or(<-answer[req.Seed], 500)
				}
				if code != 200 {
					status(w, code, "{}")
				}
				return code != 200
			})
			t.Cleanup(func() { close(answer[old]); close(answer[probe]) }) // frees the server if the test fails
			o := quick(f.url())
			o.Retries = -1
			o.Ejects(1, 20*time.Millisecond, time.Hour)
			c := client(t, o)
			ask := func(seed int64) chan error {
				done := make(chan error, 1)
				go func() {
					_, err := c.Judge(t.Context(), request(seed))
					done <- err
				}()
				return done
			}
			oldDone := ask(old)
			require.EqualValues(t, old, <-arrived)
			require.Error(t, <-ask(sick))
			require.EqualValues(t, sick, <-arrived)
			require.Equal(t, 20*time.Millisecond, c.Ejection())
			time.Sleep(30 * time.Millisecond) // the ejection ends: the next request is its probe
			finishOld := func() {
				answer[old] <- row.code
				require.Equal(t, row.code != 200, <-oldDone != nil)
				require.Equal(t, 20*time.Millisecond, c.Ejection(), "the old request changes nothing")
			}
			if !row.during {
				finishOld()
			}
			probeDone := ask(probe)
			require.EqualValues(t, probe, <-arrived)
			if row.during {
				finishOld()
			}
			otherDone := ask(other)
			select {
			case <-arrived:
				require.Fail(t, "a second request reached the endpoint during the probe")
			case <-time.After(60 * time.Millisecond):
			}
			code := 503
			if row.mend {
				code = 200
			}
			answer[probe] <- code
			require.Equal(t, !row.mend, <-probeDone != nil)
			if !row.mend {
				require.Equal(t, 40*time.Millisecond, c.Ejection(), "the probe extends the ejection")
			}
			require.NoError(t, <-otherDone)
			require.Zero(t, c.Ejection())
		})
	}
}
