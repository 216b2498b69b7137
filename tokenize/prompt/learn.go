package prompt

import (
	"context"
	"slices"
	"sync"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// maxPending is how many prompts without a reply a tree remembers, to recognize them in the record.
const maxPending = 8

// remember stores a prompt until its reply is learnt.
func (t *Tree) remember(a *pending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending) == maxPending {
		t.pending = slices.Delete(t.pending, 0, 1)
	}
	t.pending = append(t.pending, a)
}

// known returns the remembered prompt with these ids, nil if there is none.
func (t *Tree) known(ids []rollout.TokenID) *pending {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range slices.Backward(t.pending) {
		if a.from.ids+len(a.ids) == len(ids) && slices.Equal(a.ids, ids[a.from.ids:]) && slices.Equal(a.from.node.path(a.from.ids), ids[:a.from.ids]) {
			return a
		}
	}
	return nil
}

// Learn adds checkpoints for the turns of r that the tree does not know yet. r is the record of the
// tree's rollout, to which turns were only added since the last call. Learn replaces Reply if a
// recorder has the replies, as package live does, also after a restart. A turn is left out if its
// recorded prompt is not the one that the tree makes of its messages.
func (t *Tree) Learn(ctx context.Context, r *rollout.Rollout) error {
	if r == nil {
		return zero.Rollout()
	}
	t.learning.Lock()
	defer t.learning.Unlock()
	for ; t.learned < len(r.Turns); t.learned++ {
		if err := t.learn(ctx, r, t.learned); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) learn(ctx context.Context, r *rollout.Rollout, i int) error {
	turn := &r.Turns[i]
	ids, err := r.PromptTokens(nil, i)
	if err != nil || len(ids) == 0 || len(turn.Output) == 0 {
		return err
	}
	a := t.known(ids)
	if a == nil && !turn.Context.Unknown && (turn.Message >= 0 || turn.Context.Parts != nil) {
		p, err := t.Prompt(ctx, Request{Messages: shown(r, turn), Tools: r.Tools, TemplateKwargs: r.TemplateKwargs})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && slices.Equal(p.IDs, ids) {
			a = p.pending
		}
	}
	if a == nil {
		return nil
	}
	var told *rollout.Message
	if turn.Message >= 0 && turn.Message < len(r.Messages) {
		told = &r.Messages[turn.Message]
	}
	if err := a.reply(turn.Output, told); err != nil && turn.Incomplete == "" {
		return err
	}
	return nil // output ids that cannot be decoded give no checkpoint
}

// shown returns the messages of a turn's context.
func shown(r *rollout.Rollout, t *rollout.Turn) (out []rollout.Message) {
	parts := t.Context.Parts
	if parts == nil {
		parts = []rollout.ContextPart{{To: t.Message}}
	}
	for _, p := range parts {
		if p.Message != nil {
			out = append(out, *p.Message)
			continue
		}
		if p.From < 0 || p.To < p.From || p.To > len(r.Messages) {
			return nil
		}
		for _, m := range r.Messages[p.From:p.To] {
			if m.Role != rollout.RoleExit {
				out = append(out, m)
			}
		}
	}
	return out
}

// Sessions makes prompts of live rollouts from their records alone, as a proxy that records with
// package live needs. It holds a tree for each rollout. If the trees exceed the limits, the least
// recently used one is dropped, and is learnt again from the record when needed. It is safe for
// concurrent use.
type Sessions struct {
	w     *writer
	mu    sync.Mutex
	clock uint64
	held  int // ids
	trees map[string]*session
	ended Report
}

type session struct {
	tree *Tree
	used uint64
	held int
}

// Prompt returns the prompt for a request of the rollout whose record so far is r. The reply is
// learnt from the record at the next request; do not call Reply. With a nil r the request is the
// first of its rollout, and nothing is stored.
func (s *Sessions) Prompt(ctx context.Context, r *rollout.Rollout, q Request) (*Prompt, error) {
	if s.w == nil {
		return nil, zero.Value("prompt.Sessions", "New")
	}
	if r == nil {
		return s.w.tree().Prompt(ctx, q)
	}
	t := s.tree(r.ID)
	defer s.shrink(r.ID)
	if err := t.Learn(ctx, r); err != nil {
		return nil, err
	}
	p, err := t.Prompt(ctx, q)
	if err == nil {
		t.remember(p.pending)
	}
	return p, err
}

// tree returns the tree of a rollout.
func (s *Sessions) tree(id string) *Tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	if s.trees[id] == nil {
		s.trees[id] = &session{tree: s.w.tree()}
	}
	s.trees[id].used = s.clock
	return s.trees[id].tree
}

// shrink updates the size of a tree, and drops others beyond the limits.
func (s *Sessions) shrink(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.trees[id]; x != nil {
		held := x.tree.Report().Tokens
		s.held += held - x.held
		x.held = held
	}
	for len(s.trees) > 1 && (len(s.trees) > s.w.opts.MaxSessions || s.held > s.w.opts.MaxSessionTokens) {
		oldest := ""
		for other, x := range s.trees {
			if oldest == "" || x.used < s.trees[oldest].used {
				oldest = other
			}
		}
		s.held -= s.trees[oldest].held
		delete(s.trees, oldest)
	}
}

// Report returns the counts of the trees held, and of those that End removed.
func (s *Sessions) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out Report
	out.Add(s.ended)
	for _, x := range s.trees {
		out.Add(x.tree.Report())
	}
	return out
}

// End removes the tree of a rollout and returns its counts, including the last turns of its record.
func (s *Sessions) End(ctx context.Context, r *rollout.Rollout) (Report, error) {
	if s.w == nil {
		return Report{}, zero.Value("prompt.Sessions", "New")
	}
	if r == nil {
		return Report{}, zero.Rollout()
	}
	t := s.tree(r.ID)
	err := t.Learn(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.trees[r.ID]; x != nil {
		s.held -= x.held
		delete(s.trees, r.ID)
	}
	report := t.Report()
	report.Checkpoints, report.Tokens = 0, 0
	s.ended.Add(report)
	return report, err
}
