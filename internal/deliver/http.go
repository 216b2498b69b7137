package deliver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/turnpack/turnpack/internal/strictjson"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/gate"
)

// Limits of the requests.
const (
	maxEnding = 16 << 20
	maxWait   = 5 * time.Minute
)

// Handler returns a handler that serves
//
//	POST /rollouts/{id}/end      an Ending → an Answer
//	GET  /batches?after=N&wait=D the next batch as an Arrow IPC stream; 204 when none came, 404 after a batch that there is not
//	POST /batches/ack            {"seq": N}
//
// Errors are {"error": "..."} with the status of gate.Answer.
func (q *Queue) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /rollouts/{id}/end", q.serveEnd)
	mux.HandleFunc("GET /batches", q.serveNext)
	mux.HandleFunc("POST /batches/ack", q.serveAck)
	return mux
}

func (q *Queue) serveEnd(w http.ResponseWriter, r *http.Request) {
	var e Ending
	if !decode(w, r, &e) {
		return
	}
	answer, err := q.End(r.Context(), r.PathValue("id"), e)
	Reply(w, answer, err)
}

func (q *Queue) serveAck(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Seq int `json:"seq"`
	}
	if !decode(w, r, &body) {
		return
	}
	err := q.Ack(r.Context(), body.Seq)
	Reply(w, map[string]int{"acknowledged": body.Seq}, err)
}

func (q *Queue) serveNext(w http.ResponseWriter, r *http.Request) {
	after, wait := 0, time.Duration(0)
	var err error
	if text := r.URL.Query().Get("after"); text != "" {
		if after, err = strconv.Atoi(text); err != nil || after < 0 {
			Reply(w, nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "after"}, "found %q, expected the number of a batch, 0 for none", text))
			return
		}
	}
	if text := r.URL.Query().Get("wait"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 {
			Reply(w, nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "wait"}, "found %q, expected a time, for example 30s", text))
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), min(max(wait, time.Millisecond), maxWait))
	defer cancel()
	b, err := q.Next(ctx, after)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var out bytes.Buffer // the whole batch, or an error
	if err == nil {
		err = q.opts.Stream.WriteArrow(&out, b.Seq)
	}
	if err != nil {
		Reply(w, nil, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/vnd.apache.arrow.stream")
	h.Set("Content-Length", strconv.Itoa(out.Len()))
	h.Set("X-Group-Seq", strconv.Itoa(b.Seq))
	h.Set("X-Batch-Digest", b.Digest)
	_, _ = out.WriteTo(w) // a trainer that is gone asks again
}

func decode(w http.ResponseWriter, r *http.Request, to any) bool {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEnding))
	if err != nil {
		err = rollout.Errorf(rollout.KindInput, rollout.Where{}, "the request: %v", err)
	} else {
		err = strictjson.Decode(text, to)
	}
	if err != nil {
		Reply(w, nil, err)
	}
	return err == nil
}

// Reply answers with JSON: with answer, or with an error and its status from gate.Answer.
func Reply(w http.ResponseWriter, answer any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status, after := gate.Answer(err)
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		answer = map[string]string{"error": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that is gone asks again
}
