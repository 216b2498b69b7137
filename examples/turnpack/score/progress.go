package score

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/rollout"
)

// progress shows how far a run is: a bar on a terminal, a line now and then
// elsewhere, nothing when neither is wanted.
type progress struct {
	w     io.Writer
	stats func() openai.Stats
	fault func() error // the last failed request since the line before
	total int64        // planned votes, −1 unknown
	began time.Time
	bar   *progressbar.ProgressBar
	stop  chan struct{}
	idle  sync.WaitGroup

	mu             sync.Mutex
	asked, resumed int64
	spared         int64 // planned votes that an early stop made needless
}

func newProgress(w io.Writer, terminal bool, every time.Duration, total int64, stats func() openai.Stats, fault func() error) *progress {
	p := &progress{w: w, stats: stats, fault: fault, total: total, began: time.Now(), stop: make(chan struct{})}
	if terminal {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w), progressbar.OptionShowCount(), progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false))
		every = time.Second
	}
	if every > 0 {
		p.idle.Add(1)
		go p.loop(every)
	}
	return p
}

func (p *progress) loop(every time.Duration) {
	defer p.idle.Done()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			if p.bar != nil {
				p.bar.Describe(p.line())
			} else {
				fmt.Fprintln(p.w, p.line())
			}
		}
	}
}

// vote takes one vote.
func (p *progress) vote(resumed bool) {
	p.mu.Lock()
	if resumed {
		p.resumed++
	} else {
		p.asked++
	}
	p.mu.Unlock()
	p.advance(1)
}

// spare takes votes that were planned and are not needed.
func (p *progress) spare(n int) {
	p.mu.Lock()
	p.spared += int64(n)
	p.mu.Unlock()
	p.advance(n)
}

func (p *progress) advance(n int) {
	if p.bar != nil && n > 0 {
		// A bar that cannot be drawn is no reason to stop.
		_ = p.bar.Add(n)
	}
}

// line sums the run up: votes, rate, time left, cost.
func (p *progress) line() string {
	p.mu.Lock()
	asked, done := p.asked, p.asked+p.resumed+p.spared
	p.mu.Unlock()
	elapsed := time.Since(p.began)
	rate := float64(asked) / max(elapsed.Seconds(), 1e-3)
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
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
