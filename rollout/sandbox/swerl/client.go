package swerl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// ClientOptions configures NewClient.
type ClientOptions struct {
	URL string // of a pool, or with Direct of an exec server
	// Direct uses an exec server, without leases.
	Direct bool
	// Retries is the maximum number of attempts of a request, 10 if 0, EvaluateRetries that of an evaluation, 3
	// if 0. Pause is the time between attempts, a second if 0.
	Retries, EvaluateRetries int
	Pause                    time.Duration
	// Wait is how long Create waits while every node is full; 10 minutes if 0.
	Wait time.Duration
	// Heartbeat is the interval between heartbeats of a lease until Close; a minute if 0, none if negative.
	Heartbeat time.Duration
	HTTP      *http.Client // its own if nil; it must not have a timeout
}

// Environ returns the options that swe-rl's client reads from its environment: SWE_ENV_SERVER_URL, or
// SWE_ENV_SERVER_HOST and _PORT, SWE_ENV_HTTP_MAX_RETRIES and SWE_EVALUATE_MAX_RETRIES. Pass os.Getenv.
func Environ(getenv func(string) string) (ClientOptions, error) {
	o := ClientOptions{URL: getenv("SWE_ENV_SERVER_URL")}
	if o.URL == "" {
		o.URL = "http://" + net.JoinHostPort(cmp.Or(getenv("SWE_ENV_SERVER_HOST"), "localhost"), cmp.Or(getenv("SWE_ENV_SERVER_PORT"), "18090"))
	}
	var errs []error
	number := func(name string) (n int) {
		if text := getenv(name); text != "" {
			var err error
			if n, err = strconv.Atoi(text); err != nil || n < 1 {
				errs = append(errs, input("%s: expected a number above 0, found %q", name, text))
			}
		}
		return n
	}
	o.Retries, o.EvaluateRetries = number("SWE_ENV_HTTP_MAX_RETRIES"), number("SWE_EVALUATE_MAX_RETRIES")
	return o, errors.Join(errs...)
}

// client is a sandbox.Provider over HTTP. NewClient makes one.
type client struct{ options ClientOptions }

// NewClient makes a client, without sending a request.
func NewClient(o ClientOptions) (sandbox.Provider, error) {
	var l faults.List
	if !strings.HasPrefix(o.URL, "http://") && !strings.HasPrefix(o.URL, "https://") {
		l.Add("URL", "expected http:// or https://, found %q", o.URL)
	}
	l.Count("Retries", o.Retries)
	l.Count("EvaluateRetries", o.EvaluateRetries)
	l.Count("Pause", int(o.Pause))
	if l.Count("Wait", int(o.Wait)); l.Err() != nil {
		return nil, l.Err()
	}
	o.URL = strings.TrimRight(o.URL, "/")
	o.Retries, o.EvaluateRetries = cmp.Or(o.Retries, 10), cmp.Or(o.EvaluateRetries, 3)
	o.Pause, o.Wait = cmp.Or(o.Pause, time.Second), cmp.Or(o.Wait, 10*time.Minute)
	o.Heartbeat = cmp.Or(o.Heartbeat, time.Minute)
	if o.HTTP == nil {
		o.HTTP = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, IdleConnTimeout: time.Minute}}
	}
	return &client{options: o}, nil
}

// answer has the keys of all replies.
type answer struct {
	OK          bool   `json:"ok"`
	Error       string `json:"error"`
	LeaseID     string `json:"lease_id"`
	ContainerID string `json:"container_id"`
	Returncode  int    `json:"returncode"`
	Output      string `json:"output"`
	Patch       string `json:"patch"`
	Resolved    bool   `json:"resolved"`
	Verdict     string `json:"verdict"`
	End         string `json:"end"`
	PeakBytes   int64  `json:"peak_bytes"`
	LeftOut     int64  `json:"left_out"`
}

// post sends a request until it is answered. A command whose connection broke is not sent again, since it may
// have run; an answer of our servers says whether a retry makes sense.
func (c *client) post(ctx context.Context, path string, q request, tries int, timeout time.Duration) (answer, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return answer{}, input("%v", err)
	}
	waited := time.Now()
	for {
		a, again, err := c.once(ctx, path, body, timeout)
		full := errors.Is(err, errFull) && strings.HasSuffix(path, "/allocate") && time.Since(waited) < c.options.Wait
		if !full {
			tries--
		}
		if err == nil || !again || tries <= 0 || ctx.Err() != nil {
			return a, err
		}
		select {
		case <-ctx.Done():
			return a, err
		case <-time.After(c.options.Pause):
		}
	}
}

func (c *client) once(ctx context.Context, path string, body []byte, timeout time.Duration) (a answer, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.options.URL+path, bytes.NewReader(body))
	if err != nil {
		return a, false, input("%v", err)
	}
	got, text, err := exchange(c.options.HTTP, r)
	if err != nil {
		op, _ := errors.AsType[*net.OpError](err)
		unsent := op != nil && op.Op == "dial"
		return a, unsent || !strings.HasSuffix(path, "/exec"), rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "%s%s: %w", c.options.URL, path, err)
	}
	if err := json.Unmarshal(text, &a); err != nil && got.StatusCode < 500 {
		return a, false, rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "%s%s answered %s with what is not of this protocol: %w", c.options.URL, path, got.Status, err).
			WithFix("give the address of a pool or, with Direct, of an exec server")
	}
	if a.OK && got.StatusCode < 400 {
		return a, false, nil
	}
	kind := rollout.KindSandbox
	for _, k := range []rollout.Kind{rollout.KindInput, rollout.KindLimit} {
		if got.Header.Get(kindHeader) == k.String() || k == rollout.KindInput && got.StatusCode == http.StatusBadRequest {
			kind = k
		}
	}
	cause := error(nil)
	if got.StatusCode == http.StatusServiceUnavailable || strings.Contains(a.Error, "All exec nodes are full") {
		cause = errFull
	}
	again = got.StatusCode >= 500 && (got.Header.Get(kindHeader) == "" || got.StatusCode == http.StatusServiceUnavailable)
	return a, again, failure(kind, cause, "%s%s: %s: %s", c.options.URL, path, got.Status, a.Error)
}

// Create leases a container, or creates one with Direct.
func (c *client) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if spec.Image == "" {
		return nil, input("the image is empty")
	}
	q := request{Image: spec.Image, InstanceID: &spec.Instance}
	if spec.Dir != "" && spec.Dir != sandbox.DefaultDir || c.options.Direct {
		q.Cwd = cmp.Or(spec.Dir, sandbox.DefaultDir)
	}
	path, id := "/allocate", func(a answer) string { return a.LeaseID }
	if c.options.Direct {
		path, id, q.InstanceID = "/container/create", func(a answer) string { return a.ContainerID }, nil
	}
	a, err := c.post(ctx, path, q, c.options.Retries, 5*time.Minute)
	if err != nil {
		return nil, err
	}
	s := &remote{client: c, at: sandbox.Container{ID: id(a), Spec: spec, Created: time.Now()}, stop: func() {}}
	if s.at.ID == "" {
		return nil, rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "%s%s gave no id", c.options.URL, path)
	}
	if !c.options.Direct && c.options.Heartbeat > 0 {
		beat, stop := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan struct{})
		s.stop = func() { stop(); <-done }
		go func() {
			defer close(done)
			s.heartbeat(beat)
		}()
	}
	return s, nil
}

// remote is a sandbox on a server.
type remote struct {
	client *client
	at     sandbox.Container
	stop   func() // ends the heartbeat

	mu     sync.Mutex
	closed bool
}

// heartbeat keeps the lease alive until ctx ends or the pool no longer knows the lease.
func (s *remote) heartbeat(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	every(ctx, s.client.options.Heartbeat, func() {
		a, again, err := s.client.once(ctx, "/heartbeat", []byte(`{"lease_id":`+strconv.Quote(s.at.ID)+`}`), 30*time.Second)
		if err != nil && !again && !a.OK {
			stop() // the next call reports it
		}
	})
}

// Container returns the id of the lease, or of the container.
func (s *remote) Container() sandbox.Container { return s.at }

func (s *remote) post(ctx context.Context, path string, q request, tries int, timeout time.Duration) (answer, error) {
	if s.client.options.Direct {
		path, q.ContainerID = "/container"+path, s.at.ID
	} else {
		q.LeaseID = s.at.ID
	}
	return s.client.post(ctx, path, q, tries, timeout)
}

func (s *remote) Exec(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	if err := c.Validate(); err != nil {
		return sandbox.Result{}, err
	}
	if c.Stdin != nil {
		return sandbox.Result{}, input("the protocol has no standard input for commands")
	}
	c = c.With()
	q := request{Command: c.Text, Cwd: c.Dir, Timeout: wholeSeconds(c.Timeout), Env: c.Env, Details: true}
	a, err := s.post(ctx, "/exec", q, s.client.options.Retries, c.Timeout+2*time.Minute)
	if err != nil {
		return sandbox.Result{}, err
	}
	r := sandbox.Result{ExitCode: a.Returncode, Stdout: a.Output, End: sandbox.End(cmp.Or(a.End, a.Verdict)), LeftOut: a.LeftOut, Peak: a.PeakBytes}
	if r.End == sandbox.EndExited && a.Returncode == -1 && strings.HasPrefix(a.Output, "Command timed out after ") {
		r.End = sandbox.EndTimeout
	}
	return r, nil
}

// wholeSeconds rounds up: other servers accept whole numbers only.
func wholeSeconds(d time.Duration) *seconds {
	s := seconds((d + time.Second - 1) / time.Second)
	return &s
}

func (s *remote) Diff(ctx context.Context, dir string) (string, error) {
	a, err := s.post(ctx, "/diff", request{Cwd: cmp.Or(dir, sandbox.DefaultDir)}, s.client.options.Retries, 3*time.Minute)
	if err == nil && a.Returncode != 0 {
		err = input("git gives no patch of %s: %s", dir, strings.TrimSpace(a.Error))
	}
	if err != nil {
		return "", err
	}
	return a.Patch, nil
}

func (s *remote) Evaluate(ctx context.Context, e sandbox.Evaluation) (sandbox.Verdict, error) {
	timeout := cmp.Or(max(e.Timeout, 0), sandbox.DefaultEvaluateTimeout)
	q := request{Patch: &e.Patch, EvalScript: &e.Script, Cwd: cmp.Or(e.Dir, sandbox.DefaultDir), Timeout: wholeSeconds(timeout), Details: true, OutputLimit: max(e.MaxOutput, 0)}
	a, err := s.post(ctx, "/evaluate", q, s.client.options.EvaluateRetries, timeout+5*time.Minute)
	if err != nil {
		return sandbox.Verdict{}, err
	}
	v := sandbox.Verdict{Resolved: a.Resolved, ExitCode: a.Returncode, Output: a.Output, Reason: a.Error, End: sandbox.End(cmp.Or(a.End, a.Verdict)), Peak: a.PeakBytes}
	if v.End == sandbox.EndExited && strings.HasPrefix(a.Error, "Evaluation timed out after ") {
		v.End = sandbox.EndTimeout
	}
	return v, nil
}

func (s *remote) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.stop()
	path := "/close"
	if s.client.options.Direct {
		path = "/destroy"
	}
	if _, err := s.post(ctx, path, request{}, s.client.options.Retries, time.Minute); err != nil {
		return err
	}
	s.closed = true
	return nil
}
