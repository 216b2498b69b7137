package scope

import "github.com/turnpack/turnpack/tokenize/chat/internal/syntax"

// Pass is the body of a loop being compiled. Unless it is Open, its effect depends only on its item, its index,
// inputs, and conditions about what is outside.
type Pass struct {
	*Scope
	Open bool // it depends on what is outside in another way
}

// reads classifies a name read at s: own reports whether the pass contributes to its value or is alone in seeing it,
// outer whether something outside contributes that may differ between runs.
func (p *Pass) reads(s *Scope, name string) (own, outer bool) {
	varies := name == "messages" || name == "strftime_now"
	inside := true
	for ; s != nil; s = s.Parent {
		v := s.refs[name]
		switch {
		case !inside:
			varies = varies || s.Stores[name]
		case v == nil:
		case s == p.Scope && name == "loop":
			return own, true
		case s.loads[v].kind != Alias:
			resolved := s.loads[v].kind == Resolve
			return own || s.Stores[name] || s != p.Scope, resolved && varies
		default:
			own = true
		}
		inside = inside && s != p.Scope
	}
	return own, varies
}

// Counts reports whether e is the number of the pass.
func (p *Pass) Counts(e *syntax.Getattr, s *Scope) bool {
	name, ok := e.X.(*syntax.Name)
	if p == nil || !ok || name.Name != "loop" || e.Attr != "index" && e.Attr != "index0" && e.Attr != "first" {
		return false
	}
	for s != p.Scope && s.refs["loop"] == nil && s.Parent != nil {
		s = s.Parent
	}
	v := s.refs["loop"]
	return s == p.Scope && v != nil && s.loads[v].kind == Param
}

// Read records that a name is read at s; p may be nil.
func (p *Pass) Read(s *Scope, name string) {
	if p != nil && !p.Open {
		_, p.Open = p.reads(s, name)
	}
}

// maxSettled is the maximum number of nodes of a condition that is evaluated again.
const maxSettled = 32

// Asks reports whether e is a condition about what is outside that does not involve the pass. It can be evaluated
// again without effect.
func (p *Pass) Asks(e syntax.Expr, s *Scope) bool {
	if s.Fn != p.Fn || !settled(e) {
		return false
	}
	alone, about := true, false
	syntax.EachName(e, func(n *syntax.Name) {
		own, outer := p.reads(s, n.Name)
		alone, about = alone && !own, about || outer
	})
	return alone && about
}

// settled reports whether e is small and has no effects.
func settled(e syntax.Expr) bool {
	left := maxSettled
	return all(e, func(e syntax.Expr) (ok, operands bool) {
		left--
		switch n := e.(type) {
		case *syntax.Const, *syntax.Name, *syntax.Getattr, *syntax.Getitem, *syntax.Not, *syntax.Logic, *syntax.Binary:
			ok = true
		case *syntax.Compare: // "in" may consume an iterator
			ok = len(n.Ops) == 1 && n.Ops[0] != "in" && n.Ops[0] != "notin"
		case *syntax.Filter:
			ok = length(n)
		}
		return ok && left >= 0, true
	})
}

// length reports whether n is the filter length without arguments.
func length(n *syntax.Filter) bool { return n.Name == "length" && n.X != nil && n.Args.None() }

// all reports whether f returns ok for e and, where f returns operands, for all operands of the expression.
func all(e syntax.Expr, f func(syntax.Expr) (ok, operands bool)) bool {
	all := true
	syntax.Inspect(e, func(e syntax.Expr) (operands bool) {
		if all {
			all, operands = f(e)
		}
		return all && operands
	})
	return all
}
