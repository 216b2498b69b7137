// Package eval compiles the tree of a chat template and runs it: scopes as
// Jinja's, values as Python's, output with the origin of every byte.
package eval

import (
	"context"
	"fmt"
	"time"

	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// Limits bounds one run.
type Limits struct {
	value.Limits
	Output int // bytes of the rendered text
	Macros int // depth of calls
	Range  int // items of range()
}

// Input is what one run sees.
type Input struct {
	Vars  func(name string) value.Value // nil: no such variable
	Now   func() time.Time
	Track bool // record where bytes come from
	// Into is for an output that outlives the run: memory that nobody reads any more, or
	// none, for new memory. With nil the output goes away with the run.
	Into   *value.Memory
	Limits *Limits
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
	prog     *Program
	in       *Input
	lib      *library
	lim      *Limits // of this run: it counts
	limits   Limits
	ctx      context.Context
	act      *activation
	top      activation // of the template itself
	out      *value.Text
	root     *value.Text // out, when nothing is being captured
	err      *value.Fault
	errPos   syntax.Pos
	pause    int // the number of steps until check is due
	depth    int
	escape   bool
	unjoined value.Value // see joined
	inputs   []value.Value
	exported map[string]value.Value
	missing  value.Undefined // see operand
	inLoop   bool            // inside a loop over messages
	stack    []value.Value
	keywords []kwarg // a stack, too
	spaces   []*Namespace
	spaced   int // how many of them this run made
	output   Output
	near     []uint8 // where the look-ups of the program found their keys last
	buffers  []*value.Text
	usual    int // number of runs in the output before
}

// Run renders the program and hands what it wrote to done, which copies what it
// keeps.
func (p *Program) Run(ctx context.Context, in Input, done func(*Output)) *Error {
	x, _ := p.idle.Get().(*exec)
	if x == nil {
		x = &exec{prog: p, lib: builtins, inputs: make([]value.Value, len(p.resolve)), near: make([]uint8, p.lookups)}
	}
	x.start(ctx, &in)
	if x.top.slots == nil {
		x.top.slots = make([]value.Value, len(p.root.fn.order))
	}
	x.call(p.root, &x.top)
	x.joined()
	x.checkOutput()
	var failure *Error
	if x.err != nil {
		failure = &Error{*x.err, x.errPos}
	} else {
		x.usual = len(x.root.Runs)
		done(&x.output)
	}
	x.forget()
	p.idle.Put(x)
	return failure
}

func (x *exec) start(ctx context.Context, in *Input) {
	x.ctx, x.in, x.limits = ctx, in, *in.Limits
	x.lim = &x.limits
	x.err, x.errPos = nil, -1
	x.pause, x.depth, x.escape, x.inLoop = checkEvery, 0, false, false
	x.root = &x.output.Text
	x.root.Track, x.root.Lim = in.Track, &x.lim.Limits
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
			x.inputs[i] = x.lib.globals[name]
		}
	}
}

// forget drops all references to the data of the run.
func (x *exec) forget() {
	x.ctx, x.in, x.act, x.exported, x.unjoined = nil, nil, nil, nil, nil
	x.missing = value.Undefined{}
	clear(x.inputs)
	clear(x.top.slots)
	clear(x.stack[:cap(x.stack)])
	clear(x.keywords[:cap(x.keywords)])
	x.stack, x.keywords = x.stack[:0], x.keywords[:0]
	for _, ns := range x.spaces[:x.spaced] {
		ns.attrs.Clear()
	}
	x.spaced = 0
	x.output.Messages = x.output.Messages[:0]
	x.root.Reset()
	for _, t := range x.buffers {
		t.Reset()
	}
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
func (x *exec) enter(loads []loadCode) {
	slots := x.act.slots
	for i := range loads {
		l := &loads[i]
		switch l.kind {
		case loadResolve:
			slots[l.slot] = x.lookup(l.from)
		case loadAlias:
			slots[l.slot] = x.act.outer(l.depth).slots[l.from]
		default:
			slots[l.slot] = nil
		}
	}
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

func (x *exec) fail(f *value.Fault) value.Value {
	if x.err == nil && f != nil {
		x.err, x.pause = f, 0
	}
	return undefined
}

func (x *exec) failf(c value.Class, format string, args ...any) value.Value {
	return x.fail(value.Faultf(c, format, args...))
}

// at says where the failure happened, if there is one and nobody said so yet.
func (x *exec) at(pos syntax.Pos) {
	if x.err != nil && x.errPos < 0 {
		x.errPos = pos
	}
}

var undefined = &value.Undefined{Hint: "evaluation stopped"}

// val passes a value through, or records the fault.
func (x *exec) val(v value.Value, f *value.Fault) value.Value {
	if f != nil {
		return x.fail(f)
	}
	return v
}

// objectSize is about the memory of a list, a namespace, a loop or the variables of a
// call; entrySize that of an entry of a dict.
const objectSize, entrySize = 64, 128

// step counts n statements, passes or items walked over, and reports whether the run may
// go on.
func (x *exec) step(n int) bool {
	x.pause -= n
	return x.lim.Spend(n*value.StepWork) && x.pause > 0 || x.check()
}

// spend counts work, make bytes of memory: see value.Limits.
func (x *exec) spend(work int) bool { return x.lim.Spend(work) && x.err == nil || x.check() }

func (x *exec) make(bytes int) bool { return x.lim.Make(bytes) && x.err == nil || x.check() }

// checkEvery is the number of steps after which a run looks whether it was stopped.
const checkEvery = 1 << 10

// check looks at what can end a run, after a failure or at each 1024th step.
func (x *exec) check() bool {
	if x.err != nil {
		return false
	}
	if fault := x.lim.Over(); fault != nil {
		x.fail(fault)
		return false
	}
	x.pause = checkEvery
	if err := x.ctx.Err(); err != nil {
		x.failf(value.Limit, "rendering was stopped: %v", err)
		return false
	}
	return x.checkOutput()
}

func (x *exec) checkOutput() bool {
	if fault := x.lim.Over(); fault != nil {
		x.fail(fault)
		return false
	}
	limit := x.lim.Bytes
	if x.out == x.root {
		limit = x.lim.Output
	}
	if len(x.out.B) > limit {
		x.failf(value.Limit, "output of more than %d bytes", limit)
		return false
	}
	return true
}

// capture runs f with a fresh output and returns what it wrote.
func (x *exec) capture(f func() signal) (*value.Str, signal) {
	saved, unjoined := x.out, x.unjoined
	t := x.buffer()
	x.out, x.unjoined = t, nil
	sig := f()
	x.joined()
	x.unjoined = unjoined
	x.checkOutput()
	s := t.Value()
	x.out = saved
	x.buffers = append(x.buffers, t)
	return s, sig
}

func (x *exec) buffer() *value.Text {
	if n := len(x.buffers); n > 0 {
		t := x.buffers[n-1]
		x.buffers = x.buffers[:n-1]
		t.Reset()
		t.Track = x.in.Track
		return t
	}
	return &value.Text{Track: x.in.Track, Lim: &x.lim.Limits}
}

// str is Python's str().
func (x *exec) str(v value.Value) *value.Str {
	if s, ok := v.(*value.Str); ok && !s.Markup {
		return s
	}
	s, fault := value.ToStr(&x.lim.Limits, v, x.in.Track)
	if fault != nil {
		x.fail(fault)
		return value.Empty
	}
	return s
}

// softStr is markupsafe.soft_str: str() that keeps Markup.
func (x *exec) softStr(v value.Value) *value.Str {
	if s, ok := v.(*value.Str); ok {
		return s
	}
	return x.str(v)
}
