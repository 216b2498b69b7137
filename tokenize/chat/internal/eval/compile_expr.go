package eval

import (
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/builtin"
	"github.com/turnpack/turnpack/tokenize/chat/internal/object"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

func (c *compiler) name(name string, pos syntax.Pos, f frame) *nameExpr {
	v := f.Find(name)
	if v == nil { // Jinja's analysis does not look at the filters of a set block
		c.failPython(pos, "Tried to resolve a name to a reference that was unknown to the frame ('%s')", name)
		f.Load(name)
		v = f.Find(name)
	}
	c.pass.Read(f.Scope, name)
	return &nameExpr{slot: v.Slot, depth: distance(f.Fn, v.Fn), missing: &value.Undefined{Name: value.Lit(name)}}
}

func (c *compiler) exprs(list []syntax.Expr, f frame) []expr {
	out := make([]expr, len(list))
	for i, e := range list {
		out[i] = c.expr(e, f)
	}
	return out
}

func (c *compiler) args(a *syntax.Args, f frame) argList {
	out := argList{pos: c.exprs(a.List, f)}
	for _, k := range a.Kw {
		out.names = append(out.names, k.Name)
		out.kw = append(out.kw, c.expr(k.Value, f))
	}
	if a.Star != nil {
		out.star = c.expr(a.Star, f)
	}
	if a.Star2 != nil {
		out.star2 = c.expr(a.Star2, f)
	}
	out.simple = len(out.kw) == 0 && out.star == nil && out.star2 == nil
	return out
}

func (c *compiler) filter(n *syntax.Filter, f frame) *filterExpr {
	c.nodes++
	out := &filterExpr{pos: n.At(), name: n.Name, fn: builtin.Library.Filters[n.Name], json: n.Name == "tojson" && n.X != nil, args: c.args(&n.Args, f)}
	c.prog.markup = c.prog.markup || makesMarkup(n)
	if n.X != nil {
		if x, ok := n.X.(*syntax.Filter); ok {
			out.x = c.filter(x, f)
		} else {
			out.x = c.expr(n.X, f)
		}
	}
	if out.fn == nil && !f.soft {
		c.fail(n.At(), "No filter named '%s'.", n.Name)
	}
	return out
}

// makesMarkup reports whether a filter may give Markup for a str.
func makesMarkup(n *syntax.Filter) bool {
	name := n.Name
	if name == "map" && len(n.Args.List) > 0 {
		k, ok := n.Args.List[0].(*syntax.Const)
		if !ok {
			return true
		}
		name = k.Str
	} else if name == "map" && n.Args.Star != nil {
		return true
	}
	switch name {
	case "e", "escape", "forceescape", "safe":
		return true
	}
	return false
}

func (c *compiler) expr(e syntax.Expr, f frame) expr {
	c.nodes++
	switch n := e.(type) {
	case *syntax.Name:
		return c.name(n.Name, n.At(), f)
	case *syntax.Const:
		c.nodes += len(n.Str) / bytesANode
		return &constExpr{constant(n)}
	case *syntax.Tuple:
		return &listExpr{c.exprs(n.Items, f), true}
	case *syntax.List:
		return &listExpr{c.exprs(n.Items, f), false}
	case *syntax.Dict:
		return &dictExpr{n.At(), c.exprs(n.Keys, f), c.exprs(n.Values, f)}
	case *syntax.Cond:
		b := f.branch()
		out := &condExpr{test: c.cond(n.Test, b), then: c.expr(n.Then, b)}
		if n.Else != nil {
			out.els = c.expr(n.Else, b)
		} else {
			out.els = &constExpr{&value.Undefined{Hint: "the inline if-expression evaluated to false and no else section was defined."}}
		}
		return out
	case *syntax.Binary:
		if n.Op == "+" {
			return c.sum(n, f)
		}
		return &binaryExpr{n.At(), n.Op, c.expr(n.Left, f), c.expr(n.Right, f)}
	case *syntax.Logic:
		c.nodes += 2 // a long chain is as many calls deep
		l, r := c.expr(n.Left, f), c.expr(n.Right, f)
		return &logicExpr{n.Or, l, r, condition(l), condition(r)}
	case *syntax.Unary:
		return &unaryExpr{n.At(), n.Op, c.expr(n.X, f)}
	case *syntax.Not:
		c.nodes++
		return &notExpr{condition(c.expr(n.X, f))}
	case *syntax.Compare:
		return &compareExpr{pos: n.At(), x: c.expr(n.X, f), ops: n.Ops, rest: c.exprs(n.Rest, f)}
	case *syntax.Concat:
		return &concatExpr{n.At(), c.exprs(n.Items, f)}
	case *syntax.Getattr:
		c.nodes += len(n.Attr) / bytesANode
		c.prog.attrs++
		var of expr
		c.aside(c.pass.Counts(n, f.Scope), func() { of = c.expr(n.X, f) })
		return &attrExpr{pos: n.At(), x: of, name: n.Attr, key: value.Lit(n.Attr), near: c.prog.attrs - 1, loop: loopAttrs[n.Attr],
			plain: !object.IsDictAttr(n.Attr) && !strings.HasPrefix(n.Attr, "_")}
	case *syntax.Getitem:
		if s, ok := n.Index.(*syntax.Slice); ok {
			out := &sliceExpr{pos: n.At(), x: c.expr(n.X, f)}
			for i, part := range []syntax.Expr{s.Start, s.Stop, s.Step} {
				if part != nil {
					out.parts[i] = c.expr(part, f)
				}
			}
			return out
		}
		return &itemExpr{pos: n.At(), x: c.expr(n.X, f), index: c.expr(n.Index, f)}
	case *syntax.Slice:
		c.failPython(n.At(), "invalid syntax")
	case *syntax.Call:
		out := &callExpr{pos: n.At(), fn: c.expr(n.Fn, f), args: c.args(&n.Args, f)}
		if a, ok := out.fn.(*attrExpr); ok {
			out.method = a
		}
		return out
	case *syntax.Filter:
		return c.filter(n, f)
	case *syntax.Test:
		out := &testExpr{pos: n.At(), name: n.Name, fn: builtin.Library.Tests[n.Name], x: c.expr(n.X, f), args: c.args(&n.Args, f)}
		if out.fn == nil && !f.soft {
			c.fail(n.At(), "No test named '%s'.", n.Name)
		}
		return out
	}
	return &constExpr{value.Nil}
}

// sum flattens a + b + c, which is evaluated from the left. Neighbouring
// constant strings become one: whatever stands before them, adding them one by
// one gives the same text or the same failure.
func (c *compiler) sum(n *syntax.Binary, f frame) expr {
	out := &sumExpr{}
	add := func(e expr, pos syntax.Pos) {
		if k := len(out.terms); k > 0 {
			if a, b := constStr(out.terms[k-1]), constStr(e); a != nil && b != nil && len(a.S)+len(b.S) <= maxJoined {
				out.terms[k-1] = &constExpr{value.Lit(a.S + b.S)}
				return
			}
		}
		out.terms = append(out.terms, e)
		out.pos = append(out.pos, pos)
	}
	var flatten func(e syntax.Expr)
	flatten = func(e syntax.Expr) {
		if b, ok := e.(*syntax.Binary); ok && b.Op == "+" {
			flatten(b.Left)
			add(c.expr(b.Right, f), b.At())
			return
		}
		add(c.expr(e, f), e.At())
	}
	flatten(n)
	if len(out.terms) == 1 {
		return out.terms[0]
	}
	out.texts = make([]string, len(out.terms))
	for i, t := range out.terms {
		if s := constStr(t); s != nil {
			out.texts[i] = s.S
		}
	}
	return out
}

// constStr is the string of a constant, or nil.
func constStr(e expr) *value.Str {
	if k, ok := e.(*constExpr); ok {
		s, _ := k.v.(*value.Str)
		return s
	}
	return nil
}

func constant(n *syntax.Const) value.Value {
	switch n.Kind {
	case syntax.ConstTrue:
		return value.True
	case syntax.ConstFalse:
		return value.False
	case syntax.ConstStr:
		return value.Lit(n.Str)
	case syntax.ConstInt:
		return value.NewBig(n.Int)
	case syntax.ConstFloat:
		return &value.Float{V: n.Float}
	}
	return value.Nil
}
