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

func (x *exec) truth(e expr) bool { return value.Truth(e.eval(x)) }

type (
	// dataExpr is template text, which an autoescape block does not escape.
	dataExpr  struct{ text string }
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
	condExpr  struct{ test, then, els expr }
	logicExpr struct {
		or          bool
		left, right expr
	}
	notExpr   struct{ x expr }
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
		near  int                     // index into exec.near
		plain bool                    // no dict or namespace has an attribute of this name: only look up the key
		loop  func(*Loop) value.Value // this attribute of loop objects
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
		method *attrExpr // fn if it is an attribute, else nil
		args   argList
	}
	// capturedExpr is the output of the body of a block with a filter.
	capturedExpr struct{}
	// callerExpr is the body of a call block.
	callerExpr struct{ code *macroCode }
	filterExpr struct {
		pos  syntax.Pos
		x    expr
		name string
		fn   rt.Func // nil: unknown
		json bool    // it is tojson applied to x
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

func (e *dataExpr) eval(*exec) value.Value { return value.Lit(e.text).Safe() }

func (e *constExpr) eval(*exec) value.Value { return e.v }

func (capturedExpr) eval(x *exec) value.Value { return x.captured }

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
		return value.Stopped
	}
	items := make([]value.Value, len(e.items))
	for i, it := range e.items {
		items[i] = it.eval(x)
	}
	return &value.List{Items: items, Tuple: e.tuple}
}

func (e *dictExpr) eval(x *exec) value.Value {
	if !x.Make(rt.ObjectSize) {
		return value.Stopped
	}
	d := value.NewDict(len(e.keys))
	for i, k := range e.keys {
		key := k.eval(x)
		d.Set(x.Lim, key, e.values[i].eval(x))
	}
	x.at(e.pos)
	return d
}

func (e *condExpr) eval(x *exec) value.Value {
	if x.truth(e.test) {
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

func (e *notExpr) eval(x *exec) value.Value { return value.NewBool(!x.truth(e.x)) }

func (e *unaryExpr) eval(x *exec) value.Value {
	v := e.x.eval(x)
	x.Lim.Integer(v)
	v = py.Sign(x.Lim, e.op, v)
	x.at(e.pos)
	return v
}

func (e *binaryExpr) eval(x *exec) value.Value {
	return x.arith(e.op, e.left.eval(x), e.right.eval(x), e.pos)
}

func (x *exec) arith(op string, a, b value.Value, pos syntax.Pos) value.Value {
	if x.Err != nil || !x.Make(48) {
		return value.Stopped
	}
	v := py.Arith(x.Lim, op, a, b)
	x.at(pos)
	return v
}

func (e *sumExpr) eval(x *exec) value.Value {
	var buf [8]*value.Str
	texts := buf[:0]
	for i, t := range e.terms {
		v := t.eval(x)
		s, ok := v.(*value.Str)
		if !ok || s.Markup || x.Err != nil {
			if i > 0 {
				v = x.arith("+", x.concat(e.pos[0], texts), v, e.pos[i])
			}
			return e.add(x, v, i+1)
		}
		texts = append(texts, s)
	}
	return x.concat(e.pos[0], texts)
}

// add returns v plus the terms from index i on.
func (e *sumExpr) add(x *exec, v value.Value, i int) value.Value {
	for ; i < len(e.terms) && x.Err == nil; i++ {
		v = x.arith("+", v, e.terms[i].eval(x), e.pos[i])
	}
	return v
}

func (x *exec) concat(pos syntax.Pos, texts []*value.Str) *value.Str {
	s := value.Concat(x.Lim, texts...)
	x.at(pos)
	return s
}

func (e *concatExpr) eval(x *exec) value.Value {
	texts := make([]*value.Str, len(e.items))
	markup := false
	for i, it := range e.items {
		texts[i] = x.SoftStr(it.eval(x))
		markup = markup || texts[i].Markup
	}
	x.at(e.pos)
	if !x.Escape || !markup {
		return x.concat(e.pos, texts)
	}
	for i, s := range texts {
		texts[i] = py.Escape(s, x.Lim)
	}
	return x.concat(e.pos, texts).Safe()
}

func (e *compareExpr) eval(x *exec) value.Value {
	left := e.x.eval(x)
	for i, op := range e.ops {
		right := e.rest[i].eval(x)
		if x.Err != nil {
			return value.Stopped
		}
		ok := value.Relation(x.Lim, op, left, right)
		if !ok {
			x.at(e.pos)
			return value.False
		}
		left = right
	}
	return value.True
}

// undefinedSize is the approximate memory of an undefined value in bytes.
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
	x.Make(undefinedSize) // an undefined value or a character
	r := object.Getitem(&x.Context, v, e.index.eval(x))
	x.at(e.pos)
	return r
}

func (e *filterExpr) eval(x *exec) value.Value {
	v := e.x.eval(x)
	if x.Err != nil {
		return value.Stopped
	}
	if e.fn == nil {
		x.Failf(value.Other, "No filter named '%s' found.", e.name)
		x.at(e.pos)
		return value.Stopped
	}
	mark := x.mark()
	a := e.args.eval(x)
	if x.Err == nil {
		v = e.fn(&x.Context, v, a)
		x.Step(1)
		x.countResult(v)
	}
	x.pop(mark)
	if x.Err != nil {
		x.at(e.pos)
		return value.Stopped
	}
	return v
}

func (e *testExpr) eval(x *exec) value.Value {
	v := e.x.eval(x)
	if x.Err != nil {
		return value.Stopped
	}
	if e.fn == nil {
		x.Failf(value.Other, "No test named '%s' found.", e.name)
		x.at(e.pos)
		return value.Stopped
	}
	mark := x.mark()
	ok := e.fn(&x.Context, v, e.args.eval(x))
	x.pop(mark)
	x.at(e.pos)
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
