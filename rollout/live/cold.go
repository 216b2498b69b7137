package live

import (
	"container/list"
	"context"
	"sync"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/internal/prefix"
	"github.com/turnpack/turnpack/rollout/live/internal/record"
	"github.com/turnpack/turnpack/rollout/live/internal/same"
)

// content holds the calls, turns and messages of a run. A cold run has no content, and reads it from the
// journal when it is next used.
type content struct {
	order    []*call // in the order in which they began
	calls    map[string]*call
	turns    []rollout.Turn // in the order of their ends, so that each prompt is stored relative to an earlier turn
	owners   []*call        // the call of each turn
	lengths  []int          // number of ids of each turn, prompt and reply
	ends     []prefix.Place // the place of each turn's end in prefixes
	ids      map[string]bool
	prefixes prefix.Tree
	messages []rollout.Message
	places   map[same.Digest][]int // indices of messages by digest
	tools    []rollout.Tool
	kwargs   *rollout.Rollout // its TemplateKwargs are the rollout's; nil = no call yet
	notes    []rollout.Note
	called   map[string]bool // ids of the tool calls in messages
}

func newContent() *content {
	return &content{calls: map[string]*call{}, ids: map[string]bool{}, places: map[same.Digest][]int{}, called: map[string]bool{}}
}

// take applies a record that is in the journal, and notes its place.
func (g *run) take(e *record.Entry) error {
	if e.From.Segment > 0 {
		g.records = append(g.records, e.From)
		g.size += int64(e.Size)
		g.disk += int64(e.Disk)
		g.rec.held.Add(int64(e.Disk))
	}
	return g.apply(e)
}

// lock locks the run, after loading its content.
func (g *run) lock() error {
	g.mu.Lock()
	if err := g.warm(); err != nil {
		g.mu.Unlock()
		return err
	}
	g.rec.cache.touch(g)
	return nil
}

// warm reads the content from the journal, once the run's records are written. On a full disk it fails instead
// of waiting, since the caller holds the lock.
func (g *run) warm() error {
	if g.content != nil {
		return nil
	}
	if err := g.last.WaitNew(context.Background()); err != nil {
		return err
	}
	g.content = newContent()
	read := reader{dir: g.rec.opts.Journal.dir}
	for _, at := range g.records {
		e, err := read.entry(at)
		if err == nil {
			err = g.apply(e)
		}
		if err != nil {
			g.content = nil
			return err
		}
	}
	g.abortLost()
	return nil
}

// cool drops the content, unless a call is running or a record is not yet durable, and reports whether the run
// is cold.
func (g *run) cool() bool {
	if !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	if g.content == nil || g.running > 0 || g.last != nil && !g.last.Durable() {
		return g.content == nil
	}
	g.cold = Stats{Calls: map[State]int{}}
	g.count(&g.cold)
	g.content = nil
	return true
}

// count adds the calls and sampled ids of a run to s.
func (g *run) count(s *Stats) {
	if g.content == nil {
		s.Tokens += g.cold.Tokens
		for state, n := range g.cold.Calls {
			s.Calls[state] += n
		}
		return
	}
	for _, c := range g.order {
		s.Calls[c.State]++
		s.Tokens += int64(c.OutputTokens)
	}
}

// cache tracks the runs whose content is in memory, and drops the content of the least recently used.
type cache struct {
	most int64 // bytes of records; 0 = no limit

	mu   sync.Mutex
	runs list.List // *run, most recently used first
	held int64
}

// touch marks a run as most recently used. The caller may hold its lock.
func (c *cache) touch(g *run) {
	if c.most == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.place == nil {
		g.place = c.runs.PushFront(g)
	}
	c.runs.MoveToFront(g.place)
	c.held += g.size - g.counted
	g.counted = g.size
	for n := c.runs.Len() - 1; n > 0 && c.held > c.most; n-- {
		old := c.runs.Back().Value.(*run)
		if old == g {
			break
		}
		if old.cool() {
			c.remove(old)
		} else {
			c.runs.MoveToFront(old.place)
		}
	}
}

// drop removes a delivered run.
func (c *cache) drop(g *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(g)
}

func (c *cache) remove(g *run) {
	if g.place != nil {
		c.runs.Remove(g.place)
		c.held -= g.counted
		g.place, g.counted = nil, 0
	}
}
