package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// pool is a set of servers of one model.
type pool struct {
	servers []*server
	retries int
}

// NewPool returns several servers of one model as one engine. A session stays at one server, which caches its
// prefix; while that server is ejected, the session's calls go to the next server in the session's own order. A
// call that fails before its first chunk is retried at the next server.
func NewPool(servers ...Options) (Engine, error) {
	p := &pool{retries: max(2, min(len(servers), 4))}
	var l faults.List
	if len(servers) == 0 {
		l.Add("servers", "there are none")
	}
	for i, o := range servers {
		s, err := newServer(o, "servers["+strconv.Itoa(i)+"].")
		l.Join(err)
		p.servers = append(p.servers, s)
	}
	if err := l.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// order returns the servers that are not ejected, in the order of a session. If there are none, wait is the
// time until the first is tried again.
func (p *pool) order(session string) (servers []*server, wait time.Duration) {
	now := time.Now()
	wait = math.MaxInt64
	for _, s := range p.servers {
		if until, up := s.available(now); up {
			servers = append(servers, s)
		} else {
			wait = min(wait, until.Sub(now))
		}
	}
	slices.SortFunc(servers, func(a, b *server) int { return cmp.Compare(a.rank(session), b.rank(session)) })
	return servers, wait
}

// rank is the sort key of a server in the order of a session (rendezvous hashing).
func (s *server) rank(session string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s.base))
	h.Write([]byte{0})
	h.Write([]byte(session))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// Generate calls the session's server, and others if that one fails before its first chunk. See Engine.
func (p *pool) Generate(ctx context.Context, r *Request, yield func(*Chunk) error) error {
	servers, wait := p.order(r.Session)
	if len(servers) == 0 {
		return &Error{Status: http.StatusServiceUnavailable, Message: "no server is up", RetryAfter: wait}
	}
	var last error
	for try := range p.retries {
		if try >= len(servers) {
			// A single server is asked once more, a moment later.
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(50 * time.Millisecond << try):
			}
		}
		came := false
		var refused error // by the receiver
		err := servers[try%len(servers)].Generate(ctx, r, func(c *Chunk) error {
			came = true
			refused = yield(c)
			return refused
		})
		var e *Error
		if err == nil || came || refused != nil || !errors.As(err, &e) || e.Status < 500 && e.Status != http.StatusTooManyRequests || e.Status == http.StatusTooManyRequests && len(servers) == 1 {
			return err
		}
		last = err
	}
	return last
}

// Route returns the name of the session's server, "" if none is up.
func (p *pool) Route(session string) string {
	servers, _ := p.order(session)
	if len(servers) == 0 {
		return ""
	}
	return servers[0].base
}

// Tokenize calls the session's server, or the next one if it fails.
func (p *pool) Tokenize(ctx context.Context, r *Request) (out []rollout.TokenID, err error) {
	err = p.any(r.Session, func(s *server) error { out, err = s.Tokenize(ctx, r); return err })
	return out, err
}

// Models calls the servers until one answers.
func (p *pool) Models(ctx context.Context) (out json.RawMessage, err error) {
	err = p.any("", func(s *server) error { out, err = s.Models(ctx); return err })
	return out, err
}

func (p *pool) any(session string, do func(*server) error) error {
	servers, wait := p.order(session)
	err := error(&Error{Status: http.StatusServiceUnavailable, Message: "no server is up", RetryAfter: wait})
	for _, s := range servers {
		var e *Error
		if err = do(s); !errors.As(err, &e) || e.Status < 500 {
			return err
		}
	}
	return err
}

// Status returns the state of each server.
func (p *pool) Status() []Status {
	var out []Status
	for _, s := range p.servers {
		out = append(out, s.Status()...)
	}
	return out
}

// Probe asks the servers of New or NewPool for their version, and checks whether a stream with tools contains
// every id: some servers drop the ids that their tool parsers hold back. Status reports the findings.
func Probe(ctx context.Context, e Engine) error {
	switch e := e.(type) {
	case *server:
		return e.probe(ctx)
	case *pool:
		return e.each(func(s *server) error { return s.probe(ctx) })
	}
	return nil
}

// Watch checks the health of the servers of a NewPool every so often until ctx ends. Status reports the
// results.
func Watch(ctx context.Context, e Engine, every time.Duration) {
	p, ok := e.(*pool)
	if !ok {
		return
	}
	t := time.NewTicker(max(every, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = p.each(func(s *server) error { return s.health(ctx) }) // reported by Status
		}
	}
}

func (p *pool) each(do func(*server) error) error {
	errs := make([]error, len(p.servers))
	var wg sync.WaitGroup
	for i, s := range p.servers {
		wg.Go(func() { errs[i] = do(s) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Close closes idle connections.
func (p *pool) Close() {
	for _, s := range p.servers {
		s.Close()
	}
}
