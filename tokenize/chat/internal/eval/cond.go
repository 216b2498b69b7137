package eval

import (
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// cond is an expression of which only the truth matters. truth gives the same
// answer, effects and failures as value.Truth(eval(x)), without making a value.
type cond interface{ truth(x *exec) bool }

// anyCond is a cond out of any expression.
type anyCond struct{ expr }

func (c anyCond) truth(x *exec) bool { return value.Truth(c.eval(x)) }

func condition(e expr) cond {
	if c, ok := e.(cond); ok {
		return c
	}
	return anyCond{e}
}

func (e *nameExpr) truth(x *exec) bool {
	return value.Truth(e.eval(x))
}

func (e *attrExpr) truth(x *exec) bool {
	_, r := e.find(x)
	return r != nil && value.Truth(r)
}

func (e *logicExpr) truth(x *exec) bool {
	left := e.leftCond.truth(x)
	if left == e.or || x.Err != nil {
		return left
	}
	return e.rightCond.truth(x)
}

func (e *notExpr) truth(x *exec) bool { return !e.x.truth(x) }

func (e *equalsExpr) truth(x *exec) bool {
	var v value.Value
	if a, ok := e.x.(*attrExpr); ok {
		_, v = a.find(x)
	} else {
		v = e.x.eval(x)
	}
	s, ok := v.(*value.Str)
	return (ok && s.S == e.text) != e.not
}

func (e *containsExpr) truth(x *exec) bool {
	if d := e.dict(x); d != nil {
		return (e.key.in(x, d) != nil) != e.not
	}
	switch c := e.x.eval(x).(type) {
	case *value.Dict:
		return (e.key.in(x, c) != nil) != e.not
	case *value.Str:
		x.Spend(3 * len(c.S) / 2)
		return strings.Contains(c.S, e.text.S) != e.not
	default:
		if x.Err != nil {
			return false
		}
		in, fault := value.Contains(x.Lim, c, e.text)
		if fault != nil {
			x.Fail(fault)
			x.at(e.pos)
			return false
		}
		return in != e.not
	}
}

func (e *compareExpr) truth(x *exec) bool {
	left := e.x.eval(x)
	for i, op := range e.ops {
		right := e.rest[i].eval(x)
		if !e.holds(x, op, left, right) {
			return false
		}
		left = right
	}
	return true
}

func (e *compareExpr) holds(x *exec, op string, left, right value.Value) bool {
	if x.Err != nil {
		return false
	}
	ok, fault := value.Relation(x.Lim, op, left, right)
	if fault != nil {
		x.Fail(fault)
		x.at(e.pos)
		return false
	}
	return ok
}

func (e *testExpr) truth(x *exec) bool {
	var v value.Value
	if e.alone {
		v = operand(x, e.x)
	} else {
		v = e.x.eval(x)
	}
	if x.Err != nil {
		return false
	}
	if e.is != nil {
		return e.is(v)
	}
	if e.fn == nil {
		x.Failf(value.Other, "No test named '%s' found.", e.name)
		x.at(e.pos)
		return false
	}
	if e.alone {
		r := e.fn(&x.Context, v, rt.Args{})
		x.at(e.pos)
		return r
	}
	mark := x.mark()
	r := e.fn(&x.Context, v, e.args.eval(x))
	x.pop(mark)
	x.at(e.pos)
	return r
}

// operand evaluates an expression whose value is looked at only until the next
// operand is: an rt.Stopped attribute needs no memory of its own then.
func operand(x *exec, e expr) value.Value {
	a, ok := e.(*attrExpr)
	if !ok {
		return e.eval(x)
	}
	v, r := a.find(x)
	if r != nil {
		return r
	}
	x.missing = value.Undefined{Obj: v, Name: a.key}
	return &x.missing
}
