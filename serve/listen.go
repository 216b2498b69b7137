package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Listen configures Serve. Agents is required.
type Listen struct {
	Agents string // address for agents
	// Admin is a separate address, out of agents' reach, for the endpoints that steer and show the service and
	// hand batches to trainers. "" = all endpoints are at Agents.
	Admin string
	Drain time.Duration // time that calls have to end
	// ErrorsAs supplies the ErrorLog of the servers, nil = that of net/http.
	ErrorsAs *http.Server
	Ready    func(a net.Addr) // called with the address for agents; may be nil
}

// Serve answers until ctx ends, then drains the calls and closes the service.
func (s *Service) Serve(ctx context.Context, o Listen) (err error) {
	if s.proxy == nil {
		return zero.Value("serve.Service", "Open")
	}
	if o.Agents == "" {
		return errors.Join(rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Agents"}, "is empty, expected an address"), s.Close(ctx))
	}
	closing, cancel := context.WithCancelCause(context.Background()) // ends when draining takes too long
	defer cancel(nil)
	var servers []*http.Server
	var late error
	defer func() {
		if err = errors.Join(err, s.Close(closing)); !errors.Is(err, late) {
			err = errors.Join(err, late)
		}
		told, cancel := context.WithTimeout(context.Background(), abortTime) // clients of aborted calls are told so
		defer cancel()
		for _, x := range servers {
			if x.Shutdown(told) != nil {
				err = errors.Join(err, x.Close())
			}
		}
	}()
	failed := make(chan error, 2)
	listen := func(l net.Listener, h http.Handler) *http.Server {
		x := &http.Server{Handler: patient(h, takeTime), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 3 * time.Minute, WriteTimeout: takeTime}
		if o.ErrorsAs != nil {
			x.ErrorLog = o.ErrorsAs.ErrorLog
		}
		go func() { failed <- x.Serve(l) }()
		return x
	}
	agents, err := listenAt("Agents", o.Agents)
	if err != nil {
		return err
	}
	if o.Admin == "" {
		servers = append(servers, listen(agents, s.Handler()))
	} else {
		admin, err := listenAt("Admin", o.Admin)
		if err != nil {
			return errors.Join(err, agents.Close())
		}
		servers = append(servers, listen(agents, s.agents()), listen(admin, s.Handler()))
	}
	if o.Ready != nil {
		o.Ready(agents.Addr())
	}
	select {
	case err = <-failed:
		cancel(nil)
	case <-ctx.Done():
		s.Stop()
		time.AfterFunc(o.Drain, func() {
			cancel(rollout.Errorf(rollout.KindLimit, rollout.Where{Field: "Drain"}, "what still ran after %s was ended", o.Drain))
		})
	}
	for _, x := range servers {
		if x.Shutdown(closing) != nil {
			late = context.Cause(closing)
		}
	}
	return err
}

// listenAt listens at the address in a field of Listen.
func listenAt(field, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: field}, "expected an address to listen at: %w", err)
	}
	return l, nil
}

// takeTime is how long a client may accept no data, and how long it may send a body, before its connection is
// closed.
const takeTime = 5 * time.Minute

// patient limits the time for the body of a request to d, and restarts the write deadline d at each write, so
// that the time to produce the data does not count.
func patient(h http.Handler, d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.Body != nil && r.Body != http.NoBody {
			_ = control.SetReadDeadline(time.Now().Add(d)) // a reader that is not a connection needs no deadline
			r = r.WithContext(r.Context())
			r.Body = &patientBody{r.Body, control}
		}
		h.ServeHTTP(&patientWriter{w, control, d}, r)
	})
}

// patientBody removes the read deadline at the end of the body, since at the deadline net/http ends the context
// of a request whose reply is still being made.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *patientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	time    time.Duration
}

func (t *patientWriter) restartDeadline() {
	_ = t.control.SetWriteDeadline(time.Now().Add(t.time)) // a writer that is not a connection needs no deadline
}

func (t *patientWriter) WriteHeader(status int) {
	t.restartDeadline()
	t.ResponseWriter.WriteHeader(status)
}

func (t *patientWriter) Write(b []byte) (int, error) {
	t.restartDeadline()
	return t.ResponseWriter.Write(b)
}

func (t *patientWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// agents serves agents, and harnesses that end rollouts: none of its endpoints steers the service, shows other
// sessions' calls, or hands out batches.
func (s *Service) agents() http.Handler {
	all := s.Handler()
	mux := http.NewServeMux()
	for _, path := range []string{"/v1/", "POST /rollouts/{id}/end", "GET /healthz"} {
		mux.Handle(path, all)
	}
	mux.Handle("/rollouts/{id}/", s.proxy)
	return mux
}
