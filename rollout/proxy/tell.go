package proxy

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// outs are reusable buffers for events.
var outs = sync.Pool{New: func() any { return new([]byte) }}

// sendReply sends a job's reply to a client as it arrives. It returns seen = true if the client received all of
// it, and a problem if nothing was sent yet.
func (h *Handler) sendReply(w http.ResponseWriter, r *http.Request, d wire.Dialect, c *wire.Call, j *job) (p *wire.Problem, seen bool) {
	if c.Stream {
		return h.sendStream(w, r, d, c, j)
	}
	for {
		chunks, more, done, p, meta := j.after(0)
		if p != nil {
			return p, false
		}
		if done {
			w.Header().Set("X-Request-Id", meta.ID)
			here := r.Context().Err() == nil // one that has all of it may close its connection at once
			err := send(w, http.StatusOK, d.Writer(c, meta).Whole(chunks))
			return nil, err == nil && here
		}
		select {
		case <-r.Context().Done():
			return nil, false
		case <-more:
		}
	}
}

// sendStream is sendReply for a stream of events.
func (h *Handler) sendStream(w http.ResponseWriter, r *http.Request, d wire.Dialect, c *wire.Call, j *job) (p *wire.Problem, seen bool) {
	ctx, control := r.Context(), http.NewResponseController(w)
	var write wire.Writer
	room := outs.Get().(*[]byte)
	out := *room
	defer func() {
		if cap(out) <= 64<<10 {
			*room = out[:0]
			outs.Put(room)
		}
	}()
	told, headed := 0, false
	alive := time.NewTimer(h.opts.KeepAlive)
	defer alive.Stop()
	for late := false; ; {
		chunks, more, done, p, meta := j.after(told)
		if p != nil && !headed {
			return p, false
		}
		here := ctx.Err() == nil
		out = out[:0]
		if write == nil && meta.ID != "" && (len(chunks) > 0 || done) {
			write = d.Writer(c, meta)
		}
		for _, x := range chunks {
			out = write.Chunk(out, x)
		}
		told += len(chunks)
		switch {
		case p != nil && write == nil:
			out = d.Writer(c, wire.Meta{Created: time.Now()}).Fail(out, p)
		case p != nil:
			out = write.Fail(out, p)
		case done:
			out = write.End(out)
		case late && len(out) == 0:
			out = d.Writer(c, wire.Meta{}).Ping(out)
		}
		if len(out) > 0 {
			if !headed {
				headed = true
				if meta.ID != "" {
					w.Header().Set("X-Request-Id", meta.ID)
				}
				stream(w)
			}
			_, err := w.Write(out)
			if err == nil && !done {
				err = control.Flush()
			}
			if err != nil {
				return nil, false
			}
			alive.Reset(h.opts.KeepAlive)
		}
		if done {
			return nil, here && p == nil
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-more:
			late = false
			runtime.Gosched() // chunks that arrive together are sent in one write
		case <-alive.C:
			late = true
		}
	}
}
