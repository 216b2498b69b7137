package eval

import (
	"maps"

	"github.com/turnpack/turnpack/tokenize/chat/internal/object"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/scope"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// signal is how a statement ended.
type signal uint8

const (
	next signal = iota
	breakLoop
	continueLoop
	halt // a failure
)

type stmt interface{ exec(x *exec) signal }

func (x *exec) run(body []stmt) signal {
	for _, s := range body {
		if sig := s.exec(x); sig != next {
			return sig
		}
		if !x.Step(1) {
			return halt
		}
	}
	return next
}

// A statement costs a step for each nodesAStep of its syntax.Nodes, in each pass of a loop. Entering a scope costs a
// step for each loadsAStep of its variables.
const nodesAStep, loadsAStep = 4, 8

// chargeStmt counts the steps of the statement after it.
type chargeStmt int

func (s chargeStmt) exec(x *exec) signal {
	if !x.Step(int(s)) {
		return halt
	}
	return next
}

type (
	outputStmt struct{ parts []expr }
	setStmt    struct {
		target target
		e      expr
		export []string
	}
	ifStmt struct {
		tests  []expr
		bodies [][]stmt
		els    []stmt
	}
	jumpStmt signal
	// scopeCode is the body of a scope inside a function.
	scopeCode struct {
		loads []scope.Start
		clear []int
		body  []stmt
	}
	// captureCode is a scope whose output becomes a value.
	captureCode struct {
		scopeCode
		filter *filterExpr // may be nil
	}
	setBlockStmt struct {
		captureCode
		target target
		export []string
	}
	filterBlockStmt struct{ captureCode }
	withStmt        struct {
		scopeCode
		targets []target
		values  []expr
	}
	autoescapeStmt struct {
		scopeCode
		on expr
	}
	generationStmt struct{ code *macroCode }
	macroStmt      struct {
		code        *macroCode
		slot, depth int
		export      []string
	}
	blockStmt struct {
		name   string
		locals map[string]*nameExpr // variables that a scoped block sees
	}
	loaderStmt struct {
		pos             syntax.Pos
		template        expr
		include, ignore bool // ignore: a list without a template name is not a failure
	}
)

func (s *outputStmt) exec(x *exec) signal {
	for _, e := range s.parts {
		if d, ok := e.(*dataExpr); ok {
			x.out.Lit(d.text)
			continue
		}
		x.emit(e)
		if !x.checkOutput() { // checked early: printed values can be large
			return halt
		}
	}
	return next
}

func (s *setStmt) exec(x *exec) signal {
	if !s.target.check(x) {
		return halt
	}
	s.target.assign(x, s.e.eval(x))
	x.export(s.export)
	return next
}

func (x *exec) export(names []string) {
	for _, name := range names {
		if v := x.prog.root.fn.Global(name); v != nil {
			x.exported[name] = x.act.slots[v.Slot]
		}
	}
}

func (s *ifStmt) exec(x *exec) signal {
	for i, test := range s.tests {
		if x.truth(test) {
			return x.run(s.bodies[i])
		}
	}
	return x.run(s.els) // returns at once after a failure
}

func (s jumpStmt) exec(*exec) signal { return signal(s) }

// capture returns the output of the scope, passed through its filter.
func (s *captureCode) capture(x *exec) (v value.Value, sig signal) {
	x.enter(s.loads)
	text, sig := x.capture(func() signal { return x.run(s.body) })
	if sig != next {
		return nil, sig
	}
	if x.Escape {
		text = text.Safe()
	}
	if v = text; s.filter != nil {
		x.captured = text
		v = s.filter.eval(x)
	}
	x.leave(s.clear)
	return v, next
}

func (s *setBlockStmt) exec(x *exec) signal {
	v, sig := s.capture(x)
	if sig == next {
		s.target.assign(x, v)
		x.export(s.export)
	}
	return sig
}

func (s *filterBlockStmt) exec(x *exec) signal {
	v, sig := s.capture(x)
	if text, ok := v.(*value.Str); ok {
		x.out.Str(text) // an autoescape block does not escape it again
	} else if x.unjoined == nil {
		x.unjoined = v
	}
	return sig
}

// checkJoined fails if a value that is not a string was printed to the current output, which only filter blocks can do.
// Python joins the pieces of an output when it ends.
func (x *exec) checkJoined() {
	if x.unjoined != nil {
		x.Failf(value.Type, "expected str instance, %s found", x.unjoined.TypeName())
		x.unjoined = nil
	}
}

func (s *withStmt) exec(x *exec) signal {
	x.enter(s.loads)
	for i, t := range s.targets {
		t.assign(x, s.values[i].eval(x))
	}
	sig := x.run(s.body)
	x.leave(s.clear)
	return sig
}

func (s *autoescapeStmt) exec(x *exec) signal {
	x.enter(s.loads)
	saved := x.Escape
	x.Escape = x.truth(s.on)
	sig := x.run(s.body)
	x.Escape = saved
	x.leave(s.clear)
	return sig
}

func (s *generationStmt) exec(x *exec) signal {
	start := len(x.out.B)
	(&Macro{x, s.code, x.act}).call(rt.Args{}, true)
	x.Make(16)
	x.out.Gens = append(x.out.Gens, [2]int{start, len(x.out.B)})
	return next
}

func (s *macroStmt) exec(x *exec) signal {
	x.Make(rt.ObjectSize)
	x.act.outer(s.depth).slots[s.slot] = &Macro{x, s.code, x.act}
	x.export(s.export)
	return next
}

func (s *blockStmt) exec(x *exec) signal {
	saved := x.exported
	if s.locals != nil {
		if !x.Make(rt.EntrySize * (len(saved) + len(s.locals))) {
			return halt
		}
		x.exported = make(map[string]value.Value, len(saved)+len(s.locals))
		maps.Copy(x.exported, saved)
		for k, e := range s.locals {
			if v := x.act.outer(e.depth).slots[e.slot]; v != nil {
				x.exported[k] = v
			}
		}
	}
	x.block(x.prog.blocks[s.name])
	x.exported = saved
	return next
}

func (s *loaderStmt) exec(x *exec) signal {
	v := s.template.eval(x)
	if _, text := v.(*value.Str); s.include && !text && !value.IsUndefined(v) && !value.Truth(v) {
		if s.ignore && x.Err == nil {
			return next
		}
		x.Failf(value.Other, "Tried to select from an empty list of templates.")
	}
	x.Failf(value.Type, "no loader for this environment specified")
	x.at(s.pos)
	return halt
}

// target is the left side of an assignment.
type target interface {
	// check refuses attributes of anything but namespaces. It runs before the right side is evaluated.
	check(x *exec) bool
	assign(x *exec, v value.Value)
}

type (
	nameTarget struct{ slot, depth int }
	attrTarget struct {
		pos  syntax.Pos
		ns   *nameExpr
		attr string
	}
	tupleTarget struct {
		pos   syntax.Pos
		items []target
	}
)

func (t *nameTarget) check(*exec) bool { return true }
func (t *nameTarget) assign(x *exec, v value.Value) {
	x.act.outer(t.depth).slots[t.slot] = v
}

func (t *attrTarget) check(x *exec) bool {
	if _, ok := t.ns.eval(x).(*object.Namespace); ok {
		return true
	}
	x.Failf(value.Other, "cannot assign attribute on non-namespace object")
	x.at(t.pos)
	return false
}

func (t *attrTarget) assign(x *exec, v value.Value) {
	switch of := t.ns.eval(x).(type) {
	case *object.Namespace:
		of.Set(&x.Context, t.attr, v)
	case *value.Dict: // Jinja2 would modify it
		x.Failf(value.Other, "cannot assign a block to an item of a dict")
	default: // only for a block, whose target is not checked
		x.Failf(value.Type, "'%s' object does not support item assignment", of.TypeName())
	}
	x.at(t.pos)
}

func (t *tupleTarget) check(x *exec) bool {
	for _, i := range t.items {
		if !i.check(x) {
			return false
		}
	}
	return true
}

func (t *tupleTarget) assign(x *exec, v value.Value) {
	defer x.at(t.pos)
	var items []value.Value
	if l, ok := v.(*value.List); ok {
		items = l.Items
	} else {
		nextItem, _ := value.Iterate(v)
		if nextItem == nil {
			x.Failf(value.Type, "cannot unpack non-iterable %s object", v.TypeName())
			return
		}
		for len(items) <= len(t.items) {
			it := nextItem()
			if it == nil {
				break
			}
			items = append(items, it)
		}
	}
	switch {
	case len(items) < len(t.items):
		x.Failf(value.Other, "not enough values to unpack (expected %d, got %d)", len(t.items), len(items))
	case len(items) > len(t.items):
		x.Failf(value.Other, "too many values to unpack (expected %d)", len(t.items))
	default:
		for i, it := range t.items {
			it.assign(x, items[i])
		}
	}
}
