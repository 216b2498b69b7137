package score

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/rollout"
)

// progress shows how far a run is: a bar on a terminal, else a line at an interval, or
// nothing.
type progress struct {
	stats func() openai.Stats
	fault func() error // last failed request since the previous line
	total int64        // planned votes, −1 if unknown
	began time.Time
	bar   *progressbar.ProgressBar // silent if not drawn
	stop  chan struct{}
	idle  sync.WaitGroup

	asked, resumed, spared atomic.Int64 // spared: planned votes made unnecessary by an early stop
}

func newProgress(w io.Writer, terminal bool, every time.Duration, total int64, stats func() openai.Stats, fault func() error) *progress {
	p := &progress{stats: stats, fault: fault, total: total, began: time.Now(), stop: make(chan struct{}), bar: progressbar.DefaultSilent(total)}
	show := func() { fmt.Fprintln(w, p.line()) }
	if terminal {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w), progressbar.OptionShowCount(), progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false))
		every, show = time.Second, func() { p.bar.Describe(p.line()) }
	}
	if every > 0 {
		p.idle.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for {
				select {
				case <-p.stop:
					return
				case <-tick.C:
					show()
				}
			}
		})
	}
	return p
}

// vote counts one vote.
func (p *progress) vote(resumed bool) {
	if resumed {
		p.resumed.Add(1)
	} else {
		p.asked.Add(1)
	}
	_ = p.bar.Add(1) // ignored: a bar that cannot be drawn does not stop the run
}

// spare counts n planned votes that are not needed.
func (p *progress) spare(n int) {
	p.spared.Add(int64(n))
	_ = p.bar.Add(n)
}

// line returns the progress line: votes, rate, time left, tokens and cost.
func (p *progress) line() string {
	asked := p.asked.Load()
	done := asked + p.resumed.Load() + p.spared.Load()
	rate := float64(asked) / max(time.Since(p.began).Seconds(), 1e-3)
	s := fmt.Sprintf("%d votes", done)
	if p.total > 0 {
		s = fmt.Sprintf("%d of %d votes", done, p.total)
	}
	s += fmt.Sprintf(", %.1f/s", rate)
	if left := p.total - done; p.total > 0 && left > 0 && rate > 0 {
		s += ", " + (time.Duration(float64(left)/rate) * time.Second).Round(time.Second).String() + " left"
	}
	st := p.stats()
	s += fmt.Sprintf(", %d+%d tokens", st.PromptTokens, st.CompletionTokens)
	if st.Cost > 0 {
		s += fmt.Sprintf(", cost %.2f", st.Cost)
	}
	if err := p.fault(); err != nil {
		s += fmt.Sprintf(", %d requests failed, the last: %v", st.Failures+st.RateLimited, rollout.Printable(err.Error()))
	}
	return s
}

func (p *progress) close() {
	close(p.stop)
	p.idle.Wait()
	_ = p.bar.Finish()
}
