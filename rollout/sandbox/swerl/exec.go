package swerl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// ExecOptions configures an exec server.
type ExecOptions struct {
	Driver sandbox.Driver
	// Idle is how long a container may go without a request; 12 hours if 0. A pool frees its containers much
	// earlier; this frees those of a pool that never came back.
	Idle time.Duration
}

// Server is an exec server or a pool.
type Server interface {
	http.Handler
	// Run does the periodic work until ctx ends.
	Run(ctx context.Context)
	// Close destroys every container and refuses new ones. An error names those that remain.
	Close(ctx context.Context) error
}

// execServer serves the containers of one machine.
type execServer struct {
	*http.ServeMux
	options ExecOptions

	mu     sync.Mutex
	boxes  map[string]*held // by id
	closed bool
}

// held is a container and its current use.
type held struct {
	sandbox.Sandbox
	busy int
	used time.Time
}

// NewExecServer serves the containers of one machine, by default on port 5000, including its driver's existing
// containers. Its Run frees idle containers.
func NewExecServer(ctx context.Context, o ExecOptions) (Server, error) {
	var l faults.List
	if o.Driver == nil {
		l.Add("Driver", "there is none")
	}
	if l.Count("Idle", int(o.Idle)); l.Err() != nil {
		return nil, l.Err()
	}
	o.Idle = cmp.Or(o.Idle, 12*time.Hour)
	s := &execServer{ServeMux: http.NewServeMux(), options: o, boxes: map[string]*held{}}
	list, err := sandbox.Adopt(ctx, o.Driver)
	if err != nil {
		return nil, err
	}
	for _, b := range list {
		s.boxes[b.Container().ID] = &held{Sandbox: b, used: time.Now()}
	}
	s.HandleFunc("GET /healthz", handle(s.health))
	s.HandleFunc("GET /images", handle(s.images))
	s.HandleFunc("GET /status", handle(s.status))
	s.HandleFunc("POST /container/create", handle(s.create))
	s.HandleFunc("POST /container/exec", handle(s.with(s.exec)))
	s.HandleFunc("POST /container/diff", handle(s.with(s.diff)))
	s.HandleFunc("POST /container/evaluate", handle(s.with(s.evaluate)))
	s.HandleFunc("POST /container/destroy", handle(s.destroy))
	return s, nil
}

func (s *execServer) Run(ctx context.Context) {
	every(ctx, min(s.options.Idle/4, time.Minute), func() {
		s.free(ctx, func(h *held) bool { return h.busy == 0 && time.Since(h.used) > s.options.Idle })
	})
}

func (s *execServer) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.free(ctx, func(*held) bool { return true })
}

func (s *execServer) free(ctx context.Context, which func(*held) bool) error {
	s.mu.Lock()
	var list []*held
	for _, h := range s.boxes {
		if which(h) {
			list = append(list, h)
		}
	}
	s.mu.Unlock()
	return each(list, 8, func(h *held) error { return s.remove(ctx, h) })
}

func (s *execServer) remove(ctx context.Context, h *held) error {
	if err := h.Close(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.boxes, h.Container().ID)
	s.mu.Unlock()
	return nil
}

func (s *execServer) health(r *http.Request, _ request) (reply, error) {
	ctx, cancel := context.WithTimeout(r.Context(), 4*time.Second)
	defer cancel()
	list, err := s.options.Driver.Containers(ctx)
	return reply{"running_containers": strconv.Itoa(len(list))}, err
}

func (s *execServer) images(r *http.Request, _ request) (reply, error) {
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	list, err := s.options.Driver.Images(ctx)
	if list == nil {
		list = []string{}
	}
	return reply{"images": list, "count": len(list)}, err
}

func (s *execServer) status(*http.Request, request) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	containers := reply{}
	for id, h := range s.boxes {
		at := h.Container()
		c := reply{"name": at.Name, "image": at.Spec.Image, "created_at": float64(at.Created.UnixMicro()) / 1e6}
		if at.Spec.Lease != "" { // container of one of our pools, which finds its leases by these keys
			c["lease_id"], c["instance_id"], c["pool"] = at.Spec.Lease, at.Spec.Instance, at.Spec.Pool
		}
		containers[id] = c
	}
	return reply{"active_containers": len(containers), "containers": containers}, nil
}

func (s *execServer) create(r *http.Request, q request) (reply, error) {
	if q.Image == "" {
		return nil, input("image is required")
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, fault(errFull, "the server ends")
	}
	ctx, cancel := context.WithTimeout(r.Context(), q.timeout(2*time.Minute))
	defer cancel()
	b, err := sandbox.On(s.options.Driver).Create(ctx, sandbox.Spec{Image: q.Image, Dir: q.Cwd, Instance: text(q.InstanceID), Lease: q.LeaseID, Pool: q.Pool})
	if err != nil {
		return nil, err
	}
	h := &held{Sandbox: b, used: time.Now()}
	s.mu.Lock()
	s.boxes[b.Container().ID] = h
	closed = s.closed
	s.mu.Unlock()
	if closed || ctx.Err() != nil { // no client will learn the container's name
		return nil, errors.Join(fault(errFull, "the server ends, or the client is gone"), s.remove(context.WithoutCancel(ctx), h))
	}
	return reply{"container_id": b.Container().ID, "name": b.Container().Name}, nil
}

// find returns a container by id or name, nil if there is none.
func (s *execServer) find(id string) *held {
	if h := s.boxes[id]; h != nil {
		return h
	}
	for _, h := range s.boxes {
		if h.Container().Name == id {
			return h
		}
	}
	return nil
}

// with passes f the container that its request names.
func (s *execServer) with(f func(context.Context, *held, request) (reply, error)) func(*http.Request, request) (reply, error) {
	return func(r *http.Request, q request) (reply, error) {
		if q.ContainerID == "" {
			return nil, input("container_id is required")
		}
		s.mu.Lock()
		h := s.find(q.ContainerID)
		if h != nil {
			h.busy++
		}
		s.mu.Unlock()
		if h == nil {
			return nil, fault(errUnknown, "there is no container %q", q.ContainerID)
		}
		defer func() {
			s.mu.Lock()
			h.busy--
			h.used = time.Now()
			s.mu.Unlock()
		}()
		return f(r.Context(), h, q)
	}
}

// details adds keys that the reference's protocol does not have.
func (q request) details(out reply, end sandbox.End, peak, leftOut int64) reply {
	if end == sandbox.EndOOM || end == sandbox.EndPids {
		out["verdict"] = string(end)
	}
	if q.Details {
		out["end"], out["peak_bytes"], out["left_out"] = string(end), peak, leftOut
	}
	return out
}

func (s *execServer) exec(ctx context.Context, h *held, q request) (reply, error) {
	if q.Command == "" {
		return nil, input("container_id and command are required")
	}
	c := sandbox.Command{Text: q.Command, Dir: q.Cwd, Timeout: q.timeout(sandbox.DefaultTimeout), Env: q.Env}
	r, err := h.Exec(ctx, c)
	if err != nil {
		return nil, err
	}
	output := r.Output()
	switch r.End {
	case sandbox.EndTimeout:
		output = sandbox.TimedOut("Command", c.Timeout)
	case sandbox.EndOOM, sandbox.EndPids:
		output += fmt.Sprintf("\n[the command was killed: %s]\n", r.End)
	}
	return q.details(reply{"returncode": r.ExitCode, "output": output}, r.End, r.Peak, r.LeftOut), nil
}

func (s *execServer) diff(ctx context.Context, h *held, q request) (reply, error) {
	patch, err := h.Diff(ctx, q.Cwd)
	var git interface{ Result() sandbox.Result }
	if errors.As(err, &git) {
		return reply{"patch": patch, "returncode": git.Result().ExitCode, "error": git.Result().Stderr}, nil
	} else if err != nil {
		return nil, err
	}
	return reply{"patch": patch, "returncode": 0, "error": ""}, nil
}

func (s *execServer) evaluate(ctx context.Context, h *held, q request) (reply, error) {
	if q.OutputLimit < 0 || q.OutputLimit > maxBody/8 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "output_limit"}, "expected at most %d characters, found %d", maxBody/8, q.OutputLimit)
	}
	v, err := h.Evaluate(ctx, sandbox.Evaluation{Patch: text(q.Patch), Script: text(q.EvalScript), Dir: q.Cwd, Timeout: q.timeout(sandbox.DefaultEvaluateTimeout), MaxOutput: q.OutputLimit})
	if err != nil {
		return nil, err
	}
	out := reply{"resolved": v.Resolved}
	if v.Reason != "" {
		out["error"] = v.Reason
	} else {
		out["returncode"], out["output"] = v.ExitCode, v.Output
	}
	return q.details(out, v.End, v.Peak, 0), nil
}

func (s *execServer) destroy(r *http.Request, q request) (reply, error) {
	if q.ContainerID == "" {
		return nil, input("container_id is required")
	}
	s.mu.Lock()
	h := s.find(q.ContainerID)
	s.mu.Unlock()
	if h == nil {
		return nil, nil // it is already gone
	}
	// The container is removed even if the client is gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
	defer cancel()
	return nil, s.remove(ctx, h)
}
