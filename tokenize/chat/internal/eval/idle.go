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
// Templates that look for a neighbour of each message take quadratic time without it.
func (c *compiler) idle(n *syntax.For, body frame) cond {
	if n.Recursive || n.Test != nil || len(n.Body) != 1 {
		return nil
	}
	s, ok := n.Body[0].(*syntax.If)
	if !ok {
		return nil
	}
	local := map[string]bool{"loop": true}
	walkStmts([]syntax.Stmt{n}, func(v *syntax.Name) { local[v.Name] = local[v.Name] || v.Store }, func(syntax.Stmt) {})
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
