package value

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"strings"
)

func identity(v Value) string { return fmt.Sprintf("%p", v) }

// Same implements Python's "is". In CPython small integers and equal strings of the template are one object; here equal
// strings and equal integers of 64 bits always are.
func Same(a, b Value) bool {
	switch x := a.(type) {
	case *None:
		_, ok := b.(*None)
		return ok
	case *Bool:
		y, ok := b.(*Bool)
		return ok && x.V == y.V
	case *Int:
		y, ok := b.(*Int)
		return ok && (x == y || x.Big == nil && y.Big == nil && x.V == y.V)
	case *Str:
		y, ok := b.(*Str)
		return ok && x.S == y.S && x.Markup == y.Markup
	}
	return a == b
}

// Equal implements Python's ==, with nesting bounded by l.Depth. It returns false after a failure.
func Equal(l *Limits, a, b Value) bool { return equal(l, a, b, l.Depth) }

func equal(l *Limits, a, b Value, depth int) bool {
	if !compares(l, depth) {
		return false
	}
	switch x := a.(type) {
	case *Str:
		y, ok := b.(*Str)
		return ok && l.sameText(x.S, y.S)
	case *Bytes:
		y, ok := b.(*Bytes)
		return ok && l.sameText(x.B, y.B)
	case *None, *Undefined:
		return x.TypeName() == b.TypeName()
	case *Bool, *Int, *Float:
		n, m := NumberOf(a), NumberOf(b)
		if !m.OK() {
			return false
		}
		l.numbers(n, m)
		c, ordered := compareNumbers(n, m)
		return ordered && c == 0
	case *List:
		y, ok := b.(*List)
		return ok && x.Tuple == y.Tuple && len(x.Items) == len(y.Items) && differ(l, x, y, depth) == len(x.Items)
	case *Dict:
		y, ok := b.(*Dict)
		return ok && x.Len() == y.Len() && equalDicts(l, x, y, depth)
	case *Range:
		y, ok := b.(*Range)
		if !ok || x.Len() != y.Len() {
			return false
		}
		n := x.Len()
		return n == 0 || x.Start == y.Start && (n == 1 || x.Step == y.Step)
	case *View:
		y, ok := b.(*View)
		if !ok || x.Kind == "dict_values" || y.Kind == "dict_values" || x.D.Len() != y.D.Len() {
			break
		}
		for i := 0; i < x.D.Len(); i++ {
			l.Spend(40) // an item is a tuple
			if !contains(l, y, x.At(i), depth-1) {
				return false
			}
		}
		return true
	}
	return a == b
}

// compares counts a comparison and reports whether the run may continue.
func compares(l *Limits, depth int) bool {
	if depth <= 0 {
		l.Failf(Other, "maximum recursion depth exceeded in comparison")
	}
	return l.Spend(20)
}

func (l *Limits) sameText(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	l.Scan(len(a))
	return a == b
}

// differ returns the first index at which two lists differ, or the length of the shorter one.
func differ(l *Limits, x, y *List, depth int) int {
	n := min(len(x.Items), len(y.Items))
	for i := range n {
		if l.Spend(2); !Same(x.Items[i], y.Items[i]) && !equal(l, x.Items[i], y.Items[i], depth-1) {
			return i
		}
	}
	return n
}

func equalDicts(l *Limits, x, y *Dict, depth int) bool {
	for i := range x.entries {
		j := y.find(x.entries[i].h)
		if j < 0 || !equal(l, x.entries[i].val, y.entries[j].val, depth-1) {
			return false
		}
	}
	return true
}

func compareNumbers(n, m Number) (c int, ordered bool) {
	switch {
	case n.IsInt && m.IsInt:
		if n.B == nil && m.B == nil {
			return cmp.Compare(n.I, m.I), true
		}
		return n.Big().Cmp(m.Big()), true
	case n.IsFloat && m.IsFloat:
		return cmp.Compare(n.F, m.F), !math.IsNaN(n.F) && !math.IsNaN(m.F)
	case n.IsFloat:
		c, ordered = compareNumbers(m, n)
		return -c, ordered
	}
	if math.IsNaN(m.F) {
		return 0, false
	}
	if math.IsInf(m.F, 0) {
		return cmp.Compare(0, m.F), true
	}
	return new(big.Float).SetInt(n.Big()).Cmp(big.NewFloat(m.F)), true
}

// Relation applies one of == != < <= > >= in notin. It returns false after a failure.
func Relation(l *Limits, op string, a, b Value) bool {
	var holds bool
	switch op {
	case "==", "!=":
		holds = Equal(l, a, b) == (op == "==")
	case "in", "notin":
		holds = Contains(l, b, a) == (op == "in")
	default:
		holds = Compare(l, op, a, b)
	}
	return holds && l.Err == nil
}

// Compare applies one of < <= > >=. It returns false after a failure.
func Compare(l *Limits, op string, a, b Value) bool { return compare(l, op, a, b, l.Depth) }

func compare(l *Limits, op string, a, b Value, depth int) bool {
	if !compares(l, depth) {
		return false
	}
	for _, v := range [...]Value{a, b} {
		if u, ok := v.(*Undefined); ok {
			l.Fail(u.Use())
			return false
		}
	}
	switch x := a.(type) {
	case *Str:
		if y, ok := b.(*Str); ok {
			l.Scan(min(len(x.S), len(y.S)))
			return decide(op, strings.Compare(x.S, y.S))
		}
	case *Bool, *Int, *Float:
		if m := NumberOf(b); m.OK() {
			n := NumberOf(a)
			l.numbers(n, m)
			c, ordered := compareNumbers(n, m)
			return ordered && decide(op, c)
		}
	case *Bytes:
		if y, ok := b.(*Bytes); ok {
			l.Scan(min(len(x.B), len(y.B)))
			return decide(op, strings.Compare(x.B, y.B))
		}
	case *List:
		y, ok := b.(*List)
		if !ok || x.Tuple != y.Tuple {
			break
		}
		if i := differ(l, x, y, depth); i < len(x.Items) && i < len(y.Items) {
			return compare(l, op, x.Items[i], y.Items[i], depth-1)
		}
		return decide(op, len(x.Items)-len(y.Items))
	}
	l.Failf(Type, "'%s' not supported between instances of '%s' and '%s'", op, a.TypeName(), b.TypeName())
	return false
}

// decide returns the result of op for a comparison with sign c.
func decide(op string, c int) bool {
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// Contains implements Python's "x in container". It returns false after a failure.
func Contains(l *Limits, container, x Value) bool { return contains(l, container, x, l.Depth) }

func contains(l *Limits, container, x Value, depth int) bool {
	switch c := container.(type) {
	case *Str:
		s, ok := x.(*Str)
		if !ok {
			l.Failf(Type, "'in <string>' requires string as left operand, not %s", x.TypeName())
			return false
		}
		l.Spend(3*len(c.S)/2 + 1)
		return strings.Contains(c.S, s.S)
	case *Dict:
		return c.Get(l, x) != nil
	case *View:
		if c.Kind == "dict_keys" {
			return c.D.Get(l, x) != nil
		}
		if item, ok := x.(*List); c.Kind == "dict_items" {
			if !ok || !item.Tuple || len(item.Items) != 2 {
				return false
			}
			v := c.D.Get(l, item.Items[0])
			return v != nil && (Same(v, item.Items[1]) || equal(l, v, item.Items[1], depth-1))
		}
	case *Range:
		n := NumberOf(x)
		if n.IsFloat && n.F == math.Trunc(n.F) && math.Abs(n.F) < 1<<62 {
			n = Number{IsInt: true, I: int64(n.F)}
		}
		if !n.IsInt || n.B != nil || c.Len() == 0 {
			return false
		}
		d := n.I - c.Start
		return d%c.Step == 0 && d/c.Step >= 0 && d/c.Step < int64(c.Len())
	}
	next, _ := Iterate(container)
	if next == nil {
		l.Failf(Type, "argument of type '%s' is not iterable", container.TypeName())
		return false
	}
	for v := next(); v != nil && l.Spend(StepWork); v = next() {
		if Same(v, x) || equal(l, v, x, depth-1) {
			return true
		}
	}
	return false
}
