package engine_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// A server ends the body of a stream after the event that ends the reply, or keeps it
// open: its connection serves the next call too, or is closed.
func TestConnectionsOfStreams(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration // from the last event to the end
		calls int
		most  int64 // connections
	}{{"it ends", time.Millisecond, 20, 2}, {"it stays open", time.Minute, 2, 2}} {
		var opened atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop","token_ids":[1]}]}`+"\n\ndata: [DONE]\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(c.after):
			case <-r.Context().Done():
			}
		}))
		server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				opened.Add(1)
			}
		}
		server.Start()
		e, err := engine.New(engine.Options{URL: server.URL})
		require.NoError(t, err)
		for range c.calls {
			err := e.Generate(context.Background(), &engine.Request{Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "hi"}}, Stream: true}, func(*engine.Chunk) error { return nil })
			require.NoError(t, err, c.name)
		}
		require.LessOrEqual(t, opened.Load(), c.most, c.name)
		e.Close()
		server.Close()
	}
}
