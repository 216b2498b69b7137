package syntax

import "slices"

// operands returns the direct subexpressions of e; some may be nil.
func operands(e Expr) []Expr {
	switch n := e.(type) {
	case *Tuple:
		return n.Items
	case *List:
		return n.Items
	case *Dict:
		return append(append([]Expr{}, n.Keys...), n.Values...)
	case *Cond:
		return []Expr{n.Test, n.Then, n.Else}
	case *Binary:
		return []Expr{n.Left, n.Right}
	case *Logic:
		return []Expr{n.Left, n.Right}
	case *Unary:
		return []Expr{n.X}
	case *Not:
		return []Expr{n.X}
	case *Compare:
		return append([]Expr{n.X}, n.Rest...)
	case *Concat:
		return n.Items
	case *Getattr:
		return []Expr{n.X}
	case *Getitem:
		return []Expr{n.X, n.Index}
	case *Slice:
		return []Expr{n.Start, n.Stop, n.Step}
	case *Call:
		return n.Args.after(n.Fn)
	case *Filter:
		return n.Args.after(n.X)
	case *Test:
		return n.Args.after(n.X)
	}
	return nil
}

func (a *Args) after(x Expr) []Expr {
	out := append([]Expr{x}, a.List...)
	for _, k := range a.Kw {
		out = append(out, k.Value)
	}
	return append(out, a.Star, a.Star2)
}

// Inspect calls f for e unless it is nil and, if f returns true, for all direct subexpressions in the same way.
func Inspect(e Expr, f func(Expr) bool) {
	if e == nil || !f(e) {
		return
	}
	for _, x := range operands(e) {
		Inspect(x, f)
	}
}

// EachName calls f for every name of an expression.
func EachName(e Expr, f func(*Name)) {
	Inspect(e, func(e Expr) bool {
		if n, ok := e.(*Name); ok {
			f(n)
		}
		return true
	})
}

// Parts returns the expressions of a statement, some of them nil, and the statements in it, in source order. An elif
// is an if statement inside its if statement.
func Parts(s Stmt) (exprs []Expr, bodies [][]Stmt) {
	switch n := s.(type) {
	case *Output:
		return n.Nodes, nil
	case *Set:
		return []Expr{n.Target, n.Value}, nil
	case *SetBlock:
		exprs = []Expr{n.Target}
		if n.Filter != nil {
			exprs = append(exprs, n.Filter)
		}
		return exprs, [][]Stmt{n.Body}
	case *If:
		bodies = [][]Stmt{n.Body}
		for _, e := range n.Elifs {
			bodies = append(bodies, []Stmt{e})
		}
		return []Expr{n.Test}, append(bodies, n.Else)
	case *For:
		return []Expr{n.Target, n.Iter, n.Test}, [][]Stmt{n.Body, n.Else}
	case *Macro:
		return n.Signature.exprs(), [][]Stmt{n.Body}
	case *CallBlock:
		return append(n.Signature.exprs(), n.Call), [][]Stmt{n.Body}
	case *Generation:
		return nil, [][]Stmt{n.Body}
	case *FilterBlock:
		return []Expr{n.Filter}, [][]Stmt{n.Body}
	case *With:
		return append(append([]Expr{}, n.Targets...), n.Values...), [][]Stmt{n.Body}
	case *Scope:
		return []Expr{n.Autoescape}, [][]Stmt{n.Body}
	case *Block:
		return nil, [][]Stmt{n.Body}
	case *Load:
		return []Expr{n.Template}, nil
	}
	return nil, nil
}

func (s *Signature) exprs() (out []Expr) {
	for _, p := range s.Params {
		out = append(out, p)
	}
	return append(out, s.Defaults...)
}

// Walk calls name for every name and stmt for every statement of a body, at any depth.
func Walk(body []Stmt, name func(*Name), stmt func(Stmt)) {
	for _, s := range body {
		stmt(s)
		exprs, bodies := Parts(s)
		for _, e := range exprs {
			EachName(e, name)
		}
		for _, b := range bodies {
			Walk(b, name, stmt)
		}
	}
}

// Mentions reports which of the special names a body reads before it assigns them, in source order.
func Mentions(body []Stmt, special ...string) map[string]bool {
	found := map[string]bool{}
	stored := map[string]bool{}
	Walk(body, func(n *Name) {
		if n.Store {
			stored[n.Name] = true
		} else if !stored[n.Name] && slices.Contains(special, n.Name) {
			found[n.Name] = true
		}
	}, func(Stmt) {})
	return found
}
