package swerl

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// PoolOptions holds the nodes of a pool and its limits.
type PoolOptions struct {
	Nodes   []string      // base URLs of exec servers
	PerNode int           // containers per node; 15 if 0
	TTL     time.Duration // lifetime of a lease without heartbeat or request; 10 minutes if 0
	Health  time.Duration // interval between health checks of a node; 30 seconds if 0
	// Name distinguishes this pool's containers from another pool's on the same nodes. A pool takes over the
	// leases of a killed pool with the same name.
	Name string
	HTTP *http.Client // its own if nil
}

// validate reports all invalid fields at once.
func (o PoolOptions) validate() error {
	var l faults.List
	if len(o.Nodes) == 0 {
		l.Add("Nodes", "there is none")
	}
	for i, n := range o.Nodes {
		if !strings.HasPrefix(n, "http://") && !strings.HasPrefix(n, "https://") {
			l.Add("Nodes["+strconv.Itoa(i)+"]", "expected a URL, found %q", n)
		}
	}
	l.Count("PerNode", o.PerNode)
	l.Count("TTL", int(o.TTL))
	l.Count("Health", int(o.Health))
	return l.Err()
}

// pool leases containers of exec servers.
type pool struct {
	*http.ServeMux
	options PoolOptions

	mu     sync.Mutex
	nodes  []*node
	leases map[string]*lease
	closed bool
}

type node struct {
	url     string
	active  int // containers and reservations
	healthy bool
	adopted bool // its existing containers were looked for
}

type lease struct {
	id, container string
	node          *node
	busy          int
	used          time.Time
	ending        bool // closed or expired: the container must be removed
	removing      bool // a removal is in progress
}

// NewPool leases containers of exec servers, by default on port 18090. It checks every node and takes over the
// leases of an earlier pool with the same name. Its Run checks nodes, ends expired leases and removes remaining
// containers; its Close ends every lease and destroys the containers.
func NewPool(ctx context.Context, o PoolOptions) (Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o.PerNode = cmp.Or(o.PerNode, 15)
	o.TTL = cmp.Or(o.TTL, 10*time.Minute)
	o.Health = cmp.Or(o.Health, 30*time.Second)
	o.Name = cmp.Or(o.Name, "pool")
	if o.HTTP == nil {
		o.HTTP = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * o.PerNode, IdleConnTimeout: time.Minute}}
	}
	p := &pool{ServeMux: http.NewServeMux(), options: o, leases: map[string]*lease{}}
	for _, url := range o.Nodes {
		p.nodes = append(p.nodes, &node{url: strings.TrimRight(url, "/")})
	}
	p.checkNodes(ctx)
	p.HandleFunc("GET /healthz", handle(func(*http.Request, request) (reply, error) { return nil, nil }))
	p.HandleFunc("GET /status", handle(p.status))
	p.HandleFunc("POST /allocate", handle(p.allocate))
	p.HandleFunc("POST /heartbeat", handle(p.with(func(context.Context, *lease, request) (reply, error) { return nil, nil })))
	p.HandleFunc("POST /exec", handle(p.with(p.exec)))
	p.HandleFunc("POST /diff", handle(p.with(p.diff)))
	p.HandleFunc("POST /evaluate", handle(p.with(p.evaluate)))
	p.HandleFunc("POST /close", handle(p.close))
	return p, nil
}

func (p *pool) Run(ctx context.Context) {
	var looks sync.WaitGroup
	looks.Go(func() { every(ctx, p.options.Health, func() { p.checkNodes(ctx) }) })
	every(ctx, min(p.options.TTL/4, 5*time.Second), func() {
		p.mu.Lock()
		for _, l := range p.leases {
			l.ending = l.ending || l.busy == 0 && time.Since(l.used) > p.options.TTL
		}
		p.mu.Unlock()
		p.remove(ctx)
	})
	looks.Wait()
}

func (p *pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	for _, l := range p.leases {
		l.ending = true
	}
	p.mu.Unlock()
	return p.remove(ctx)
}

// remove destroys the containers of ended leases.
func (p *pool) remove(ctx context.Context) error {
	p.mu.Lock()
	var list []*lease
	for _, l := range p.leases {
		if l.ending {
			list = append(list, l)
		}
	}
	p.mu.Unlock()
	return each(list, 16, func(l *lease) error { return p.destroy(ctx, l) })
}

// destroy removes the container of a lease, and the lease once that succeeded.
func (p *pool) destroy(ctx context.Context, l *lease) error {
	p.mu.Lock()
	taken := l.removing || p.leases[l.id] != l
	l.removing, l.ending = true, true
	p.mu.Unlock()
	if taken {
		return nil
	}
	_, err := p.ask(ctx, l.node, "/container/destroy", request{ContainerID: l.container}, 30*time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	l.removing = false
	if err != nil && !errors.Is(err, errUnknown) {
		return err
	}
	delete(p.leases, l.id)
	l.node.active--
	return nil
}

// ask posts to a node. An unreachable node counts as unhealthy until the next check; the error then has errNode
// as its cause, or errUnknown if the container is gone.
func (p *pool) ask(ctx context.Context, n *node, path string, q request, timeout time.Duration) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := p.fetch(ctx, http.MethodPost, n.url+path, q)
	if errors.Is(err, errNode) && ctx.Err() == nil {
		p.mu.Lock()
		n.healthy = false
		p.mu.Unlock()
	}
	return out, err
}

func (p *pool) fetch(ctx context.Context, method, url string, q any) (reply, error) {
	var body []byte
	if q != nil {
		var err error
		if body, err = json.Marshal(q); err != nil {
			return nil, input("%v", err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, input("%v", err)
	}
	answer, text, err := exchange(p.options.HTTP, r)
	if err != nil {
		return nil, fault(errNode, "the node is lost: %s: %v", url, err)
	}
	var out reply
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fault(errNode, "%s answered %s, which is not of this protocol", url, answer.Status)
	}
	if ok, _ := out["ok"].(bool); !ok {
		switch said, _ := out["error"].(string); {
		case answer.StatusCode == http.StatusNotFound:
			return nil, fault(errUnknown, "%s: %s", url, said)
		case answer.StatusCode == http.StatusBadRequest:
			return nil, input("%s", said)
		case answer.Header.Get(kindHeader) == rollout.KindLimit.String():
			return nil, rollout.Errorf(rollout.KindLimit, rollout.Where{}, "%s", said)
		default:
			return nil, fault(nil, "%s: %s", url, said)
		}
	}
	return out, nil
}

// checkNodes checks the health of every node, and looks for our containers on nodes that were not searched yet.
func (p *pool) checkNodes(ctx context.Context) {
	_ = each(p.nodes, -1, func(n *node) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err := p.fetch(ctx, http.MethodGet, n.url+"/healthz", nil)
		var status reply
		p.mu.Lock()
		adopted := n.adopted
		p.mu.Unlock()
		if err == nil && !adopted {
			status, err = p.fetch(ctx, http.MethodGet, n.url+"/status", nil)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if n.healthy = err == nil; n.healthy && !n.adopted {
			n.adopted = true
			p.adopt(n, status)
		}
		return nil // a lost node is checked again
	})
}

// adopt takes over the leases that an earlier pool of this name had on a node.
func (p *pool) adopt(n *node, status reply) {
	containers, _ := status["containers"].(map[string]any)
	for id, c := range containers {
		c, _ := c.(map[string]any)
		name, _ := c["lease_id"].(string)
		if pool, _ := c["pool"].(string); pool != p.options.Name || name == "" || p.leases[name] != nil {
			continue
		}
		p.leases[name] = &lease{id: name, container: id, node: n, used: time.Now()}
		n.active++
	}
}

func (p *pool) status(*http.Request, request) (reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes := make([]reply, 0, len(p.nodes))
	for _, n := range p.nodes {
		nodes = append(nodes, reply{"url": n.url, "active_containers": n.active, "max_containers": p.options.PerNode, "healthy": n.healthy})
	}
	return reply{"pool": reply{"total_leases": len(p.leases), "nodes": nodes}}, nil
}

// reserve reserves a place on the healthy node with the fewest containers, except those already tried.
func (p *pool) reserve(tried []*node) (best *node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.nodes {
		if n.healthy && n.active < p.options.PerNode && !p.closed && !slices.Contains(tried, n) && (best == nil || n.active < best.active) {
			best = n
		}
	}
	if best != nil {
		best.active++
	}
	return best
}

func (p *pool) allocate(r *http.Request, q request) (reply, error) {
	if q.Image == "" {
		return nil, input("image is required")
	}
	id := make([]byte, 8)
	rand.Read(id) // never fails
	l := &lease{id: "swe-lease-" + hex.EncodeToString(id)}
	var tried []*node
	var last error
	for {
		n := p.reserve(tried)
		if n == nil {
			if last == nil {
				last = fault(errFull, "All exec nodes are full or unhealthy.")
			}
			return nil, last
		}
		tried = append(tried, n)
		made, err := p.ask(r.Context(), n, "/container/create", request{Image: q.Image, Cwd: q.Cwd, LeaseID: l.id, InstanceID: q.InstanceID, Pool: p.options.Name}, 2*time.Minute)
		l.container, _ = made["container_id"].(string)
		if err == nil && l.container == "" {
			err = fault(errNode, "%s made a container without an id", n.url)
		}
		p.mu.Lock()
		if err == nil {
			l.node, l.used = n, time.Now()
			l.ending = p.closed || r.Context().Err() != nil // no client will learn of the lease
			p.leases[l.id] = l
			p.mu.Unlock()
			return reply{"lease_id": l.id, "container_id": l.container, "node_url": n.url}, nil
		}
		n.active--
		p.mu.Unlock()
		if last = err; !errors.Is(err, errNode) || r.Context().Err() != nil {
			return nil, err
		}
	}
}

// with passes f the lease that its request names, which does not expire meanwhile.
func (p *pool) with(f func(context.Context, *lease, request) (reply, error)) func(*http.Request, request) (reply, error) {
	return func(r *http.Request, q request) (reply, error) {
		if q.LeaseID == "" {
			return nil, input("lease_id required")
		}
		p.mu.Lock()
		l := p.leases[q.LeaseID]
		if l == nil || l.ending {
			p.mu.Unlock()
			return nil, fault(errUnknown, "Unknown lease_id: %s: it was closed, or expired after %v without a heartbeat", q.LeaseID, p.options.TTL)
		}
		l.busy++
		l.used = time.Now()
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			l.busy--
			l.used = time.Now()
			p.mu.Unlock()
		}()
		q.LeaseID, q.ContainerID = "", l.container
		return f(r.Context(), l, q)
	}
}

func (p *pool) exec(ctx context.Context, l *lease, q request) (reply, error) {
	if q.Command == "" {
		return nil, input("lease_id and command required")
	}
	return p.ask(ctx, l.node, "/container/exec", q, q.timeout(sandbox.DefaultTimeout)+30*time.Second)
}

func (p *pool) diff(ctx context.Context, l *lease, q request) (reply, error) {
	return p.ask(ctx, l.node, "/container/diff", q, 130*time.Second) // git may be asked twice, for a minute each
}

func (p *pool) evaluate(ctx context.Context, l *lease, q request) (reply, error) {
	return p.ask(ctx, l.node, "/container/evaluate", q, q.timeout(sandbox.DefaultEvaluateTimeout)+3*time.Minute)
}

// close ends a lease. An unknown lease counts as closed. If the node cannot remove the container now, the lease
// keeps its place and Run tries again.
func (p *pool) close(r *http.Request, q request) (reply, error) {
	if q.LeaseID == "" {
		return nil, input("lease_id required")
	}
	p.mu.Lock()
	l := p.leases[q.LeaseID]
	p.mu.Unlock()
	if l == nil {
		return nil, nil
	}
	p.destroy(context.WithoutCancel(r.Context()), l)
	return nil, nil
}
