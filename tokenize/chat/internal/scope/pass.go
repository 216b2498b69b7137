package scope

import "github.com/turnpack/turnpack/tokenize/chat/internal/syntax"

// Pass is the body of a loop while it is compiled: what it does follows from its item, its
// index, inputs, and conditions about what is outside, unless it is Open.
type Pass struct {
	*Scope
	Open bool // it reads what is outside in another way
}

// reads says of a name that is read at s whether the pass takes part in its value, or
// alone knows it, and whether something outside does that can differ between runs.
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
		case s.Loads[v].Kind != Alias:
			resolved := s.Loads[v].Kind == Resolve
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
	return s == p.Scope && v != nil && s.Loads[v].Kind == Param
}

// Read notes that a name is read at s; p may be nil.
func (p *Pass) Read(s *Scope, name string) {
	if p != nil && !p.Open {
		_, p.Open = p.reads(s, name)
	}
}

// maxSettled is the size of a condition that is asked again.
const maxSettled = 32

// Asks reports whether e is a condition about what is outside in which the pass takes no
// part. To ask it twice is as good as once.
func (p *Pass) Asks(e syntax.Expr, s *Scope) bool {
	left := maxSettled
	if s.Fn != p.Fn || !settled(e, &left) {
		return false
	}
	alone, about := true, false
	syntax.EachName(e, func(n *syntax.Name) {
		own, outer := p.reads(s, n.Name)
		alone, about = alone && !own, about || outer
	})
	return alone && about
}

func settled(e syntax.Expr, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	switch n := e.(type) {
	case *syntax.Const, *syntax.Name:
		return true
	case *syntax.Getattr:
		return settled(n.X, left)
	case *syntax.Getitem:
		return settled(n.X, left) && settled(n.Index, left)
	case *syntax.Not:
		return settled(n.X, left)
	case *syntax.Logic:
		return settled(n.Left, left) && settled(n.Right, left)
	case *syntax.Binary:
		return settled(n.Left, left) && settled(n.Right, left)
	case *syntax.Compare: // "in" may use an iterator up
		return len(n.Ops) == 1 && n.Ops[0] != "in" && n.Ops[0] != "notin" && settled(n.X, left) && settled(n.Rest[0], left)
	case *syntax.Filter:
		return n.Name == "length" && n.X != nil && len(n.Args.List)+len(n.Args.Kw) == 0 && n.Args.Star == nil && n.Args.Star2 == nil && settled(n.X, left)
	}
	return false
}
