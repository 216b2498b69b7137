package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/rollout"
)

// Client is a judge over one or more servers of the same model. It implements [prm.BatchJudge] and is
// safe for concurrent use.
type Client struct {
	o      Options
	http   *http.Client
	pool   *pool
	slots  chan struct{}
	hosted bool // an endpoint is a server of OpenAI
	secret *secret
	mu     sync.Mutex
	stats  Stats
	common []byte // part common to all request bodies
}

// New returns a client after checking the options and reading the API key from the environment. It
// opens no connection.
func New(o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if o.Transport == nil {
		o.Transport = newTransport(o.Concurrency)
	}
	c := &Client{
		o: o, slots: make(chan struct{}, o.Concurrency), pool: &pool{bounds: o.bounds},
	}
	// A redirect would send the key, or at least the prompt, to an address that is not in the options.
	c.http = &http.Client{
		Transport:     o.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, raw := range o.Endpoints {
		raw = strings.TrimRight(raw, "/")
		e := &endpoint{url: raw, key: c.key(raw)}
		if c.secret == nil { // all endpoints with a key have the same one
			c.secret = secretOf(e.key)
		}
		e.oneByOne.Store(o.OneByOne)
		c.pool.endpoints = append(c.pool.endpoints, e)
	}
	var err error
	if c.common, err = c.commonFields(); err != nil {
		return nil, err
	}
	return c, nil
}

func newTransport(concurrency int) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   concurrency,
		MaxConnsPerHost:       concurrency,
		ForceAttemptHTTP2:     true,
	}
}

// key returns the API key for an endpoint, "" if there is none.
func (c *Client) key(endpoint string) string {
	u, err := url.Parse(endpoint)
	hosted := err == nil && u.Hostname() == openAIHost
	c.hosted = c.hosted || hosted
	key := ""
	switch {
	case c.o.KeyEnv != "":
		key = os.Getenv(c.o.KeyEnv)
	case os.Getenv(defaultKeyEnv) != "":
		key = os.Getenv(defaultKeyEnv)
	case hosted:
		key = os.Getenv(openAIKeyEnv)
	}
	return strings.TrimSpace(key) // a key read from a file often ends with a line break
}

// Close closes idle connections. Requests in flight are not affected.
func (c *Client) Close() error {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	return nil
}

// Identity names the model and its sampling, for prm.Options.Identity. It does
// not depend on endpoints.
func (c *Client) Identity() string {
	show := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprint(*v)
	}
	// fmt prints maps in key order.
	return fmt.Sprintf("%s temperature=%s top_p=%s max_tokens=%d schema=%v extra=%v", c.o.Model, show(c.o.Temperature), show(c.o.TopP), c.o.MaxTokens, c.o.Schema, c.o.Extra)
}

// Judge requests one vote.
func (c *Client) Judge(ctx context.Context, req prm.Request) (prm.Reply, error) {
	replies, err := c.requestVotes(ctx, req, 1)
	if err != nil {
		return prm.Reply{}, err
	}
	return replies[0], nil
}

// JudgeN requests n votes in one request. It returns between 1 and n replies, fewer than n if the
// server samples fewer from one prompt.
func (c *Client) JudgeN(ctx context.Context, req prm.Request, n int) ([]prm.Reply, error) {
	if n < 1 {
		return nil, rollout.Errorf(rollout.KindInput, where(req), "expected a positive number of votes, found %d", n)
	}
	return c.requestVotes(ctx, req, n)
}

// Batches reports whether an endpoint may sample several votes from one request: not all endpoints are
// known to refuse.
func (c *Client) Batches() bool { return c.pool != nil && !c.pool.allOneByOne() }

func where(req prm.Request) rollout.Where {
	return rollout.Where{Rollout: req.ID.Rollout, Field: fmt.Sprintf("step %d vote %d", req.ID.Step, req.ID.Vote)}
}

// requestVotes retries until there is a reply, a permanent failure, or no patience left.
func (c *Client) requestVotes(ctx context.Context, req prm.Request, n int) ([]prm.Reply, error) {
	if c.pool == nil {
		return nil, zero.Value("openai.Client", "New")
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	var last *failure
	failed, limited := 0, 0
	var suspect *endpoint // refused a request for several votes
	for try := 0; ; try++ {
		e, replies, fail, err := c.attempt(ctx, req, n, try)
		if err != nil {
			return nil, c.timeoutError(outer, req, last, try)
		}
		if fail == nil {
			if suspect != nil {
				suspect.oneByOne.Store(true)
			}
			return replies, nil
		}
		if last == nil || ctx.Err() == nil { // otherwise the failure is caused by the end of the call itself
			last = fail
		}
		if n > 1 && mayRefuseN(fail.status) {
			n, suspect = 1, e
			continue
		}
		if fail.limited {
			limited++ // a full queue does not count as a failure: only patience bounds it
		} else if failed++; !fail.retry || failed > c.o.Retries {
			return nil, c.giveUp(req, fail, try+1)
		}
		pause := c.backoff(failed + limited)
		// A longer pause requested by the server takes precedence, with some jitter so that waiting
		// callers do not return together.
		if fail.pause > pause {
			pause = fail.pause + time.Duration(rand.Int64N(int64(fail.pause)/10+1))
		}
		if deadline, _ := ctx.Deadline(); time.Until(deadline) < pause {
			return nil, c.timeoutError(outer, req, last, try+1)
		}
		c.count(func(s *Stats) { s.Retries++ })
		if sleep(ctx, pause) != nil {
			return nil, c.timeoutError(outer, req, last, try+1)
		}
	}
}

// backoff returns the wait before retry number n ≥ 1: doubled each time, minus a random part of up to
// half.
func (c *Client) backoff(n int) time.Duration {
	d := c.o.backoffMax
	if shift := n - 1; shift < 63 && c.o.backoffMin < d>>shift {
		d = c.o.backoffMin << shift
	}
	return d - time.Duration(rand.Int64N(int64(d)/2+1))
}

// attempt makes one request within the concurrency bound. A non-nil error is the context's and means
// that no request was made.
func (c *Client) attempt(ctx context.Context, req prm.Request, n, try int) (*endpoint, []prm.Reply, *failure, error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, nil, ctx.Err()
	}
	defer func() { <-c.slots }()
	e, probe, err := c.pool.acquire(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if e.oneByOne.Load() {
		n = 1
	}
	rctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	done := func(Outcome) {}
	if c.o.Hook != nil {
		rctx, done = c.o.Hook.Start(rctx, Attempt{Endpoint: e.url, Model: c.o.Model, ID: req.ID, Votes: n, Try: try})
	}
	began := time.Now()
	replies, status, fail := c.send(rctx, e, c.body(req, n), n)
	took := time.Since(began)
	if fail == nil && len(replies) < n {
		e.oneByOne.Store(true)
	}
	if fail != nil && ctx.Err() == nil && errors.Is(rctx.Err(), context.DeadlineExceeded) {
		fail.err = fmt.Errorf("no whole reply within %s", c.o.Timeout)
	}
	if fail != nil {
		fail.err = errors.New(c.secret.redact(fail.err.Error()))
	}
	c.release(ctx, e, probe, fail)
	out := Outcome{Status: status, Votes: len(replies), Duration: took}
	for i := range replies {
		replies[i].Latency = took
		out.PromptTokens += replies[i].PromptTokens
		out.CompletionTokens += replies[i].CompletionTokens
	}
	if fail != nil {
		out.Err = fail.err
	}
	c.count(func(s *Stats) {
		s.Requests++
		s.Votes += int64(out.Votes)
		s.PromptTokens += int64(out.PromptTokens)
		s.CompletionTokens += int64(out.CompletionTokens)
		switch {
		case fail == nil:
		case fail.limited:
			s.RateLimited++
		default:
			s.Failures++
		}
	})
	done(out)
	return e, replies, fail, nil
}

// mayRefuseN reports whether a status may mean that the server does not support n > 1. Only an answer
// to the same prompt with one vote proves it.
func mayRefuseN(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnprocessableEntity || status == http.StatusNotImplemented
}

// release returns the endpoint to the pool. A request cancelled by its caller says nothing about the
// server.
func (c *Client) release(ctx context.Context, e *endpoint, probe bool, fail *failure) {
	switch {
	case fail == nil:
		c.pool.release(e, probe, healthy, 0, nil)
	case ctx.Err() != nil:
		c.pool.release(e, probe, neutral, 0, nil)
	default:
		c.pool.release(e, probe, fail.health, fail.pause, fail.err)
	}
}

func (c *Client) giveUp(req prm.Request, fail *failure, tries int) error {
	e := rollout.Errorf(rollout.KindJudge, where(req), "no vote after %d tries: %w", tries, fail.err)
	switch {
	case fail.status == http.StatusUnauthorized, fail.status == http.StatusForbidden:
		return e.WithFix("set the environment variable %s to a valid key", cmp.Or(c.o.KeyEnv, defaultKeyEnv))
	case fail.status == http.StatusNotFound:
		return e.WithFix("check that the endpoint ends with its version, such as /v1, and serves model %q", c.o.Model)
	case fail.status >= 300 && fail.status < 400:
		return e.WithFix("name the address that serves the model: redirects are not followed")
	}
	return e
}

// timeoutError returns the error of a call whose patience ran out, or whose caller cancelled it.
func (c *Client) timeoutError(outer context.Context, req prm.Request, last *failure, tries int) error {
	if outer.Err() != nil {
		return rollout.Errorf(rollout.KindJudge, where(req), "the call was broken off: %w", context.Cause(outer))
	}
	if last != nil {
		if last.pause < c.o.Patience {
			return rollout.Errorf(rollout.KindJudge, where(req), "no vote within %s and %d tries: %w", c.o.Patience, tries, last.err)
		}
		return rollout.Errorf(rollout.KindJudge, where(req), "no vote at try %d: %w; the server asks to wait %s before the next, longer than the patience of %s", tries, last.err, last.pause.Round(time.Millisecond), c.o.Patience).
			WithFix("ask again later, or with more patience (Options.Patience, score --patience)")
	}
	// This call made no request, so the reason comes from earlier calls.
	return rollout.Errorf(rollout.KindJudge, where(req), "no vote within %s: no endpoint became free: %s", c.o.Patience, c.pool.state(time.Now()))
}
