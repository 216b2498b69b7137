package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// node is a server of a pool that can be down.
type node struct {
	down  atomic.Bool
	calls atomic.Int64
	fake  *fakeengine.Server
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n.calls.Add(1); n.down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	n.fake.ServeHTTP(w, r)
}

func pool(t *testing.T, n int) (engine.Engine, []*node) {
	t.Helper()
	var nodes []*node
	var servers []engine.Options
	for range n {
		x := &node{fake: fakeengine.New(fakeengine.Options{Script: []fakeengine.Reply{{Content: "yes"}}})}
		s := httptest.NewServer(x)
		t.Cleanup(s.Close)
		nodes, servers = append(nodes, x), append(servers, engine.Options{URL: s.URL})
	}
	p, err := engine.NewPool(servers...)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p, nodes
}

func ask(p engine.Engine, session string) (chunks int, err error) {
	err = p.Generate(context.Background(), &engine.Request{Session: session, Messages: []rollout.Message{{Role: "user", Content: "ok?"}}, Stream: true,
		Fields: map[string]json.RawMessage{"model": json.RawMessage(`"fake"`)}}, func(*engine.Chunk) error { chunks++; return nil })
	return chunks, err
}

// TestPool: a session stays at its server; while that server is down it is ejected and the calls go elsewhere;
// then they return.
func TestPool(t *testing.T) {
	p, nodes := pool(t, 3)
	for s := range 30 {
		for range 3 {
			_, err := ask(p, fmt.Sprint("s", s))
			require.NoError(t, err)
		}
	}
	total := int64(0)
	for _, n := range nodes {
		require.Zero(t, n.calls.Load()%3, "a session's calls go to one server")
		require.Positive(t, n.calls.Load())
		total += n.calls.Load()
	}
	require.EqualValues(t, 90, total)
	nodes[0].down.Store(true)
	before := nodes[0].calls.Load()
	for s := range 30 {
		_, err := ask(p, fmt.Sprint("s", s))
		require.NoError(t, err)
	}
	require.EqualValues(t, 3, nodes[0].calls.Load()-before, "after three failures it is left alone")
	require.True(t, p.Status()[0].Down.After(time.Now()))
	nodes[0].down.Store(false)
	ctx, cancel := context.WithCancel(t.Context())
	go engine.Watch(ctx, p, time.Millisecond)
	require.Eventually(t, func() bool { return p.Status()[0].Down.IsZero() }, 5*time.Second, time.Millisecond)
	cancel()

	for _, n := range nodes {
		n.down.Store(true)
	}
	for range 9 {
		if _, err := ask(p, "x"); err == nil {
			t.Fatal("no server is up")
		}
	}
	_, err := ask(p, "x")
	var e *engine.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, http.StatusServiceUnavailable, e.Status)
	require.Positive(t, e.RetryAfter)
	require.Equal(t, "", p.Route("x"))
}

// A server whose router knows no /health is up, and one that fails there is not.
func TestWatchWithoutHealth(t *testing.T) {
	for status, up := range map[int]bool{404: true, 401: false, 503: false} {
		var asked atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.WriteHeader(status)
		}))
		defer server.Close()
		p, err := engine.NewPool(engine.Options{URL: server.URL})
		require.NoError(t, err)
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go engine.Watch(ctx, p, time.Millisecond)
		require.Eventually(t, func() bool { return asked.Load() > 2 }, time.Minute, time.Millisecond)
		require.Equal(t, up, p.Status()[0].Down.IsZero(), status)
	}
}

// TestNoSecondSample: a reply that has begun is not requested again.
func TestNoSecondSample(t *testing.T) {
	var asked atomic.Int64
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n")
	}))
	defer cut.Close()
	p, err := engine.NewPool(engine.Options{URL: cut.URL})
	require.NoError(t, err)
	defer p.Close()
	n, err := ask(p, "s")
	require.Error(t, err)
	require.Equal(t, 1, n)
	require.EqualValues(t, 1, asked.Load())
	require.EqualValues(t, 1, p.Status()[0].Failed)
}

func TestOptions(t *testing.T) {
	for _, o := range []engine.Options{{}, {URL: "ftp://x"}, {URL: "http://u:p@x"}, {URL: "http://x?k=v"}, {URL: "http://x", Kind: "other"}, {URL: "http://x", MaxReply: -1}} {
		_, err := engine.New(o)
		require.ErrorIs(t, err, rollout.KindInput)
		require.NotContains(t, err.Error(), "u:p")
	}
	_, err := engine.NewPool()
	require.Error(t, err)
	_, err = engine.NewPool(engine.Options{URL: "http://x"}, engine.Options{})
	require.ErrorIs(t, err, rollout.KindInput)
}

// TestProbe: Probe finds the version of the server, and that its streams are complete.
func TestProbe(t *testing.T) {
	p, _ := pool(t, 1)
	require.NoError(t, engine.Probe(t.Context(), p))
	require.Equal(t, "fake", p.Status()[0].Version)
	require.Equal(t, "unknown", p.Status()[0].Streams, "it was answered without a call")
	ids, err := p.Tokenize(t.Context(), &engine.Request{Text: "abc"})
	require.NoError(t, err)
	require.Equal(t, []rollout.TokenID{'a', 'b', 'c'}, ids)
}
