package eval

import (
	"github.com/turnpack/turnpack/tokenize/chat/internal/object"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// expr is an expression. eval never returns nil.
type expr interface{ eval(x *exec) value.Value }

type (
	constExpr struct{ v value.Value }
	nameExpr  struct {
		slot, depth int
		missing     *value.Undefined
	}
	listExpr struct {
		items []expr
		tuple bool
	}
	dictExpr struct {
		pos          syntax.Pos
		keys, values []expr
	}
	condExpr struct {
		test      cond
		then, els expr
	}
	logicExpr struct {
		or                  bool
		left, right         expr
		leftCond, rightCond cond
	}
	notExpr   struct{ x cond }
	unaryExpr struct {
		pos syntax.Pos
		op  string
		x   expr
	}
	binaryExpr struct {
		pos         syntax.Pos
		op          string
		left, right expr
	}
	// sumExpr is a + b + c…
	sumExpr struct {
		terms []expr
		texts []string // of the terms that are constant strings
		pos   []syntax.Pos
	}
	concatExpr struct {
		pos   syntax.Pos
		items []expr
	}
	compareExpr struct {
		pos  syntax.Pos
		x    expr
		ops  []string
		rest []expr
	}
	attrExpr struct {
		pos   syntax.Pos
		x     expr
		name  string
		key   *value.Str
		near  int                     // its place in exec.near
		plain bool                    // no dict or namespace has an attribute of this name: look for the key only
		loop  func(*Loop) value.Value // the attribute of loop objects
	}
	itemExpr struct {
		pos      syntax.Pos
		x, index expr
	}
	sliceExpr struct {
		pos   syntax.Pos
		x     expr
		parts [3]expr
	}
	callExpr struct {
		pos    syntax.Pos
		fn     expr
		method *attrExpr // fn, when it is an attribute
		args   argList
	}
	// callerExpr is the body of a call block.
	callerExpr struct{ code *macroCode }
	filterExpr struct {
		pos  syntax.Pos
		x    expr // nil: applied to a captured body
		name string
		fn   rt.Func // nil: unknown
		json bool    // it is tojson, of x
		args argList
	}
	testExpr struct {
		pos  syntax.Pos
		name string
		fn   rt.Test // nil: unknown
		x    expr
		args argList
	}
)

func (e *constExpr) eval(*exec) value.Value { return e.v }

func (e *callerExpr) eval(x *exec) value.Value { return &Macro{x, e.code, x.act} }

func (e *nameExpr) eval(x *exec) value.Value {
	a := x.act
	if e.depth > 0 {
		a = a.outer(e.depth)
	}
	if v := a.slots[e.slot]; v != nil {
		return v
	}
	return e.missing
}

func (e *listExpr) eval(x *exec) value.Value {
	if !x.Make(rt.ObjectSize + 16*len(e.items)) {
		return rt.Stopped
	}
	items := make([]value.Value, len(e.items))
	for i, it := range e.items {
		items[i] = it.eval(x)
	}
	return &value.List{Items: items, Tuple: e.tuple}
}

func (e *dictExpr) eval(x *exec) value.Value {
	if !x.Make(rt.ObjectSize) {
		return rt.Stopped
	}
	d := value.NewDict(len(e.keys))
	for i, k := range e.keys {
		key := k.eval(x)
		x.Fail(d.Set(x.Lim, key, e.values[i].eval(x)))
	}
	x.at(e.pos)
	return d
}

func (e *condExpr) eval(x *exec) value.Value {
	if e.test.truth(x) {
		return e.then.eval(x)
	}
	return e.els.eval(x)
}

func (e *logicExpr) eval(x *exec) value.Value {
	v := e.left.eval(x)
	if value.Truth(v) == e.or || x.Err != nil {
		return v
	}
	return e.right.eval(x)
}

func (e *notExpr) eval(x *exec) value.Value { return value.NewBool(!e.x.truth(x)) }

func (e *unaryExpr) eval(x *exec) value.Value {
	v := e.x.eval(x)
	if !x.Lim.Integer(v) {
		return x.Fail(x.Lim.Over())
	}
	v, fault := py.Sign(e.op, v)
	if fault != nil {
		x.Fail(fault)
		x.at(e.pos)
		return rt.Stopped
	}
	return v
}

func (e *binaryExpr) eval(x *exec) value.Value {
	return x.arith(e.op, e.left.eval(x), e.right.eval(x), e.pos)
}

func (x *exec) arith(op string, a, b value.Value, pos syntax.Pos) value.Value {
	if x.Err != nil || !x.Make(48) {
		return rt.Stopped
	}
	v, fault := py.Arith(x.Lim, op, a, b)
	if fault == nil {
		fault = x.Lim.Over()
	}
	if fault != nil {
		x.Fail(fault)
		x.at(pos)
		return rt.Stopped
	}
	return v
}

func (e *sumExpr) eval(x *exec) value.Value {
	var buf [8]*value.Str
	strs := buf[:0]
	for i, t := range e.terms {
		v := t.eval(x)
		s, ok := v.(*value.Str)
		if !ok || s.Markup || x.Err != nil {
			if i > 0 {
				v = x.arith("+", e.concat(x, strs), v, e.pos[i])
			}
			return e.add(x, v, i+1)
		}
		strs = append(strs, s)
	}
	return e.concat(x, strs)
}

func (e *sumExpr) concat(x *exec, strs []*value.Str) value.Value {
	s, fault := value.Concat(x.Lim, strs...)
	if fault != nil {
		x.Fail(fault)
		x.at(e.pos[0])
		return rt.Stopped
	}
	return s
}

// add adds the terms from i on to v.
func (e *sumExpr) add(x *exec, v value.Value, i int) value.Value {
	for ; i < len(e.terms) && x.Err == nil; i++ {
		v = x.arith("+", v, e.terms[i].eval(x), e.pos[i])
	}
	return v
}

func (e *concatExpr) eval(x *exec) value.Value {
	strs := make([]*value.Str, len(e.items))
	markup := false
	for i, it := range e.items {
		s := x.SoftStr(it.eval(x))
		markup = markup || s.Markup
		strs[i] = s
	}
	x.at(e.pos)
	if x.Escape && markup {
		for i, s := range strs {
			strs[i] = py.Escape(s, x.Lim)
		}
	}
	s, fault := value.Concat(x.Lim, strs...)
	if fault != nil {
		x.Fail(fault)
		x.at(e.pos)
		return rt.Stopped
	}
	if x.Escape && markup {
		return s.Safe()
	}
	return s
}

func (e *compareExpr) eval(x *exec) value.Value {
	ok := e.truth(x)
	if x.Err != nil {
		return rt.Stopped
	}
	return value.NewBool(ok)
}

// undefinedSize is about the memory of an undefined value.
const undefinedSize = 64

func (e *attrExpr) eval(x *exec) value.Value {
	v := e.x.eval(x)
	var r value.Value
	switch v := v.(type) {
	case *value.Dict:
		if e.plain {
			r = v.Lookup(e.name, &x.near[e.near])
		}
	case *object.Namespace:
		if e.plain {
			r = v.Attrs.Lookup(e.name, &x.near[e.near])
		}
	case *Loop:
		if e.loop != nil {
			r = e.loop(v)
		}
	}
	if r != nil {
		return r
	}
	x.Make(undefinedSize)
	r = object.Getattr(&x.Context, v, e.name, e.key)
	x.at(e.pos)
	return r
}

func (e *itemExpr) eval(x *exec) value.Value {
	v := e.x.eval(x)
	x.Make(undefinedSize) // what is not there, or a character
	r := object.Getitem(&x.Context, v, e.index.eval(x))
	x.at(e.pos)
	return r
}

func (e *filterExpr) eval(x *exec) value.Value { return e.apply(x, e.x.eval(x)) }

// body applies a chain of filters to a captured text.
func (e *filterExpr) body(x *exec, text value.Value) value.Value {
	if inner, ok := e.x.(*filterExpr); ok {
		text = inner.body(x, text)
	}
	return e.apply(x, text)
}

func (e *filterExpr) apply(x *exec, v value.Value) value.Value {
	if x.Err != nil {
		return rt.Stopped
	}
	if e.fn == nil {
		x.Failf(value.Other, "No filter named '%s' found.", e.name)
		x.at(e.pos)
		return rt.Stopped
	}
	mark := x.mark()
	a := e.args.eval(x)
	if x.Err == nil {
		v = e.fn(&x.Context, v, a)
		x.Step(1)
		x.gave(v)
	}
	x.pop(mark)
	if x.Err != nil {
		x.at(e.pos)
		return rt.Stopped
	}
	return v
}

func (e *testExpr) eval(x *exec) value.Value {
	ok := e.truth(x)
	if x.Err != nil {
		return rt.Stopped
	}
	return value.NewBool(ok)
}

func (e *sliceExpr) eval(x *exec) value.Value {
	v := e.x.eval(x)
	var parts [3]value.Value
	for i, p := range e.parts {
		if p != nil {
			parts[i] = p.eval(x)
		}
	}
	r := object.Slice(&x.Context, v, parts)
	x.at(e.pos)
	return r
}
