package eval

import (
	"math"
	"slices"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Templates count messages, loop.index0 - 1 or messages|length, to compare the
// number or to take an item. Such numbers are far from overflowing, and no value is made
// of them.

// counts are the loop attributes that count passes: 1 + the number of the first.
var counts = map[string]int64{"index0": 1, "index": 2}

// isNumber reports whether e looks like a number: small is worth trying.
func isNumber(e expr) bool {
	switch e := e.(type) {
	case *constExpr:
		_, ok := e.v.(*value.Int)
		return ok
	case *attrExpr:
		return e.count > 0
	case *binaryExpr:
		return e.minus
	case *sumExpr:
		return slices.ContainsFunc(e.terms, isNumber)
	case *filterExpr:
		return e.length
	}
	return false
}

// small is the number that an expression gives. With ok false there is none, or
// it is large, or has an origin, or is traced, and nothing happened.
func (x *exec) small(e expr) (n int64, ok bool) {
	switch e := e.(type) {
	case *constExpr:
		return smallInt(e.v)
	case *nameExpr:
		if e.depth == 0 {
			return smallInt(x.act.slots[e.slot])
		}
	case *attrExpr:
		if e.slot < 0 {
			return 0, false
		}
		switch v := x.act.slots[e.slot].(type) {
		case *Loop:
			if e.count > 0 {
				return e.count - 1 + int64(v.i), true
			}
		case *Namespace:
			if e.plain {
				return smallInt(e.lookup.in(x, v.attrs))
			}
		}
	case *binaryExpr:
		if !e.minus {
			return 0, false
		}
		if n, ok = x.small(e.left); ok {
			var m int64
			m, ok = x.small(e.right)
			return n - m, ok
		}
	case *sumExpr:
		for _, t := range e.terms {
			m, ok := x.small(t)
			if !ok {
				return 0, false
			}
			n += m
		}
		return n, true
	case *filterExpr:
		if !e.length {
			return 0, false
		}
		var v value.Value
		switch of := e.x.(type) {
		case *nameExpr:
			if of.depth == 0 {
				v = x.act.slots[of.slot]
			}
		case *attrExpr:
			if d := of.dict(x); d != nil && of.plain {
				v = of.lookup.in(x, d)
			}
		}
		if l, ok := v.(*value.List); ok {
			return int64(len(l.Items)), true
		}
	}
	return 0, false
}

func smallInt(v value.Value) (int64, bool) {
	i, ok := v.(*value.Int)
	if !ok || i.Big != nil || i.F != nil || i.V > math.MaxInt32 || i.V < math.MinInt32 {
		return 0, false
	}
	return i.V, true
}

// compareSmall is a op b; ok is false for other operators.
func compareSmall(op string, a, b int64) (holds, ok bool) {
	switch op {
	case "<":
		return a < b, true
	case "<=":
		return a <= b, true
	case ">":
		return a > b, true
	case ">=":
		return a >= b, true
	case "==":
		return a == b, true
	case "!=":
		return a != b, true
	}
	return false, false
}
