package eval

import "github.com/turnpack/turnpack/tokenize/chat/internal/syntax"

// Jinja compiles a template to Python functions; which variable a name means
// follows from that. A template, a macro, a call block, a generation block, a
// recursive loop and the condition of a filtered loop are functions; inside
// them every loop, with, filter and set block is a scope of its own. A scope
// decides once, from the statements it holds, for each name that it mentions,
// whether it starts as a copy of an outer variable, as an input, as a parameter
// or as nothing. This file makes those decisions.

// function is one run-time function: its variables live in one activation.
type function struct {
	parent *function
	vars   map[varKey]*variable
	order  []*variable
	inner  bool // another function can see its variables
}

type varKey struct {
	level int
	name  string
}

type variable struct {
	name string
	fn   *function
	slot int
}

func newFunction(parent *function) *function {
	if parent != nil {
		parent.inner = true
	}
	return &function{parent: parent, vars: map[varKey]*variable{}}
}

// variable returns the variable of a name at a scope level. Sibling scopes of
// one level share it, as they share a Python local.
func (f *function) variable(level int, name string) *variable {
	k := varKey{level, name}
	v := f.vars[k]
	if v == nil {
		v = &variable{name: name, fn: f, slot: len(f.order)}
		f.vars[k] = v
		f.order = append(f.order, v)
	}
	return v
}

type loadKind uint8

const (
	loadParam   loadKind = iota
	loadResolve          // look the name up in the inputs
	loadAlias            // copy an outer variable
	loadNothing
)

// load says how a variable starts when its scope is entered.
type load struct {
	v    *variable
	kind loadKind
	from *variable // of loadAlias
}

// scope is what one scope knows about names.
type scope struct {
	fn     *function
	level  int
	parent *scope
	refs   map[string]*variable
	loads  map[*variable]load
	stores map[string]bool
}

func newScope(fn *function, parent *scope) *scope {
	s := &scope{fn: fn, parent: parent, refs: map[string]*variable{}, loads: map[*variable]load{}, stores: map[string]bool{}}
	if parent != nil {
		s.level = parent.level + 1
	}
	return s
}

func (s *scope) copy() *scope {
	c := newScope(s.fn, s.parent)
	c.level = s.level
	c.update(s)
	return c
}

func (s *scope) update(o *scope) {
	for k, v := range o.refs {
		s.refs[k] = v
	}
	for k, v := range o.loads {
		s.loads[k] = v
	}
	for k := range o.stores {
		s.stores[k] = true
	}
}

func (s *scope) define(name string, kind loadKind, from *variable) *variable {
	v := s.fn.variable(s.level, name)
	s.refs[name] = v
	s.loads[v] = load{v, kind, from}
	return v
}

// find returns the variable a name means here, or nil.
func (s *scope) find(name string) *variable {
	for ; s != nil; s = s.parent {
		if v := s.refs[name]; v != nil {
			return v
		}
	}
	return nil
}

func (s *scope) store(name string) {
	s.stores[name] = true
	if s.refs[name] != nil {
		return
	}
	if outer := s.parent.find(name); outer != nil {
		s.define(name, loadAlias, outer)
		return
	}
	s.define(name, loadNothing, nil)
}

func (s *scope) param(name string) *variable {
	s.stores[name] = true
	return s.define(name, loadParam, nil)
}

func (s *scope) load(name string) {
	if s.find(name) == nil {
		s.define(name, loadResolve, nil)
	}
}

// merge takes over what the branches of an if statement found. A name that only
// branches store starts as the outer variable or as the input, since the branch
// may not be taken.
func (s *scope) merge(branches ...*scope) {
	stores := map[string]bool{}
	for _, b := range branches {
		for name := range b.stores {
			if !s.stores[name] {
				stores[name] = true
			}
		}
	}
	for _, b := range branches {
		s.update(b)
	}
	for name := range stores {
		target := s.find(name)
		if outer := s.parent.find(name); outer != nil {
			s.loads[target] = load{target, loadAlias, outer}
		} else {
			s.loads[target] = load{target, loadResolve, nil}
		}
	}
}

// stmts looks at statements that belong to the scope.
func (s *scope) stmts(body []syntax.Stmt) {
	for _, st := range body {
		s.stmt(st)
	}
}

func (s *scope) stmt(st syntax.Stmt) {
	switch n := st.(type) {
	case *syntax.Output:
		s.exprs(n.Nodes...)
	case *syntax.Set:
		s.exprs(n.Value)
		s.target(n.Target, false)
	case *syntax.SetBlock:
		s.target(n.Target, false)
	case *syntax.If:
		s.exprs(n.Test)
		body, elifs, els := s.copy(), s.copy(), s.copy()
		body.stmts(n.Body)
		for _, e := range n.Elifs {
			elifs.stmt(e)
		}
		els.stmts(n.Else)
		s.merge(body, elifs, els)
	case *syntax.For:
		s.exprs(n.Iter)
	case *syntax.Macro:
		s.store(n.Name)
	case *syntax.CallBlock:
		s.exprs(n.Call)
	case *syntax.FilterBlock:
		s.exprs(n.Filter)
	case *syntax.With:
		s.exprs(n.Values...)
	case *syntax.Load:
		s.exprs(n.Template)
		for _, name := range n.Names {
			s.store(name)
		}
	}
}

// target stores, or with param declares, the names of an assignment target.
func (s *scope) target(e syntax.Expr, param bool) {
	switch n := e.(type) {
	case *syntax.Name:
		if param {
			s.param(n.Name)
		} else {
			s.store(n.Name)
		}
	case *syntax.NSRef:
		s.load(n.Name)
	case *syntax.Tuple:
		for _, item := range n.Items {
			s.target(item, param)
		}
	}
}

func (s *scope) exprs(list ...syntax.Expr) {
	for _, e := range list {
		walkExpr(e, func(n *syntax.Name) {
			if !n.Store {
				s.load(n.Name)
			}
		})
	}
}

// walkExpr calls f for every name of an expression.
func walkExpr(e syntax.Expr, f func(*syntax.Name)) {
	each := func(list ...syntax.Expr) {
		for _, x := range list {
			if x != nil {
				walkExpr(x, f)
			}
		}
	}
	args := func(a *syntax.Args) {
		each(a.List...)
		for _, k := range a.Kw {
			each(k.Value)
		}
		each(a.Star, a.Star2)
	}
	switch n := e.(type) {
	case *syntax.Name:
		f(n)
	case *syntax.Tuple:
		each(n.Items...)
	case *syntax.List:
		each(n.Items...)
	case *syntax.Dict:
		for i := range n.Keys {
			each(n.Keys[i], n.Values[i])
		}
	case *syntax.Cond:
		each(n.Test, n.Then, n.Else)
	case *syntax.Binary:
		each(n.Left, n.Right)
	case *syntax.Logic:
		each(n.Left, n.Right)
	case *syntax.Unary:
		each(n.X)
	case *syntax.Not:
		each(n.X)
	case *syntax.Compare:
		each(n.X)
		each(n.Rest...)
	case *syntax.Concat:
		each(n.Items...)
	case *syntax.Getattr:
		each(n.X)
	case *syntax.Getitem:
		each(n.X, n.Index)
	case *syntax.Slice:
		each(n.Start, n.Stop, n.Step)
	case *syntax.Call:
		each(n.Fn)
		args(&n.Args)
	case *syntax.Filter:
		each(n.X)
		args(&n.Args)
	case *syntax.Test:
		each(n.X)
		args(&n.Args)
	}
}

// walkStmts calls name for every name, and stmt for every statement, of a body
// and everything below it.
func walkStmts(body []syntax.Stmt, name func(*syntax.Name), stmt func(syntax.Stmt)) {
	expr := func(list ...syntax.Expr) {
		for _, e := range list {
			if e != nil {
				walkExpr(e, name)
			}
		}
	}
	sig := func(s *syntax.Signature) {
		for _, p := range s.Params {
			name(p)
		}
		expr(s.Defaults...)
	}
	for _, st := range body {
		stmt(st)
		switch n := st.(type) {
		case *syntax.Output:
			expr(n.Nodes...)
		case *syntax.Set:
			expr(n.Target, n.Value)
		case *syntax.SetBlock:
			expr(n.Target)
			if n.Filter != nil {
				expr(n.Filter)
			}
			walkStmts(n.Body, name, stmt)
		case *syntax.If:
			expr(n.Test)
			walkStmts(n.Body, name, stmt)
			for _, e := range n.Elifs {
				walkStmts([]syntax.Stmt{e}, name, stmt)
			}
			walkStmts(n.Else, name, stmt)
		case *syntax.For:
			expr(n.Target, n.Iter, n.Test)
			walkStmts(n.Body, name, stmt)
			walkStmts(n.Else, name, stmt)
		case *syntax.Macro:
			sig(&n.Signature)
			walkStmts(n.Body, name, stmt)
		case *syntax.CallBlock:
			sig(&n.Signature)
			expr(n.Call)
			walkStmts(n.Body, name, stmt)
		case *syntax.Generation:
			walkStmts(n.Body, name, stmt)
		case *syntax.FilterBlock:
			expr(n.Filter)
			walkStmts(n.Body, name, stmt)
		case *syntax.With:
			expr(n.Targets...)
			expr(n.Values...)
			walkStmts(n.Body, name, stmt)
		case *syntax.Scope:
			expr(n.Autoescape)
			walkStmts(n.Body, name, stmt)
		case *syntax.Block:
			walkStmts(n.Body, name, stmt)
		case *syntax.Load:
			expr(n.Template)
		}
	}
}

// mentions reports which of some special names a body reads without having
// stored them before, in the order of the text.
func mentions(body []syntax.Stmt, special ...string) map[string]bool {
	found := map[string]bool{}
	stored := map[string]bool{}
	walkStmts(body, func(n *syntax.Name) {
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
	}, func(syntax.Stmt) {})
	return found
}
