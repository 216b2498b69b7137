package swerl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// maxBody is the maximum size of a request and of a reply.
const maxBody = 256 << 20

// kindHeader gives our client the Kind of a failure, for which the protocol has no key.
const kindHeader = "X-Error-Kind"

// seconds is a duration in a request: a number, or a string with a number.
type seconds float64

func (s *seconds) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != f || f < 0 || f > 1e8 {
		return fmt.Errorf("expected seconds, found %s", b)
	}
	*s = seconds(f)
	return nil
}

func (s seconds) duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// request has the keys of all requests of both servers.
type request struct {
	LeaseID     string            `json:"lease_id,omitempty"`
	ContainerID string            `json:"container_id,omitempty"`
	Image       string            `json:"image,omitempty"`
	InstanceID  *string           `json:"instance_id,omitempty"`
	Pool        string            `json:"pool,omitempty"`
	Command     string            `json:"command,omitempty"`
	Cwd         string            `json:"cwd,omitempty"`
	Timeout     *seconds          `json:"timeout,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Patch       *string           `json:"patch,omitempty"`
	EvalScript  *string           `json:"eval_script,omitempty"`
	// Details requests end, peak_bytes and left_out; OutputLimit requests more of the output of an evaluation.
	Details     bool `json:"details,omitempty"`
	OutputLimit int  `json:"output_limit,omitempty"`
}

func (r request) timeout(otherwise time.Duration) time.Duration {
	if r.Timeout == nil || *r.Timeout == 0 {
		return otherwise
	}
	return r.Timeout.duration()
}

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// reply holds the members of a reply besides "ok".
type reply map[string]any

// send writes a reply, or a failure if err is not nil.
func send(w http.ResponseWriter, r reply, err error) {
	status := http.StatusOK
	out := reply{"ok": err == nil}
	maps.Copy(out, r)
	if err != nil {
		status = http.StatusInternalServerError
		kind := rollout.KindSandbox
		if e, ok := errors.AsType[*rollout.Error](err); ok {
			kind = e.Kind
		}
		switch {
		case errors.Is(err, errUnknown):
			status = http.StatusNotFound
		case errors.Is(err, errFull):
			status = http.StatusServiceUnavailable
			w.Header().Set("Retry-After", "1")
		case kind == rollout.KindInput:
			status = http.StatusBadRequest
		case errors.Is(err, errNode):
			status = http.StatusBadGateway
		}
		w.Header().Set(kindHeader, kind.String())
		out = reply{"ok": false, "error": err.Error()}
	}
	body, err := json.Marshal(out)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"ok": false, "error": "the reply cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

// The causes of failures that have their own status.
var (
	errUnknown = errors.New("unknown")
	errFull    = errors.New("full")
	errNode    = errors.New("node")
)

// fault returns an error with a cause that its text does not show.
func fault(cause error, format string, args ...any) error {
	return failure(rollout.KindSandbox, cause, format, args...)
}

func failure(kind rollout.Kind, cause error, format string, args ...any) error {
	e := rollout.Errorf(kind, rollout.Where{}, format, args...)
	e.Err = cause
	return e
}

func input(format string, args ...any) *rollout.Error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{}, format, args...)
}

// exchange sends a request and reads the answer.
func exchange(h *http.Client, r *http.Request) (got *http.Response, text []byte, err error) {
	r.Header.Set("Content-Type", "application/json")
	if got, err = h.Do(r); err != nil {
		return nil, nil, err
	}
	defer got.Body.Close()
	text, err = io.ReadAll(io.LimitReader(got.Body, maxBody))
	return got, text, err
}

// every calls f each time d has passed, until ctx ends.
func every(ctx context.Context, d time.Duration, f func()) {
	tick := time.NewTicker(max(d, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}

// each calls f for every element of a list, at most atOnce at a time, and joins the errors.
func each[T any](list []T, atOnce int, f func(T) error) error {
	errs := make([]error, len(list))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i, x := range list {
		g.Go(func() error { errs[i] = f(x); return nil })
	}
	_ = g.Wait() // the errors are in errs
	return errors.Join(errs...)
}

// handle returns a handler that decodes the request for f.
func handle(f func(*http.Request, request) (reply, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q request
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil && len(body) > 0 {
			err = json.Unmarshal(body, &q)
		}
		if err != nil {
			send(w, nil, input("the request is no JSON object of this protocol: %v", err))
			return
		}
		if q.Cwd == "" {
			q.Cwd = sandbox.DefaultDir
		}
		out, err := f(r, q)
		send(w, out, err)
	}
}
