package eval

import (
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

func (e *logicExpr) truth(x *exec) bool {
	left := e.leftCond.truth(x)
	if left == e.or || x.Err != nil {
		return left
	}
	return e.rightCond.truth(x)
}

func (e *notExpr) truth(x *exec) bool { return !e.x.truth(x) }

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
	if a, ok := left.(*value.Str); ok && op == "==" { // by far the most frequent
		if b, ok := right.(*value.Str); ok {
			x.Lim.Scan(min(len(a.S), len(b.S)))
			return a.S == b.S
		}
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
	v := e.x.eval(x)
	if x.Err != nil {
		return false
	}
	if e.fn == nil {
		x.Failf(value.Other, "No test named '%s' found.", e.name)
		x.at(e.pos)
		return false
	}
	mark := x.mark()
	r := e.fn(&x.Context, v, e.args.eval(x))
	x.pop(mark)
	x.at(e.pos)
	return r
}
