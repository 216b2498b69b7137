// Package rt is the interface between a run and its builtins: a Context with limits and the first failure, the
// arguments of a call, and their binding to declared parameters.
package rt

import (
	"context"
	"time"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Limits bounds one run.
type Limits struct {
	value.Limits
	Output int // bytes of the rendered text
	Macros int // depth of calls
	Range  int // items of range()
}

// Context is the state of a run that builtins share: its limits, what it used of them and the first failure, and more.
type Context struct {
	Limits
	Lim    *value.Limits // points into Limits
	Lib    *Library
	Now    func() time.Time
	Escape bool // inside an active autoescape block

	ctx     context.Context
	pause   int // steps until the next check
	buffers []*value.Text
}

// Library holds all builtins by name. Code reaches it through the Context, so that builtins can use each other.
type Library struct {
	Filters                            map[string]Func
	Tests                              map[string]Test
	Globals                            map[string]value.Value
	Str, Dict, List, Int, Float, Bytes map[string]Func // methods, by type
}

// checkEvery is the number of steps between checks for a stopped run.
const checkEvery = 1 << 10

// Start initialises x for a run.
func (x *Context) Start(ctx context.Context, limits *Limits, now func() time.Time) {
	x.ctx, x.Limits, x.Now = ctx, *limits, now
	x.Lim = &x.Limits.Limits
	x.pause, x.Escape = checkEvery, false
}

// Mark is a point in a run without failure: the resources counted up to it.
type Mark struct {
	used  value.Limits
	pause int
}

// Mark returns the current point of a run that has not failed.
func (x *Context) Mark() Mark { return Mark{*x.Lim, x.pause} }

// Back resets what was counted to m and clears any failure.
func (x *Context) Back(m Mark) { *x.Lim, x.pause = m.used, m.pause }

// Forget drops all references to the data of the run.
func (x *Context) Forget() {
	x.ctx, x.Now = nil, nil
	for _, t := range x.buffers {
		t.Reset()
	}
}

// ObjectSize is the approximate memory in bytes of a list, a namespace, a loop or the variables of a call; EntrySize
// that of a dict entry.
const ObjectSize, EntrySize = 64, 128

// Step counts n statements, passes or visited items, and reports whether the run may continue.
func (x *Context) Step(n int) bool {
	x.pause -= n
	return x.Lim.Spend(n*value.StepWork) && x.pause > 0 || x.check()
}

// CallSize is the approximate memory in bytes of any call and its result.
const CallSize = 2 * value.StrSize

// check looks for anything that ends the run. It is called after a failure and at each 1024th step.
func (x *Context) check() bool {
	if x.Err != nil {
		return false
	}
	x.pause = checkEvery
	if err := x.ctx.Err(); err != nil {
		x.Fail(&value.Fault{Class: value.Limit, Msg: "rendering was stopped: " + err.Error(), Err: err})
	}
	return x.Err == nil
}

// Buffer returns an empty text. The caller returns it with Release after copying its content.
func (x *Context) Buffer() *value.Text {
	if n := len(x.buffers); n > 0 {
		t := x.buffers[n-1]
		x.buffers = x.buffers[:n-1]
		t.Reset()
		return t
	}
	return &value.Text{Lim: x.Lim}
}

// Release takes back a text from Buffer.
func (x *Context) Release(t *value.Text) { x.buffers = append(x.buffers, t) }

// Write returns the string that write produces.
func (x *Context) Write(write func(t *value.Text)) *value.Str {
	t := x.Buffer()
	write(t)
	s := t.Value()
	x.Release(t)
	return s
}

// Str implements Python's str().
func (x *Context) Str(v value.Value) *value.Str {
	if s, ok := v.(*value.Str); ok && !s.Markup {
		return s
	}
	return value.ToStr(x.Lim, v)
}

// SoftStr implements markupsafe.soft_str: str() that keeps Markup.
func (x *Context) SoftStr(v value.Value) *value.Str {
	if s, ok := v.(*value.Str); ok {
		return s
	}
	return x.Str(v)
}

// maxNested bounds the depth of iterators that read from each other.
const maxNested = 200

// Nested returns the depth of an iterator over v, and fails if it is too deep.
func (x *Context) Nested(v value.Value) int {
	depth := 0
	switch v := v.(type) {
	case *value.Iter:
		depth = v.Depth + 1
	case interface{ Nested() int }:
		depth = v.Nested() + 1
	}
	if depth > maxNested {
		x.Failf(value.Limit, "more than %d iterators over each other", maxNested)
	}
	return depth
}

// Elements is value.Elements, with the steps counted; it returns nil after a failure.
func (x *Context) Elements(v value.Value) []value.Value {
	items := value.Elements(x.Lim, v)
	if !x.Step(len(items)) {
		return nil
	}
	return items
}
