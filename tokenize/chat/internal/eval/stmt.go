package eval

import (
	"github.com/turnpack/turnpack/tokenize/chat/internal/object"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// signal says how a statement ended.
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

// What a statement computes is as long as the template says, in each pass of a loop: so
// it takes a step for each nodesAStep nodes of its expressions and targets, looked at or
// not, where a text that is compared or looked up counts as a node for each bytesANode
// bytes. Entering a scope takes a step for each loadsAStep of its variables.
const nodesAStep, bytesANode, loadsAStep = 4, 16, 8

// chargeStmt takes the steps of the statement after it.
type chargeStmt int

func (s chargeStmt) exec(x *exec) signal {
	if !x.Step(int(s)) {
		return halt
	}
	return next
}

type (
	// dataStmt prints text of the template: data, and {{ "constants" }} where
	// parts is not nil.
	dataStmt struct {
		text  string
		parts []*value.Str // of text; constants are escaped in an autoescape block
	}
	outputStmt  struct{ e expr }
	setNameStmt struct {
		slot int
		e    expr
	}
	setStmt struct {
		target target
		e      expr
		export []string
	}
	ifStmt struct {
		tests  []cond
		bodies [][]stmt
		els    []stmt
	}
	jumpStmt signal
	// scopeCode is the body of a scope inside a function.
	scopeCode struct {
		loads []loadCode
		clear []int
		body  []stmt
	}
	setBlockStmt struct {
		scopeCode
		target target
		filter *filterExpr
		export []string
	}
	filterBlockStmt struct {
		scopeCode
		filter *filterExpr
	}
	withStmt struct {
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
		export      string
	}
	blockStmt struct {
		name   string
		locals map[string]*nameExpr // of a scoped block
	}
	selfStmt   struct{ slot int }
	loaderStmt struct {
		pos             syntax.Pos
		template        expr
		include, ignore bool // ignore: a list that names no template is no failure
	}
)

func (s *dataStmt) exec(x *exec) signal {
	if x.Escape {
		for _, p := range s.parts {
			x.out.Str(py.Escape(p, x.Lim))
		}
		if s.parts != nil {
			return next
		}
	}
	x.out.Lit(s.text)
	return next
}

// maxJoined bounds the constant text that is joined at compile time, which takes
// quadratic time.
const maxJoined = 1 << 12

// join appends a dataStmt, as one with the dataStmt before it.
func join(out []stmt, d *dataStmt) []stmt {
	if len(out) == 0 {
		return append(out, d)
	}
	before, ok := out[len(out)-1].(*dataStmt)
	if !ok || len(before.text)+len(d.text) > maxJoined || len(before.parts) > maxJoined/64 {
		return append(out, d)
	}
	parts := func(d *dataStmt) []*value.Str {
		if d.parts == nil {
			return []*value.Str{value.Lit(d.text).Safe()}
		}
		return d.parts
	}
	both := &dataStmt{text: before.text + d.text}
	if before.parts != nil || d.parts != nil {
		both.parts = append(parts(before)[:len(parts(before)):len(parts(before))], parts(d)...)
	}
	out[len(out)-1] = both
	return out
}

func (s *outputStmt) exec(x *exec) signal {
	x.emit(s.e)
	if !x.checkOutput() { // at once: what is printed can be large
		return halt
	}
	return next
}

func (s *setNameStmt) exec(x *exec) signal {
	x.act.slots[s.slot] = s.e.eval(x)
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
		if test.truth(x) {
			return x.run(s.bodies[i])
		}
	}
	return x.run(s.els) // stops at once after a failure
}

func (s jumpStmt) exec(*exec) signal { return signal(s) }

func (s *setBlockStmt) exec(x *exec) signal {
	x.enter(s.loads)
	text, sig := x.capture(func() signal { return x.run(s.body) })
	if sig != next {
		return sig
	}
	if x.Escape {
		text = text.Safe()
	}
	var v value.Value = text
	if s.filter != nil {
		v = s.filter.body(x, text)
	}
	s.target.assign(x, v)
	x.export(s.export)
	x.leave(s.clear)
	return next
}

func (s *filterBlockStmt) exec(x *exec) signal {
	x.enter(s.loads)
	text, sig := x.capture(func() signal { return x.run(s.body) })
	if sig != next {
		return sig
	}
	if x.Escape {
		text = text.Safe()
	}
	printed := s.filter.body(x, text)
	if text, ok := printed.(*value.Str); ok {
		x.out.Str(text) // an autoescape block escapes no more
	} else if x.unjoined == nil {
		x.unjoined = printed
	}
	x.leave(s.clear)
	return next
}

// joined fails where something was printed into the current output that is no
// text, which only filter blocks do. Python joins an output when it is over.
func (x *exec) joined() {
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
	x.Escape = value.Truth(s.on.eval(x))
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

func (s *macroStmt) exec(x *exec) signal {
	x.Make(rt.ObjectSize)
	m := &Macro{x, s.code, x.act}
	x.act.outer(s.depth).slots[s.slot] = m
	if s.export != "" {
		x.exported[s.export] = m
	}
	return next
}

func (s *selfStmt) exec(x *exec) signal {
	x.act.slots[s.slot] = &selfRef{x}
	return next
}

func (s *blockStmt) exec(x *exec) signal {
	saved := x.exported
	if s.locals != nil {
		if !x.Make(rt.EntrySize * (len(saved) + len(s.locals))) {
			return halt
		}
		x.exported = make(map[string]value.Value, len(saved)+len(s.locals))
		for k, v := range saved {
			x.exported[k] = v
		}
		for k, e := range s.locals {
			if v := x.act.outer(e.depth).slots[e.slot]; v != nil {
				x.exported[k] = v
			}
		}
	}
	x.block(s.name)
	x.exported = saved
	return next
}

func (x *exec) block(name string) {
	b := x.prog.blocks[name]
	if !x.descend() {
		return
	}
	if !x.Make(rt.ObjectSize + 16*len(b.fn.Order)) {
		return
	}
	a := &activation{slots: make([]value.Value, len(b.fn.Order))}
	if b.self != nil {
		a.slots[b.self.Slot] = &selfRef{x}
	}
	if b.super != nil {
		a.slots[b.super.Slot] = &value.Undefined{Hint: "there is no parent block called '" + name + "'.", Name: value.Lit("super")}
	}
	x.call(&b.functionCode, a)
	x.depth--
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
	// check refuses attributes of anything but namespaces, before the right
	// side is evaluated.
	check(x *exec) bool
	assign(x *exec, v value.Value)
}

type (
	nameTarget struct {
		slot, depth int
		name        string
	}
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
		x.Fail(of.Set(t.attr, v))
	case *value.Dict: // Jinja2 would change it
		x.Failf(value.Other, "cannot assign a block to an item of a dict")
	default: // for a block alone, whose target is not checked
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
	if l, ok := v.(*value.List); ok && len(l.Items) == len(t.items) {
		for i, it := range t.items {
			it.assign(x, l.Items[i])
		}
		return
	}
	nextItem, _, fault := value.Iterate(v)
	if fault != nil {
		x.Failf(value.Type, "cannot unpack non-iterable %s object", v.TypeName())
		return
	}
	items := make([]value.Value, 0, len(t.items))
	for len(items) <= len(t.items) {
		item := nextItem()
		if item == nil {
			break
		}
		items = append(items, item)
	}
	if len(items) < len(t.items) {
		x.Failf(value.Other, "not enough values to unpack (expected %d, got %d)", len(t.items), len(items))
		return
	}
	if len(items) > len(t.items) {
		x.Failf(value.Other, "too many values to unpack (expected %d)", len(t.items))
		return
	}
	for i, it := range t.items {
		it.assign(x, items[i])
	}
}
