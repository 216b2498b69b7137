package syntax

// EachName calls f for every name of an expression.
func EachName(e Expr, f func(*Name)) {
	each := func(list ...Expr) {
		for _, x := range list {
			if x != nil {
				EachName(x, f)
			}
		}
	}
	args := func(a *Args) {
		each(a.List...)
		for _, k := range a.Kw {
			each(k.Value)
		}
		each(a.Star, a.Star2)
	}
	switch n := e.(type) {
	case *Name:
		f(n)
	case *Tuple:
		each(n.Items...)
	case *List:
		each(n.Items...)
	case *Dict:
		for i := range n.Keys {
			each(n.Keys[i], n.Values[i])
		}
	case *Cond:
		each(n.Test, n.Then, n.Else)
	case *Binary:
		each(n.Left, n.Right)
	case *Logic:
		each(n.Left, n.Right)
	case *Unary:
		each(n.X)
	case *Not:
		each(n.X)
	case *Compare:
		each(n.X)
		each(n.Rest...)
	case *Concat:
		each(n.Items...)
	case *Getattr:
		each(n.X)
	case *Getitem:
		each(n.X, n.Index)
	case *Slice:
		each(n.Start, n.Stop, n.Step)
	case *Call:
		each(n.Fn)
		args(&n.Args)
	case *Filter:
		each(n.X)
		args(&n.Args)
	case *Test:
		each(n.X)
		args(&n.Args)
	}
}

// Walk calls name for every name, and stmt for every statement, of a body
// and everything below it.
func Walk(body []Stmt, name func(*Name), stmt func(Stmt)) {
	expr := func(list ...Expr) {
		for _, e := range list {
			if e != nil {
				EachName(e, name)
			}
		}
	}
	sig := func(s *Signature) {
		for _, p := range s.Params {
			name(p)
		}
		expr(s.Defaults...)
	}
	for _, st := range body {
		stmt(st)
		switch n := st.(type) {
		case *Output:
			expr(n.Nodes...)
		case *Set:
			expr(n.Target, n.Value)
		case *SetBlock:
			expr(n.Target)
			if n.Filter != nil {
				expr(n.Filter)
			}
			Walk(n.Body, name, stmt)
		case *If:
			expr(n.Test)
			Walk(n.Body, name, stmt)
			for _, e := range n.Elifs {
				Walk([]Stmt{e}, name, stmt)
			}
			Walk(n.Else, name, stmt)
		case *For:
			expr(n.Target, n.Iter, n.Test)
			Walk(n.Body, name, stmt)
			Walk(n.Else, name, stmt)
		case *Macro:
			sig(&n.Signature)
			Walk(n.Body, name, stmt)
		case *CallBlock:
			sig(&n.Signature)
			expr(n.Call)
			Walk(n.Body, name, stmt)
		case *Generation:
			Walk(n.Body, name, stmt)
		case *FilterBlock:
			expr(n.Filter)
			Walk(n.Body, name, stmt)
		case *With:
			expr(n.Targets...)
			expr(n.Values...)
			Walk(n.Body, name, stmt)
		case *Scope:
			expr(n.Autoescape)
			Walk(n.Body, name, stmt)
		case *Block:
			Walk(n.Body, name, stmt)
		case *Load:
			expr(n.Template)
		}
	}
}

// Mentions reports which of some special names a body reads without having
// stored them before, in the order of the text.
func Mentions(body []Stmt, special ...string) map[string]bool {
	found := map[string]bool{}
	stored := map[string]bool{}
	Walk(body, func(n *Name) {
		for _, s := range special {
			if n.Name != s {
				continue
			}
			if n.Store {
				stored[s] = true
			} else if !stored[s] {
				found[s] = true
			}
		}
	}, func(Stmt) {})
	return found
}
