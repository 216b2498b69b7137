package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy"
)

// client is a client of a handler that acts as soon as it has the end of the reply.
type client struct {
	*httptest.ResponseRecorder
	act func() error
}

func (c client) Write(b []byte) (int, error) {
	n, err := c.ResponseRecorder.Write(b)
	if s := c.Body.String(); strings.HasSuffix(s, "[DONE]\n\n") || strings.HasPrefix(s, "{") {
		err = c.act()
	}
	return n, err
}

// serve sends a request to the handler.
func (w *world) serve(ctx context.Context, id, body string, act func() error) {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/rollouts/"+id+requests["chat"].path, strings.NewReader(body))
	w.handler.ServeHTTP(client{httptest.NewRecorder(), act}, r)
}

// slowWorld has a journal in which the end of a reply waits for its fsync.
func slowWorld(t *testing.T) *world {
	journal, err := live.OpenJournal(t.TempDir(), live.JournalOptions{MaxDelay: 5 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, journal.Close()) })
	recorder, err := live.New(live.Options{Journal: journal})
	require.NoError(t, err)
	return newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}, Event: 100}, func(o *proxy.Options) { o.Recorder = recorder })
}

var waysToAsk = map[string]string{"whole": requests["chat"].body + "}", "stream": requests["chat"].body + `,"stream":true}`}

// A client that has the whole reply has seen it, even if it closes its connection at once.
func TestSeenByAClientThatCloses(t *testing.T) {
	for way, body := range waysToAsk {
		w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}})
		ctx, cancel := context.WithCancel(t.Context())
		w.serve(ctx, "r", body, func() error { cancel(); return nil })
		require.Equal(t, live.StateOK, w.calls("r")[0].State, way)
	}
}

// The reply that a retry gets is trained even if the harness ends the rollout as soon as it has it, whether the
// first client left before the reply was durable or after.
func TestSeenByARetry(t *testing.T) {
	for way, body := range waysToAsk {
		w := slowWorld(t)
		for i := range 60 {
			id := fmt.Sprint(way, i)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
			w.serve(ctx, id, body, func() error { return nil })
			cancel()
			w.serve(t.Context(), id, body, func() error {
				_, err := w.session(id).End(t.Context(), live.Ending{Group: "g"})
				return err
			})
			calls := w.calls(id)
			require.Len(t, calls, 1)
			require.Equal(t, live.StateOK, calls[0].State, id)
		}
	}
}

// That a client is gone may become known only when its retry has the reply.
func TestSeenBeforeTheClientIsMissed(t *testing.T) {
	for way, body := range waysToAsk {
		w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}})
		w.serve(t.Context(), "r", body, func() error {
			w.serve(t.Context(), "r", body, func() error { return nil })
			return io.ErrClosedPipe
		})
		require.Equal(t, live.StateOK, w.calls("r")[0].State, way)
	}
}

// The reply of a client that left while its end became durable is unseen.
func TestUnseenWhileItsEndIsRecorded(t *testing.T) {
	for way, body := range waysToAsk {
		w := slowWorld(t)
		for i := range 60 {
			id := fmt.Sprint(way, i)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
			ended := false
			w.serve(ctx, id, body, func() error { ended = true; return nil })
			cancel()
			require.NoError(t, w.handler.Drain(t.Context()))
			if s, begun := w.recorder.Session(id); begun && !ended && len(madeCalls(t, s)) > 0 {
				require.Equal(t, live.StateUnseen, madeCalls(t, s)[0].State, id)
			}
		}
	}
}
