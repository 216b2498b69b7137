package proxy

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// outs are buffers of events.
var outs = sync.Pool{New: func() any { return new([]byte) }}

// tell tells a job's reply to a client as it comes. seen is true when the client has all
// of it; a problem is returned where nothing was told yet.
func (h *Handler) tell(w http.ResponseWriter, r *http.Request, d wire.Dialect, c *wire.Call, j *job, me *reader) (p *wire.Problem, seen bool) {
	ctx := r.Context()
	if !c.Stream {
		for {
			chunks, done, p, meta := j.after(0)
			if done && p != nil {
				return p, true
			}
			if done {
				w.Header().Set("X-Request-Id", meta.ID)
				err := send(w, http.StatusOK, d.Writer(c, meta).Whole(chunks))
				return nil, err == nil && ctx.Err() == nil
			}
			select {
			case <-ctx.Done():
				return nil, false
			case <-me.more:
			}
		}
	}
	control := http.NewResponseController(w)
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
	for {
		chunks, done, p, meta := j.after(told)
		if done && p != nil && !headed {
			return p, true
		}
		out = out[:0]
		if write == nil && (len(chunks) > 0 || done) && meta.ID != "" {
			write = d.Writer(c, meta)
		}
		for _, x := range chunks {
			out = write.Chunk(out, x)
		}
		told += len(chunks)
		switch {
		case done && p != nil && write == nil:
			out = d.Writer(c, wire.Meta{Created: time.Now()}).Fail(out, p)
		case done && p != nil:
			out = write.Fail(out, p)
		case done:
			out = write.End(out)
		}
		if len(out) > 0 {
			if !headed {
				headed = true
				w.Header().Set("X-Request-Id", meta.ID)
				stream(w)
			}
			if _, err := w.Write(out); err != nil {
				return nil, false
			}
			if !done {
				if err := control.Flush(); err != nil {
					return nil, false
				}
			}
			alive.Reset(h.opts.KeepAlive)
		}
		if done {
			return nil, ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-me.more:
			runtime.Gosched() // what came at once goes out in one write
		case <-alive.C:
			if !headed {
				headed = true
				stream(w)
			}
			if _, err := w.Write(d.Writer(c, wire.Meta{}).Ping(nil)); err != nil {
				return nil, false
			}
			if err := control.Flush(); err != nil {
				return nil, false
			}
			alive.Reset(h.opts.KeepAlive)
		}
	}
}
