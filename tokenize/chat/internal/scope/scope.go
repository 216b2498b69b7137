// Package scope resolves the names of a template.
//
// Jinja compiles a template to Python functions, and this determines the variable that a name means. A template, a
// macro, a call block, a generation block, a recursive loop and the condition of a filtered loop are functions;
// inside them every loop, with, filter and set block is its own scope. For each name that a scope mentions, its
// statements decide once whether the name starts as a copy of an outer variable, as an input, as a parameter or
// undefined. This package makes those decisions. It also finds out what a pass of a loop reads from outside and when
// further passes do nothing: see Pass and Idle.
package scope

import (
	"maps"

	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
)

// Function is one run-time function; an activation holds its variables.
type Function struct {
	Parent *Function
	vars   map[varKey]*Variable
	Order  []*Variable
}

type varKey struct {
	level int
	name  string
}

// Variable is a variable of a function.
type Variable struct {
	Name string
	Fn   *Function
	Slot int
}

// NewFunction returns a function inside parent, which may be nil.
func NewFunction(parent *Function) *Function {
	return &Function{Parent: parent, vars: map[varKey]*Variable{}}
}

// Distance returns the number of functions to go up from f to that of v.
func (f *Function) Distance(v *Variable) (n int) {
	for ; f != v.Fn; f = f.Parent {
		n++
	}
	return n
}

// Global returns the variable with this name in the function's outermost scope, or nil.
func (f *Function) Global(name string) *Variable { return f.vars[varKey{0, name}] }

// variable returns the variable with this name at a scope level. Sibling scopes of one level share it, as they share
// a Python local.
func (f *Function) variable(level int, name string) *Variable {
	k := varKey{level, name}
	v := f.vars[k]
	if v == nil {
		v = &Variable{Name: name, Fn: f, Slot: len(f.Order)}
		f.vars[k] = v
		f.Order = append(f.Order, v)
	}
	return v
}

// Kind is how a variable is initialised.
type Kind uint8

const (
	Param   Kind = iota
	Resolve      // look the name up in the inputs
	Alias        // copy an outer variable
	Nothing
)

// load is how a variable is initialised when its scope is entered.
type load struct {
	kind Kind
	from *Variable // for Alias
}

// Start is how a variable is initialised when its scope is entered.
type Start struct {
	Name  string
	Slot  int
	Kind  Kind
	Depth int // for Alias: functions to go up
	From  int // for Alias: the slot there; for Resolve: free for the caller
}

// Scope holds the names of one scope.
type Scope struct {
	Fn     *Function
	level  int
	Parent *Scope
	refs   map[string]*Variable
	loads  map[*Variable]load
	Stores map[string]bool
}

// New returns a scope of fn inside parent, which may be nil.
func New(fn *Function, parent *Scope) *Scope {
	s := &Scope{Fn: fn, Parent: parent, refs: map[string]*Variable{}, loads: map[*Variable]load{}, Stores: map[string]bool{}}
	if parent != nil {
		s.level = parent.level + 1
	}
	return s
}

func (s *Scope) copy() *Scope {
	c := New(s.Fn, s.Parent)
	c.level = s.level
	c.update(s)
	return c
}

func (s *Scope) update(o *Scope) {
	maps.Copy(s.refs, o.refs)
	maps.Copy(s.loads, o.loads)
	maps.Copy(s.Stores, o.Stores)
}

func (s *Scope) define(name string, kind Kind, from *Variable) *Variable {
	v := s.Fn.variable(s.level, name)
	s.refs[name] = v
	s.loads[v] = load{kind, from}
	return v
}

// Starts returns how the variables of the scope except parameters are initialised, in a fixed order.
func (s *Scope) Starts() (out []Start) {
	for _, v := range s.Fn.Order {
		l, ok := s.loads[v]
		if !ok || l.kind == Param {
			continue
		}
		start := Start{Name: v.Name, Slot: v.Slot, Kind: l.kind}
		if l.kind == Alias {
			start.Depth, start.From = s.Fn.Distance(l.from), l.from.Slot
		}
		out = append(out, start)
	}
	return out
}

// Slots returns the slots of all variables of the scope, to clear them at its end.
func (s *Scope) Slots() (out []int) {
	for _, v := range s.Fn.Order {
		if _, ok := s.loads[v]; ok {
			out = append(out, v.Slot)
		}
	}
	return out
}

// Find returns the variable that a name means in this scope, or nil.
func (s *Scope) Find(name string) *Variable {
	for ; s != nil; s = s.Parent {
		if v := s.refs[name]; v != nil {
			return v
		}
	}
	return nil
}

func (s *Scope) store(name string) {
	s.Stores[name] = true
	if s.refs[name] != nil {
		return
	}
	if outer := s.Parent.Find(name); outer != nil {
		s.define(name, Alias, outer)
		return
	}
	s.define(name, Nothing, nil)
}

// Param declares a parameter.
func (s *Scope) Param(name string) *Variable {
	s.Stores[name] = true
	return s.define(name, Param, nil)
}

// Load declares a name without a variable as an input.
func (s *Scope) Load(name string) {
	if s.Find(name) == nil {
		s.define(name, Resolve, nil)
	}
}

// merge adopts the names found in the branches of an if statement. A name that only branches store starts as the
// outer variable or as the input, since the branch may not be taken.
func (s *Scope) merge(branches ...*Scope) {
	stores := map[string]bool{}
	for _, b := range branches {
		for name := range b.Stores {
			if !s.Stores[name] {
				stores[name] = true
			}
		}
	}
	for _, b := range branches {
		s.update(b)
	}
	for name := range stores {
		target := s.Find(name)
		if outer := s.Parent.Find(name); outer != nil {
			s.loads[target] = load{Alias, outer}
		} else {
			s.loads[target] = load{Resolve, nil}
		}
	}
}

// Stmts collects the names of statements in the scope.
func (s *Scope) Stmts(body []syntax.Stmt) {
	for _, st := range body {
		s.stmt(st)
	}
}

func (s *Scope) stmt(st syntax.Stmt) {
	switch n := st.(type) {
	case *syntax.Output:
		s.Exprs(n.Nodes...)
	case *syntax.Set:
		s.Exprs(n.Value)
		s.Target(n.Target, false)
	case *syntax.SetBlock:
		s.Target(n.Target, false)
	case *syntax.If:
		s.Exprs(n.Test)
		body, elifs, els := s.copy(), s.copy(), s.copy()
		body.Stmts(n.Body)
		for _, e := range n.Elifs {
			elifs.stmt(e)
		}
		els.Stmts(n.Else)
		s.merge(body, elifs, els)
	case *syntax.For:
		s.Exprs(n.Iter)
	case *syntax.Macro:
		s.store(n.Name)
	case *syntax.CallBlock:
		s.Exprs(n.Call)
	case *syntax.FilterBlock:
		s.Exprs(n.Filter)
	case *syntax.With:
		s.Exprs(n.Values...)
	case *syntax.Load:
		s.Exprs(n.Template)
		for _, name := range n.Names {
			s.store(name)
		}
	}
}

// Target stores the names of an assignment target or, with param, declares them as parameters.
func (s *Scope) Target(e syntax.Expr, param bool) {
	switch n := e.(type) {
	case *syntax.Name:
		if param {
			s.Param(n.Name)
		} else {
			s.store(n.Name)
		}
	case *syntax.NSRef:
		s.Load(n.Name)
	case *syntax.Tuple:
		for _, item := range n.Items {
			s.Target(item, param)
		}
	}
}

// Exprs collects the names of expressions in the scope.
func (s *Scope) Exprs(list ...syntax.Expr) {
	for _, e := range list {
		syntax.EachName(e, func(n *syntax.Name) {
			if !n.Store {
				s.Load(n.Name)
			}
		})
	}
}
