package openai

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// endpoint is one server with its health. The pool's mutex guards the mutable
// part.
type endpoint struct {
	url string
	key string // "" = none

	inFlight  int
	failures  int           // consecutive failures
	cause     error         // of the last failure or pause
	ejected   time.Duration // length of the current ejection, 0 = in service
	until     time.Time     // end of the ejection
	probing   bool          // a single request tests an ejected endpoint
	notBefore time.Time     // end of the pause requested by a 429
	oneByOne  atomic.Bool   // does not support n > 1
}

// pool selects endpoints for requests.
type pool struct {
	bounds
	mu        sync.Mutex
	endpoints []*endpoint
	next      int // index at which the search starts, so that equal endpoints take turns
}

// acquire returns the healthy endpoint with the fewest requests in flight, and whether the request is
// its probe. If there is none, it waits for the first endpoint that may be tried; the error is the
// context's.
func (p *pool) acquire(ctx context.Context) (e *endpoint, probe bool, err error) {
	for {
		e, probe, wait := p.choose(time.Now())
		if e != nil {
			return e, probe, nil
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, false, err
		}
	}
}

// probePoll is the interval at which a caller checks again while another call probes the only
// endpoint.
const probePoll = 20 * time.Millisecond

func (p *pool) choose(now time.Time) (e *endpoint, probe bool, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *endpoint
	wait = -1
	later := func(d time.Duration) {
		if wait < 0 || d < wait {
			wait = d
		}
	}
	for i := range p.endpoints {
		e := p.endpoints[(p.next+i)%len(p.endpoints)]
		switch {
		case e.notBefore.After(now):
			later(e.notBefore.Sub(now))
		case e.ejected > 0 && e.until.After(now):
			later(e.until.Sub(now))
		case e.ejected > 0 && e.probing:
			later(probePoll)
		case best == nil || e.inFlight < best.inFlight:
			best = e
		}
	}
	if best == nil {
		return nil, false, wait
	}
	p.next++
	best.inFlight++
	best.probing = best.ejected > 0
	return best, best.probing, 0
}

// verdict is the result of an attempt for the health of its endpoint.
type verdict uint8

const (
	healthy verdict = iota
	failing
	neutral // the endpoint was not at fault
)

// release returns an endpoint to the pool and updates its health. probe is what acquire returned; cause
// is the error of the attempt, nil if there was none.
func (p *pool) release(e *endpoint, probe bool, v verdict, pause time.Duration, cause error) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	e.inFlight--
	if cause != nil && (v == failing || pause > 0) {
		e.cause = cause
	}
	if pause > 0 {
		if t := now.Add(pause); t.After(e.notBefore) {
			e.notBefore = t
		}
	}
	switch {
	case probe:
		e.probing = false
	case e.ejected > 0:
		return // an earlier request: only the probe ends or extends an ejection
	}
	switch v {
	case healthy:
		e.failures, e.ejected, e.cause = 0, 0, nil
	case failing:
		e.failures++
		switch {
		case probe:
			e.eject(min(2*e.ejected, p.ejectMax), now)
		case e.failures >= p.ejectAfter:
			e.eject(p.ejectFor, now)
		}
	}
}

func (e *endpoint) eject(d time.Duration, now time.Time) { e.ejected, e.until = d, now.Add(d) }

// namedEndpoints is the maximum number of endpoints described in an error.
const namedEndpoints = 4

// state describes, for errors, why no endpoint is available.
func (p *pool) state(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for i, e := range p.endpoints {
		if i == namedEndpoints {
			all = append(all, fmt.Sprintf("and %d more", len(p.endpoints)-i))
			break
		}
		state := "all requests in flight are taken"
		switch {
		case e.notBefore.After(now):
			state = fmt.Sprintf("it asks for a pause of %s more", e.notBefore.Sub(now).Round(time.Millisecond))
		case e.ejected > 0:
			state = fmt.Sprintf("out of service after %d failures in a row", e.failures)
		}
		if e.cause != nil {
			state += ", the last: " + e.cause.Error()
		}
		all = append(all, e.url+": "+state)
	}
	return strings.Join(all, "; ")
}

// allOneByOne reports whether all endpoints are known not to support n > 1.
func (p *pool) allOneByOne() bool {
	for _, e := range p.endpoints {
		if !e.oneByOne.Load() {
			return false
		}
	}
	return true
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
