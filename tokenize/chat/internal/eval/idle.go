package eval

import "github.com/turnpack/turnpack/tokenize/chat/internal/syntax"

// idle returns a condition that, once it is true, stays so and makes every further pass of
// the loop do nothing; nil where none is seen. It is seen where the body is one if
// statement of these forms, whose test has outer names, their attributes, constants, not,
// and, or:
//
//	{% if not ns.found %}…{% endif %}             ns.found
//	{% if ns.open and … %}…{% endif %}            not ns.open
//	{% if ns.stopped %}{% elif … %}…{% endif %}   ns.stopped
//
// There may be assignments of numbers before it, as {% set i = n - loop.index %}: they are
// nothing to anybody once the pass is over, and fail in the first pass if in any.
// Templates that look for a neighbour of each message take quadratic time without it.
func (c *compiler) idle(n *syntax.For, body frame) cond {
	k := len(n.Body) - 1
	if n.Recursive || n.Test != nil || k < 0 || syntax.Mentions(n.Body[k:], "loop")["loop"] {
		return nil
	}
	s, ok := n.Body[k].(*syntax.If)
	if !ok {
		return nil
	}
	local := map[string]bool{"loop": true}
	syntax.Walk([]syntax.Stmt{n}, func(v *syntax.Name) { local[v.Name] = local[v.Name] || v.Store }, func(syntax.Stmt) {})
	for _, st := range n.Body[:k] {
		set, ok := st.(*syntax.Set)
		if !ok || !counting(set.Value, local) {
			return nil
		}
		if _, name := set.Target.(*syntax.Name); !name {
			return nil
		}
	}
	test := s.Test
	if len(s.Body) == 0 && unchanging(test, local) {
		return condition(c.expr(test, body))
	}
	for {
		if unchanging(test, local) {
			break
		}
		and, ok := test.(*syntax.Logic)
		if !ok || and.Or {
			return nil
		}
		test = and.Left
	}
	if len(s.Elifs) > 0 || len(s.Else) > 0 {
		return nil
	}
	return &notExpr{condition(c.expr(test, body))}
}

// counting reports whether e has no effect and is of one type for as long as nothing is
// assigned: outer names, their lengths and the number of the pass, added and subtracted.
func counting(e syntax.Expr, local map[string]bool) bool {
	switch n := e.(type) {
	case *syntax.Const, *syntax.Name:
		return unchanging(e, local)
	case *syntax.Getattr:
		name, ok := n.X.(*syntax.Name)
		return ok && name.Name == "loop" && (n.Attr == "index" || n.Attr == "index0")
	case *syntax.Filter:
		return n.Name == "length" && n.X != nil && len(n.Args.List)+len(n.Args.Kw) == 0 && n.Args.Star == nil && n.Args.Star2 == nil && unchanging(n.X, local)
	case *syntax.Binary:
		return (n.Op == "+" || n.Op == "-") && counting(n.Left, local) && counting(n.Right, local)
	}
	return false
}

// unchanging reports whether e has the same value, and no effect, for as long as nothing
// is assigned.
func unchanging(e syntax.Expr, local map[string]bool) bool {
	switch n := e.(type) {
	case *syntax.Const:
		return true
	case *syntax.Name:
		return !local[n.Name]
	case *syntax.Getattr:
		name, ok := n.X.(*syntax.Name)
		return ok && !local[name.Name]
	case *syntax.Not:
		return unchanging(n.X, local)
	case *syntax.Logic:
		return unchanging(n.Left, local) && unchanging(n.Right, local)
	}
	return false
}
