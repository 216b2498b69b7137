package engine

import (
	"io"
	"time"
)

// drainStream reads what follows the end of a stream, so that its connection can be reused. A server that keeps
// the stream open is not waited for.
func drainStream(body io.ReadCloser) {
	late := time.AfterFunc(20*time.Millisecond, func() { body.Close() })
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, body, 4<<10) // a failure closes the connection
}

// watch tracks which choices of a reply have ended, and how many ids arrived.
type watch struct {
	header   *int32
	finished []bool
	ids      int
	usage    *Usage
	calls    bool
	bytes    int // of the text of a stream, and one for each event
	most     int // bytes
}

func (w *watch) track(c *Chunk) error {
	w.bytes++
	for i := range c.Choices {
		k := &c.Choices[i]
		w.bytes += len(k.Text) + len(k.Reasoning)
		for _, x := range k.Calls {
			w.bytes += len(x.Name) + len(x.Arguments)
		}
		if k.Index < 0 || k.Index >= len(w.finished) {
			return broken(nil, "it tells choice %d of %d", k.Index, len(w.finished))
		}
		if w.finished[k.Index] && (k.Text != "" || k.Reasoning != "" || len(k.IDs) > 0 || len(k.Calls) > 0) {
			return broken(nil, "choice %d goes on after its end", k.Index)
		}
		w.finished[k.Index] = w.finished[k.Index] || k.Finish != ""
		w.ids += len(k.IDs)
		w.calls = w.calls || len(k.Calls) > 0
		if k.Version == nil && len(k.IDs) > 0 {
			k.Version = w.header
		}
	}
	if c.Usage != nil {
		w.usage = c.Usage
	}
	if w.bytes > w.most {
		return broken(nil, "its reply has over %d bytes", w.most)
	}
	return nil
}

func (w *watch) end() error {
	for i, ok := range w.finished {
		if !ok {
			return broken(nil, "its reply ends without the end of choice %d", i)
		}
	}
	return nil
}

// recordStreams records whether streams with tools contain every id.
func (s *server) recordStreams(r *Request, w *watch) {
	if len(r.Tools) == 0 || !r.chat() || w.usage == nil || w.usage.Completion == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case w.ids != w.usage.Completion:
		s.status.Streams = "drops ids"
	case w.calls:
		s.status.Streams = "every id"
	}
}
