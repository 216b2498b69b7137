package eval

import (
	"slices"

	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// A rollout is rendered at each turn with a message or two more than at the turn before. In most templates a pass of
// the loop over the messages depends only on its message, its index, inputs, and conditions about the rest of the run
// that do not involve the pass itself: {% if loop.last %}, {% if loop.index0 > ns.last_user %}. The compiler finds
// these loops; any other read from outside of the pass excludes a loop. The next run copies the output of the first
// passes for as long as the messages are the same objects and the conditions, evaluated again, have the same results.

// Replay holds what the passes of the last run wrote. The zero value holds nothing.
type Replay struct {
	prog         *Program
	inputs       []value.Value
	last, loop   *forStmt // loops recorded by the last run and by this one, nil for none
	passes       []pass
	asked        []answer
	start, first int // where the first pass starts: its byte and its run
	text         value.Memory
	work, made   int // used before the current pass, plus what its conditions used
	gens         int // number of generation blocks before the current pass
}

// pass is a recorded pass: where it ended, counted from the start of the first pass, and what it used.
type pass struct {
	item              *value.Dict
	text, runs, asked int
	work, made        int // without growing the text and without conditions
}

type answer struct {
	cond expr
	yes  bool
}

// maxAsked is the maximum average number of conditions per pass. A loop inside a pass can exceed it.
const maxAsked = 64

// askedExpr is a condition that does not involve the pass. Its result is recorded.
type askedExpr struct{ expr }

func (c *askedExpr) eval(x *exec) value.Value {
	if !x.recording {
		return c.expr.eval(x)
	}
	r := x.replay
	work, made := spent(x)
	yes := x.truth(c.expr)
	toWork, toMade := spent(x)
	r.work, r.made = r.work+toWork-work, r.made+toMade-made
	if r.asked = append(r.asked, answer{c.expr, yes}); len(r.asked) > maxAsked*(len(r.passes)+1) {
		x.recording, r.gens = false, -1 // makes recordPass refuse the pass
	}
	return value.NewBool(yes)
}

// begin discards the recorded passes if the inputs of x differ.
func (r *Replay) begin(x *exec) {
	same := r.prog == x.prog
	for i := 0; same && i < len(x.inputs); i++ {
		same = r.inputs[i] == x.inputs[i] || x.prog.resolve[i] == "messages"
	}
	if r.last = r.loop; !same {
		r.last = nil
	}
	r.prog, r.loop = x.prog, nil
	r.inputs = append(r.inputs[:0], x.inputs...)
}

// Wrote sets the output of the run, which must not change until the next run has ended.
func (r *Replay) Wrote(m value.Memory) { r.text = m }

// Forget makes the next run start without recorded passes.
func (r *Replay) Forget() { r.loop = nil }

// resume copies the recorded passes of s that are still valid and positions l at the next one. It reports whether
// that pass is to be recorded, which is so for the first loop over messages.
func (r *Replay) resume(x *exec, s *forStmt, l *Loop) bool {
	if len(l.items) == 0 || r.loop != nil {
		return false
	}
	if d, ok := l.items[0].(*value.Dict); !ok || d.Message == 0 {
		return false
	}
	t, n, asked := x.root, 0, 0
	start, first := len(t.B), len(t.Runs)
	if r.last == s && r.atRunBoundary(0, 0) {
		before := x.Mark()
		x.enter(s.loads) // the conditions may read its variables
		x.Back(before)
		if s.loopSlot >= 0 {
			x.act.slots[s.loopSlot] = l
		}
		// A failed condition ends the run, or at least the replay, at the next Spend.
		changed := func(a answer) bool { return x.truth(a.cond) != a.yes }
		for ; n < len(r.passes) && n < len(l.items); n++ {
			p := &r.passes[n]
			l.i, before = n, x.Mark()
			if l.items[n] != value.Value(p.item) || !r.atRunBoundary(p.runs, p.text) || start+p.text > x.Limits.Output ||
				!x.Step(s.steps) || slices.ContainsFunc(r.asked[asked:p.asked], changed) || !x.Spend(p.work) || !x.Make(p.made) {
				x.Back(before)
				x.errPos = -1
				break
			}
			asked = p.asked
		}
	}
	if l.i = n; n > 0 {
		p := &r.passes[n-1]
		lim, grown := t.Lim, t.Grown
		t.Lim = nil                                     // the text was already counted
		if need := len(t.B) + p.text; need > cap(t.B) { // leave room for the text that follows
			t.B = append(make([]byte, 0, need+need/2), t.B...)
			t.Grown += int64(cap(t.B))
		}
		t.Text(&value.Text{B: r.text.B[r.start : r.start+p.text], Runs: r.text.Runs[r.first : r.first+p.runs]}, r.start)
		t.Lim = lim
		x.Make(int(t.Grown - grown))
	}
	r.last, r.loop, r.start, r.first, r.passes, r.asked = nil, s, start, first, r.passes[:n], r.asked[:asked]
	for i, at := 0, 0; i < n; i++ {
		if p := &r.passes[i]; p.text > at {
			x.output.Messages = append(x.output.Messages, Extent{int(p.item.Message) - 1, start + at, start + p.text})
			at = p.text
		}
	}
	return true
}

// atRunBoundary reports whether no run crosses the given end of a pass or, for zeros, the start of the first pass.
func (r *Replay) atRunBoundary(runs, text int) bool {
	k := r.first + runs
	return k == 0 || int(r.text.Runs[k-1].At+r.text.Runs[k-1].N) <= r.start+text
}

// spent returns the work and memory of the run so far, without growing the text, which depends on the lent memory.
func spent(x *exec) (work, made int) {
	w, m := x.Lim.Used()
	return int(w - m), int(m - x.root.Grown)
}

// startPass starts recording a pass.
func (r *Replay) startPass(x *exec) {
	x.recording, r.gens = true, len(x.root.Gens)
	r.work, r.made = spent(x)
}

// recordPass records the finished pass and reports whether it can be replayed.
func (r *Replay) recordPass(x *exec, item value.Value, sig signal) bool {
	t := x.root
	x.recording = false
	d, ok := item.(*value.Dict)
	if !ok || d.Message == 0 || sig == halt || sig == breakLoop || x.Err != nil || len(t.Gens) != r.gens {
		return false
	}
	work, made := spent(x)
	r.passes = append(r.passes, pass{d, len(t.B) - r.start, len(t.Runs) - r.first, len(r.asked), work - r.work, made - r.made})
	return true
}

// cond compiles an expression of which only the truth value matters.
func (c *compiler) cond(e syntax.Expr, f frame) expr {
	if c.pass == nil {
		return c.expr(e, f)
	}
	if c.pass.Asks(e, f.Scope) {
		return &askedExpr{c.aside(true, e, f)}
	}
	switch n := e.(type) {
	case *syntax.Logic:
		return &logicExpr{n.Or, c.cond(n.Left, f), c.cond(n.Right, f)}
	case *syntax.Not:
		return &notExpr{c.cond(n.X, f)}
	}
	return c.expr(e, f)
}

// aside compiles an expression. If may is set, nothing that it reads excludes the loop from replay.
func (c *compiler) aside(may bool, e syntax.Expr, f frame) expr {
	p := c.pass
	if may {
		c.pass = nil
	}
	out := c.expr(e, f)
	c.pass = p
	return out
}
