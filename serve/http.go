package serve

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
	maxSteer  = 64 << 10
	maxWait   = 5 * time.Minute
)

// serveEnd answers POST /rollouts/{id}/end with an endAnswer.
func (q *queue) serveEnd(w http.ResponseWriter, r *http.Request) {
	var e endRequest
	if !decode(w, r, maxEnding, &e) {
		return
	}
	answer, err := q.End(r.Context(), r.PathValue("id"), e)
	reply(w, answer, err)
}

// serveAck answers POST /batches/ack, {"seq": N}.
func (q *queue) serveAck(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Seq int `json:"seq"`
	}
	if !decode(w, r, maxEnding, &body) {
		return
	}
	err := q.Ack(r.Context(), body.Seq)
	reply(w, map[string]int{"acknowledged": body.Seq}, err)
}

// serveNext answers GET /batches?after=N&wait=D with the next batch as an Arrow IPC stream; 204 when none came, 404
// after a batch that there is not.
func (q *queue) serveNext(w http.ResponseWriter, r *http.Request) {
	after, wait := 0, time.Duration(0)
	var err error
	if text := r.URL.Query().Get("after"); text != "" {
		if after, err = strconv.Atoi(text); err != nil || after < 0 {
			reply(w, nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "after"}, "found %q, expected the number of a batch, 0 for none", text))
			return
		}
	}
	if text := r.URL.Query().Get("wait"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 {
			reply(w, nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "wait"}, "found %q, expected a time, for example 30s", text))
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
		err = q.stream.WriteArrow(&out, b.Seq)
	}
	if err != nil {
		reply(w, nil, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/vnd.apache.arrow.stream")
	h.Set("Content-Length", strconv.Itoa(out.Len()))
	h.Set("X-Group-Seq", strconv.Itoa(b.Seq))
	h.Set("X-Batch-Digest", b.Digest)
	_, _ = out.WriteTo(w) // a trainer that is gone asks again
}

// decode reads the body of a request, and leaves to unchanged if there is none. If it is not what is expected, it
// answers and returns false.
func decode(w http.ResponseWriter, r *http.Request, most int64, to any) bool {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		err = rollout.Errorf(rollout.KindInput, rollout.Where{}, "the request: %v", err)
	} else if len(bytes.TrimSpace(text)) > 0 {
		err = strictjson.Decode(text, to)
	}
	if err != nil {
		reply(w, nil, err)
	}
	return err == nil
}

// reply answers with JSON: with answer, or with an error and its status from gate.Answer.
func reply(w http.ResponseWriter, answer any, err error) {
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
