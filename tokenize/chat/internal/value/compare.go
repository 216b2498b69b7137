package value

import (
	"fmt"
	"math"
	"math/big"
	"strings"
)

func identity(v Value) string { return fmt.Sprintf("%p", v) }

// Same is Python's "is". Small integers and equal strings of the template are
// one object in CPython; here equal ones always are.
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

// Equal is Python's ==. depth bounds the nesting.
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
		if !ok || len(x.S) != len(y.S) {
			return false, nil
		}
		l.Scan(len(x.S))
		return x.S == y.S, nil
	case *None:
		_, ok := b.(*None)
		return ok, nil
	case *Undefined:
		_, ok := b.(*Undefined)
		return ok, nil
	case *Bool, *Int, *Float:
		if i, ok := a.(*Int); ok {
			if j, ok := b.(*Int); ok && i.Big == nil && j.Big == nil {
				return i.V == j.V, nil
			}
		}
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
		for i := range x.Items {
			if l.Spend(2); Same(x.Items[i], y.Items[i]) {
				continue
			}
			if eq, fault := equal(l, x.Items[i], y.Items[i], depth-1); !eq || fault != nil {
				return false, fault
			}
		}
		return true, nil
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || x.Len() != y.Len() {
			return false, nil
		}
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
	case *Range:
		y, ok := b.(*Range)
		if !ok || x.Len() != y.Len() {
			return false, nil
		}
		n := x.Len()
		return n == 0 || (x.Start == y.Start && (n == 1 || x.Step == y.Step)), nil
	case *Bytes:
		y, ok := b.(*Bytes)
		if !ok || len(x.B) != len(y.B) {
			return false, nil
		}
		l.Scan(len(x.B))
		return x.B == y.B, nil
	case *View:
		y, ok := b.(*View)
		if !ok || x.Kind == "dict_values" || y.Kind == "dict_values" || x.D.Len() != y.D.Len() {
			return a == b, nil
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

func compareNumbers(n, m Number) (c int, ordered bool) {
	switch {
	case n.IsInt && m.IsInt:
		if n.B == nil && m.B == nil {
			switch {
			case n.I < m.I:
				return -1, true
			case n.I > m.I:
				return 1, true
			}
			return 0, true
		}
		return n.Big().Cmp(m.Big()), true
	case n.IsFloat && m.IsFloat:
		switch {
		case n.F < m.F:
			return -1, true
		case n.F > m.F:
			return 1, true
		}
		return 0, n.F == m.F
	case n.IsFloat:
		c, ordered = compareNumbers(m, n)
		return -c, ordered
	}
	if math.IsNaN(m.F) {
		return 0, false
	}
	if math.IsInf(m.F, 0) {
		if m.F > 0 {
			return -1, true
		}
		return 1, true
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
		for i := 0; i < len(x.Items) && i < len(y.Items); i++ {
			if l.Spend(2); Same(x.Items[i], y.Items[i]) {
				continue
			}
			eq, fault := equal(l, x.Items[i], y.Items[i], depth-1)
			if fault != nil {
				return false, fault
			}
			if !eq {
				return compare(l, op, x.Items[i], y.Items[i], depth-1)
			}
		}
		return decide(op, len(x.Items)-len(y.Items)), nil
	}
	return false, TypeError("'%s' not supported between instances of '%s' and '%s'", op, a.TypeName(), b.TypeName())
}

// decide applies op to the sign of a comparison.
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

// Contains is Python's "x in container".
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
