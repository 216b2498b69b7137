package scope

import (
	"slices"

	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
)

// Idle returns a condition which, once it is true (with not: false), stays so and makes all further passes of the
// loop do nothing, or nil if it finds none. It finds one if the body is a single if statement of these forms, whose
// test consists of outer names, their attributes, constants, not, and, or:
//
//	{% if not ns.found %}…{% endif %}             ns.found
//	{% if ns.open and … %}…{% endif %}            not ns.open
//	{% if ns.stopped %}{% elif … %}…{% endif %}   ns.stopped
//
// Assignments of numbers may come before it, as {% set i = n - loop.index %}: nothing reads them after the pass, and
// if they fail, they fail in the first pass. Without Idle, templates that look for a neighbour of each message take
// quadratic time.
func Idle(n *syntax.For) (test syntax.Expr, not bool) {
	k := len(n.Body) - 1
	if n.Recursive || n.Test != nil || k < 0 || syntax.Mentions(n.Body[k:], "loop")["loop"] {
		return nil, false
	}
	s, ok := n.Body[k].(*syntax.If)
	if !ok {
		return nil, false
	}
	local := map[string]bool{"loop": true}
	syntax.Walk([]syntax.Stmt{n}, func(v *syntax.Name) { local[v.Name] = local[v.Name] || v.Store }, func(syntax.Stmt) {})
	for _, st := range n.Body[:k] {
		set, ok := st.(*syntax.Set)
		if !ok || !counting(set.Value, local) {
			return nil, false
		}
		if _, name := set.Target.(*syntax.Name); !name {
			return nil, false
		}
	}
	test = s.Test
	if len(s.Body) == 0 && unchanging(test, local) {
		return test, false
	}
	if len(s.Elifs) > 0 || len(s.Else) > 0 {
		return nil, false
	}
	var ands []*syntax.Logic // test and …
	for {
		and, ok := test.(*syntax.Logic)
		if !ok || and.Or {
			break
		}
		ands = append(ands, and)
		test = and.Left
	}
	if !unchanging(test, local) {
		return nil, false
	}
	for _, and := range slices.Backward(ands) {
		if !unchanging(and.Right, local) {
			break
		}
		test = and
	}
	return test, true
}

// counting reports whether e has no effects and keeps its type while nothing is assigned: sums and differences of
// outer names, their lengths and the number of the pass.
func counting(e syntax.Expr, local map[string]bool) bool {
	return all(e, func(e syntax.Expr) (ok, operands bool) {
		switch n := e.(type) {
		case *syntax.Const, *syntax.Name:
			return unchanging(n, local), true
		case *syntax.Getattr:
			name, ok := n.X.(*syntax.Name)
			return ok && name.Name == "loop" && (n.Attr == "index" || n.Attr == "index0"), false
		case *syntax.Filter:
			return length(n) && unchanging(n.X, local), false
		case *syntax.Binary:
			return n.Op == "+" || n.Op == "-", true
		}
		return false, false
	})
}

// unchanging reports whether e has no effects and keeps its value while nothing is assigned.
func unchanging(e syntax.Expr, local map[string]bool) bool {
	return all(e, func(e syntax.Expr) (ok, operands bool) {
		switch n := e.(type) {
		case *syntax.Const, *syntax.Not, *syntax.Logic:
			return true, true
		case *syntax.Name:
			return !local[n.Name], true
		case *syntax.Getattr:
			_, ok := n.X.(*syntax.Name)
			return ok, true
		}
		return false, false
	})
}
