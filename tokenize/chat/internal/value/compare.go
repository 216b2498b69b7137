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

// Equal implements Python's ==, with nesting bounded by l.Depth.
func Equal(l *Limits, a, b Value) (bool, *Fault) { return equal(l, a, b, l.Depth) }

func equal(l *Limits, a, b Value, depth int) (bool, *Fault) {
	if depth <= 0 {
		return false, ValueError("maximum recursion depth exceeded in comparison")
	}
	if !l.Spend(20) {
		return false, l.Over()
	}
	switch x := a.(type) {
	case *Str:
		y, ok := b.(*Str)
		return ok && l.sameText(x.S, y.S), nil
	case *Bytes:
		y, ok := b.(*Bytes)
		return ok && l.sameText(x.B, y.B), nil
	case *None, *Undefined:
		return x.TypeName() == b.TypeName(), nil
	case *Bool, *Int, *Float:
		n, m := NumberOf(a), NumberOf(b)
		if !m.OK() {
			return false, nil
		}
		l.numbers(n, m)
		c, ordered := compareNumbers(n, m)
		return ordered && c == 0, nil
	case *List:
		y, ok := b.(*List)
		if !ok || x.Tuple != y.Tuple || len(x.Items) != len(y.Items) {
			return false, nil
		}
		i, fault := differ(l, x, y, depth)
		return i == len(x.Items), fault
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || x.Len() != y.Len() {
			return false, nil
		}
		return equalDicts(l, x, y, depth)
	case *Range:
		y, ok := b.(*Range)
		if !ok || x.Len() != y.Len() {
			return false, nil
		}
		n := x.Len()
		return n == 0 || (x.Start == y.Start && (n == 1 || x.Step == y.Step)), nil
	case *View:
		y, ok := b.(*View)
		if !ok || x.Kind == "dict_values" || y.Kind == "dict_values" || x.D.Len() != y.D.Len() {
			break
		}
		for i := 0; i < x.D.Len(); i++ {
			l.Spend(40) // an item is a tuple
			if in, fault := contains(l, y, x.At(i), depth-1); !in || fault != nil {
				return false, fault
			}
		}
		return true, nil
	}
	return a == b, nil
}

func (l *Limits) sameText(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	l.Scan(len(a))
	return a == b
}

// differ returns the first index at which two lists differ, or the length of the shorter one.
func differ(l *Limits, x, y *List, depth int) (int, *Fault) {
	n := min(len(x.Items), len(y.Items))
	for i := range n {
		if l.Spend(2); Same(x.Items[i], y.Items[i]) {
			continue
		}
		if eq, fault := equal(l, x.Items[i], y.Items[i], depth-1); !eq || fault != nil {
			return i, fault
		}
	}
	return n, nil
}

func equalDicts(l *Limits, x, y *Dict, depth int) (bool, *Fault) {
	for i := range x.entries {
		j := y.find(x.entries[i].h)
		if j < 0 {
			return false, nil
		}
		if eq, fault := equal(l, x.entries[i].val, y.entries[j].val, depth-1); !eq || fault != nil {
			return false, fault
		}
	}
	return true, nil
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

// Relation applies one of == != < <= > >= in notin.
func Relation(l *Limits, op string, a, b Value) (bool, *Fault) {
	switch op {
	case "==", "!=":
		eq, fault := Equal(l, a, b)
		return eq == (op == "=="), fault
	case "in", "notin":
		in, fault := Contains(l, b, a)
		return in == (op == "in"), fault
	}
	return Compare(l, op, a, b)
}

// Compare applies one of < <= > >=.
func Compare(l *Limits, op string, a, b Value) (bool, *Fault) { return compare(l, op, a, b, l.Depth) }

func compare(l *Limits, op string, a, b Value, depth int) (bool, *Fault) {
	if depth <= 0 {
		return false, ValueError("maximum recursion depth exceeded in comparison")
	}
	if !l.Spend(20) {
		return false, l.Over()
	}
	if u, ok := a.(*Undefined); ok {
		return false, u.Use()
	}
	if u, ok := b.(*Undefined); ok {
		return false, u.Use()
	}
	switch x := a.(type) {
	case *Str:
		if y, ok := b.(*Str); ok {
			l.Scan(min(len(x.S), len(y.S)))
			return decide(op, strings.Compare(x.S, y.S)), nil
		}
	case *Bool, *Int, *Float:
		if m := NumberOf(b); m.OK() {
			n := NumberOf(a)
			l.numbers(n, m)
			c, ordered := compareNumbers(n, m)
			return ordered && decide(op, c), nil
		}
	case *Bytes:
		if y, ok := b.(*Bytes); ok {
			l.Scan(min(len(x.B), len(y.B)))
			return decide(op, strings.Compare(x.B, y.B)), nil
		}
	case *List:
		y, ok := b.(*List)
		if !ok || x.Tuple != y.Tuple {
			break
		}
		i, fault := differ(l, x, y, depth)
		if fault != nil {
			return false, fault
		}
		if i < len(x.Items) && i < len(y.Items) {
			return compare(l, op, x.Items[i], y.Items[i], depth-1)
		}
		return decide(op, len(x.Items)-len(y.Items)), nil
	}
	return false, TypeError("'%s' not supported between instances of '%s' and '%s'", op, a.TypeName(), b.TypeName())
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

// Contains implements Python's "x in container".
func Contains(l *Limits, container, x Value) (bool, *Fault) {
	return contains(l, container, x, l.Depth)
}

func contains(l *Limits, container, x Value, depth int) (bool, *Fault) {
	switch c := container.(type) {
	case *Str:
		s, ok := x.(*Str)
		if !ok {
			return false, TypeError("'in <string>' requires string as left operand, not %s", x.TypeName())
		}
		l.Spend(3*len(c.S)/2 + 1)
		return strings.Contains(c.S, s.S), nil
	case *Dict:
		v, fault := c.Get(l, x)
		return v != nil, fault
	case *View:
		if c.Kind == "dict_keys" {
			v, fault := c.D.Get(l, x)
			return v != nil, fault
		}
		if item, ok := x.(*List); c.Kind == "dict_items" {
			if !ok || !item.Tuple || len(item.Items) != 2 {
				return false, nil
			}
			v, fault := c.D.Get(l, item.Items[0])
			if v == nil || fault != nil || Same(v, item.Items[1]) {
				return v != nil && fault == nil, fault
			}
			return equal(l, v, item.Items[1], depth-1)
		}
	case *Range:
		n := NumberOf(x)
		if n.IsFloat && n.F == math.Trunc(n.F) && math.Abs(n.F) < 1<<62 {
			n = Number{IsInt: true, I: int64(n.F)}
		}
		if !n.IsInt || n.B != nil || c.Len() == 0 {
			return false, nil
		}
		d := n.I - c.Start
		return d%c.Step == 0 && d/c.Step >= 0 && d/c.Step < int64(c.Len()), nil
	}
	next, _, fault := Iterate(container)
	if fault != nil {
		return false, TypeError("argument of type '%s' is not iterable", container.TypeName())
	}
	for v := next(); v != nil; v = next() {
		if !l.Spend(StepWork) {
			return false, l.Over()
		}
		if Same(v, x) {
			return true, nil
		}
		if eq, fault := equal(l, v, x, depth-1); eq || fault != nil {
			return eq, fault
		}
	}
	return false, nil
}
