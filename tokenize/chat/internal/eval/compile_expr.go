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
	if v == nil { // Jinja's analysis ignores the filters of a set block
		c.failPython(pos, "Tried to resolve a name to a reference that was unknown to the frame ('%s')", name)
		f.Load(name)
		v = f.Find(name)
	}
	c.pass.Read(f.Scope, name)
	return &nameExpr{slot: v.Slot, depth: f.Fn.Distance(v), missing: &value.Undefined{Name: value.Lit(name)}}
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
	out.simple = !a.Named()
	return out
}

// markupFilters are the filters that may return Markup for a str.
var markupFilters = map[string]bool{"e": true, "escape": true, "forceescape": true, "safe": true, "map": true}

func (c *compiler) filter(n *syntax.Filter, f frame) *filterExpr {
	out := &filterExpr{pos: n.At(), name: n.Name, fn: builtin.Library.Filters[n.Name], json: n.Name == "tojson", args: c.args(&n.Args, f), x: capturedExpr{}}
	byAttribute := n.Name == "map" && len(n.Args.List) == 0 && n.Args.Star == nil
	c.prog.markup = c.prog.markup || markupFilters[n.Name] && !byAttribute
	if n.X != nil {
		out.x = c.expr(n.X, f)
	}
	if out.fn == nil && !f.soft {
		c.fail(n.At(), "No filter named '%s'.", n.Name)
	}
	return out
}

func (c *compiler) expr(e syntax.Expr, f frame) expr {
	switch n := e.(type) {
	case *syntax.Name:
		return c.name(n.Name, n.At(), f)
	case *syntax.Data:
		return &dataExpr{n.Text}
	case *syntax.Const:
		return &constExpr{constant(n)}
	case *syntax.Tuple:
		return &listExpr{c.exprs(n.Items, f), true}
	case *syntax.List:
		return &listExpr{c.exprs(n.Items, f), false}
	case *syntax.Dict:
		return &dictExpr{n.At(), c.exprs(n.Keys, f), c.exprs(n.Values, f)}
	case *syntax.Cond:
		b := f.branch()
		out := &condExpr{test: c.cond(n.Test, b), then: c.expr(n.Then, b), els: noElse}
		if n.Else != nil {
			out.els = c.expr(n.Else, b)
		}
		return out
	case *syntax.Binary:
		if n.Op == "+" {
			return c.sum(n, f)
		}
		return &binaryExpr{n.At(), n.Op, c.expr(n.Left, f), c.expr(n.Right, f)}
	case *syntax.Logic:
		return &logicExpr{n.Or, c.expr(n.Left, f), c.expr(n.Right, f)}
	case *syntax.Unary:
		return &unaryExpr{n.At(), n.Op, c.expr(n.X, f)}
	case *syntax.Not:
		return &notExpr{c.expr(n.X, f)}
	case *syntax.Compare:
		return &compareExpr{pos: n.At(), x: c.expr(n.X, f), ops: n.Ops, rest: c.exprs(n.Rest, f)}
	case *syntax.Concat:
		return &concatExpr{n.At(), c.exprs(n.Items, f)}
	case *syntax.Getattr:
		c.prog.attrs++
		of := c.aside(c.pass.Counts(n, f.Scope), n.X, f)
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

// sum flattens a + b + c, which is evaluated from left to right.
func (c *compiler) sum(n *syntax.Binary, f frame) expr {
	out := &sumExpr{}
	var flatten func(e syntax.Expr)
	flatten = func(e syntax.Expr) {
		pos := e.At()
		if b, ok := e.(*syntax.Binary); ok && b.Op == "+" {
			flatten(b.Left)
			e = b.Right
		}
		out.terms, out.pos = append(out.terms, c.expr(e, f)), append(out.pos, pos)
	}
	flatten(n)
	return out
}

var noElse = &constExpr{&value.Undefined{Hint: "the inline if-expression evaluated to false and no else section was defined."}}

func constant(n *syntax.Const) value.Value {
	switch n.Kind {
	case syntax.ConstTrue, syntax.ConstFalse:
		return value.NewBool(n.Kind == syntax.ConstTrue)
	case syntax.ConstStr:
		return value.Lit(n.Str)
	case syntax.ConstInt:
		return value.NewBig(n.Int)
	case syntax.ConstFloat:
		return &value.Float{V: n.Float}
	}
	return value.Nil
}
