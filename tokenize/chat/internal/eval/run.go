// Package eval compiles the tree of a chat template and runs it, with Jinja's scopes, Python's values, and the origin
// of every output byte.
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

// Input is the input of one run.
type Input struct {
	Vars func(name string) value.Value // returns nil if there is no such variable
	Now  func() time.Time
	// Into is set for an output that outlives the run: memory to reuse, or an empty Memory for new memory. With nil
	// the output is valid only during the run.
	Into   *value.Memory
	Replay *Replay // passes of the last run, updated for the next; may be nil
	Limits *rt.Limits
}

// Output is what one run wrote.
type Output struct {
	Text     value.Text
	Messages []Extent
}

// Extent is the part [Start, End) of the output that one pass of a loop over messages wrote.
type Extent struct{ Message, Start, End int }

// Error is a failure with its position in the template.
type Error struct {
	value.Fault
	Pos syntax.Pos // -1 if there is no position
}

// activation holds the variables of one call of a function.
type activation struct {
	slots []value.Value // nil: not set
	up    *activation
}

// activate allocates the variables of a call, or returns nil when the memory limit is reached.
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

// exec is the state of one run. The first failure is kept in Err; after it expressions return meaningless values and
// statements stop, so code may continue after a failure as long as it terminates.
type exec struct {
	rt.Context
	prog      *Program
	act       *activation
	out       *value.Text
	root      *value.Text // the output of the template; equal to out unless output is being captured
	errPos    syntax.Pos
	depth     int
	captured  value.Value // value of capturedExpr
	unjoined  value.Value // see checkJoined
	inputs    []value.Value
	exported  map[string]value.Value
	inLoop    bool // inside a loop over messages
	stack     []value.Value
	keywords  []rt.Keyword // a stack like the one for values
	output    Output
	near      []uint8 // index at which each attrExpr last found its key
	usual     int     // number of runs in the output of the last run
	replay    *Replay // Input.Replay
	recording bool    // a pass is being recorded for replay
}

// Run renders the program and passes its output to done, which must copy what it keeps.
func (p *Program) Run(ctx context.Context, in Input, done func(*Output)) *Error {
	x, _ := p.idle.Get().(*exec)
	if x == nil {
		x = &exec{prog: p, Context: rt.Context{Lib: builtin.Library}, inputs: make([]value.Value, len(p.resolve)), near: make([]uint8, p.attrs)}
	}
	x.start(ctx, &in)
	x.block(p.root)
	x.checkJoined()
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
	x.Start(ctx, in.Limits, in.Now)
	x.errPos, x.depth, x.inLoop = -1, -1, false // the template itself does not count as a call
	x.root = &x.output.Text
	x.root.Lim = x.Lim
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
	if x.recording, x.replay = false, in.Replay; x.replay != nil {
		x.replay.begin(x)
	}
}

// forget drops all references to data of the run.
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

// enter initialises the variables of a scope.
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

// at records pos as the position of the failure, if there is a failure without a position.
func (x *exec) at(pos syntax.Pos) {
	if x.Err != nil && x.errPos < 0 {
		x.errPos = pos
	}
}

// descend counts a nested call and reports whether it is allowed; the caller undoes it with x.depth--.
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
	if len(x.out.B) > limit {
		x.Failf(value.Limit, "output of more than %d bytes", limit)
	}
	return x.Err == nil
}

// capture runs f with an empty output and returns what it wrote.
func (x *exec) capture(f func() signal) (s *value.Str, sig signal) {
	saved, unjoined := x.out, x.unjoined
	s = x.Write(func(t *value.Text) {
		x.out, x.unjoined = t, nil
		sig = f()
		x.checkJoined()
		x.checkOutput()
	})
	x.out, x.unjoined = saved, unjoined
	return s, sig
}
