// Package eval compiles the tree of a chat template and runs it: scopes as
// Jinja's, values as Python's, output with the origin of every byte.
package eval

import (
	"context"
	"time"

	"github.com/turnpack/turnpack/tokenize/chat/internal/builtin"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/scope"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Input is what one run sees.
type Input struct {
	Vars  func(name string) value.Value // nil: no such variable
	Now   func() time.Time
	Track bool // record where bytes come from
	// Into is for an output that outlives the run: memory that nobody reads any more, or
	// none, for new memory. With nil the output goes away with the run.
	Into   *value.Memory
	Replay *Replay // of the run before, and for the next; may be nil
	Limits *rt.Limits
}

// Output is what one run wrote.
type Output struct {
	Text     value.Text
	Messages []Extent
}

// Extent is the part of the output that one pass of a loop over messages wrote.
type Extent struct{ Message, Start, End int }

// Error is a failure at a place of the template.
type Error struct {
	value.Fault
	Pos syntax.Pos // -1: not at a place
}

// activation holds the variables of one call of a function.
type activation struct {
	slots []value.Value // nil: not set
	up    *activation
}

// activate makes the variables of a call, nil where memory is used up.
func (x *exec) activate(fn *scope.Function, up *activation) *activation {
	if !x.Make(rt.ObjectSize + 16*len(fn.Order)) {
		return nil
	}
	return &activation{slots: make([]value.Value, len(fn.Order)), up: up}
}

func (a *activation) outer(depth int) *activation {
	for ; depth > 0; depth-- {
		a = a.up
	}
	return a
}

// exec is the state of one run. The first failure is kept in err; from then on
// expressions give meaningless values and statements stop, so code may go on
// after a failure as long as it ends.
type exec struct {
	rt.Context
	prog     *Program
	act      *activation
	out      *value.Text
	root     *value.Text // out, when nothing is being captured
	errPos   syntax.Pos
	depth    int
	captured value.Value // what a capturedExpr gives
	unjoined value.Value // see joined
	inputs   []value.Value
	exported map[string]value.Value
	inLoop   bool // inside a loop over messages
	stack    []value.Value
	keywords []rt.Keyword // a stack, too
	output   Output
	near     []uint8 // where attributes found their keys last
	usual    int     // number of runs in the output before
	replay   *Replay // as the input's
	noting   bool    // a pass, for it
}

// Run renders the program and hands what it wrote to done, which copies what it
// keeps.
func (p *Program) Run(ctx context.Context, in Input, done func(*Output)) *Error {
	x, _ := p.idle.Get().(*exec)
	if x == nil {
		x = &exec{prog: p, Context: rt.Context{Lib: builtin.Library}, inputs: make([]value.Value, len(p.resolve)), near: make([]uint8, p.attrs)}
	}
	x.start(ctx, &in)
	x.block(p.root)
	x.joined()
	x.checkOutput()
	var failure *Error
	if x.Err != nil {
		failure = &Error{*x.Err, x.errPos}
		if x.replay != nil {
			x.replay.Forget()
		}
	} else {
		x.usual = len(x.root.Runs)
		done(&x.output)
	}
	x.forget()
	p.idle.Put(x)
	return failure
}

func (x *exec) start(ctx context.Context, in *Input) {
	x.Start(ctx, in.Limits, in.Track, in.Now)
	x.errPos, x.depth, x.inLoop = -1, -1, false // the template itself is no call
	x.root = &x.output.Text
	x.root.Track, x.root.Lim = in.Track, x.Lim
	if in.Into != nil {
		into := *in.Into
		if into.Runs == nil {
			into.Runs = make([]value.Run, 0, x.usual+x.usual/16+1)
		}
		x.root.Lend(into)
	}
	x.out = x.root
	x.exported = nil
	if len(x.prog.blocks) > 0 {
		x.exported = map[string]value.Value{}
	}
	for i, name := range x.prog.resolve {
		if x.inputs[i] = in.Vars(name); x.inputs[i] == nil {
			x.inputs[i] = x.Lib.Globals[name]
		}
	}
	if x.noting, x.replay = false, in.Replay; x.replay != nil {
		x.replay.begin(x)
	}
}

// forget drops all references to the data of the run.
func (x *exec) forget() {
	x.act, x.exported, x.captured, x.unjoined, x.replay = nil, nil, nil, nil, nil
	clear(x.inputs)
	clear(x.stack[:cap(x.stack)])
	clear(x.keywords[:cap(x.keywords)])
	x.stack, x.keywords = x.stack[:0], x.keywords[:0]
	x.output.Messages = x.output.Messages[:0]
	x.root.Reset()
	x.Forget()
}

// call runs code with the variables of a.
func (x *exec) call(code *functionCode, a *activation) signal {
	saved := x.act
	x.act = a
	x.enter(code.loads)
	sig := x.run(code.body)
	x.act = saved
	return sig
}

// enter sets the variables of a scope to what they start as.
func (x *exec) enter(loads []scope.Start) {
	if len(loads) == 0 {
		return
	}
	slots := x.act.slots
	x.Step(len(loads) / loadsAStep)
	for i := range loads {
		switch l := &loads[i]; l.Kind {
		case scope.Resolve:
			slots[l.Slot] = x.lookup(l.From)
		case scope.Alias:
			slots[l.Slot] = x.act.outer(l.Depth).slots[l.From]
		default:
			slots[l.Slot] = nil
		}
	}
}

// block runs the template or a block of it.
func (x *exec) block(b *blockCode) signal {
	if !x.descend() {
		return halt
	}
	a := x.activate(b.fn, nil)
	if a == nil {
		return halt
	}
	if b.self >= 0 {
		a.slots[b.self] = &selfRef{x}
	}
	if b.super >= 0 {
		a.slots[b.super] = &value.Undefined{Hint: "there is no parent block called '" + b.name + "'.", Name: value.Lit("super")}
	}
	sig := x.call(&b.functionCode, a)
	x.depth--
	return sig
}

func (x *exec) lookup(i int) value.Value {
	if x.exported != nil {
		if v, ok := x.exported[x.prog.resolve[i]]; ok {
			return v
		}
	}
	return x.inputs[i]
}

func (x *exec) leave(slots []int) {
	for _, s := range slots {
		x.act.slots[s] = nil
	}
}

// at says where the failure happened, if there is one and nobody said so yet.
func (x *exec) at(pos syntax.Pos) {
	if x.Err != nil && x.errPos < 0 {
		x.errPos = pos
	}
}

// got is v, which was computed at pos unless that failed.
func (x *exec) got(pos syntax.Pos, v value.Value, fault *value.Fault) value.Value {
	if fault == nil {
		return v
	}
	x.Fail(fault)
	x.at(pos)
	return rt.Stopped
}

// descend counts a call; the caller undoes it with x.depth--.
func (x *exec) descend() bool {
	x.depth++
	if x.depth > x.Limits.Macros {
		x.Failf(value.Limit, "calls nested deeper than %d", x.Limits.Macros)
		x.depth--
		return false
	}
	return true
}

// checkOutput reports whether the output is within its limit.
func (x *exec) checkOutput() bool {
	limit := x.Lim.Bytes
	if x.out == x.root {
		limit = x.Limits.Output
	}
	if x.Err == nil && x.Lim.Room() && len(x.out.B) <= limit {
		return true
	}
	x.Fail(x.Lim.Over())
	x.Failf(value.Limit, "output of more than %d bytes", limit)
	return false
}

// capture runs f with a fresh output and returns what it wrote.
func (x *exec) capture(f func() signal) (s *value.Str, sig signal) {
	saved, unjoined := x.out, x.unjoined
	s = x.Write(func(t *value.Text) {
		x.out, x.unjoined = t, nil
		sig = f()
		x.joined()
		x.checkOutput()
	})
	x.out, x.unjoined = saved, unjoined
	return s, sig
}
