package syntax

import (
	"slices"
	"strings"
)

func (p *parser) expression() Expr { return p.cond() }

func (p *parser) cond() Expr {
	if !p.enter() {
		return nil
	}
	defer func() { p.depth-- }()
	pos := p.cur().pos
	e := p.or()
	for p.skipName("if") {
		test := p.or()
		var els Expr
		if p.skipName("else") {
			els = p.cond()
		}
		e = &Cond{node{pos}, test, e, els}
		pos = p.cur().pos
	}
	return e
}

func (p *parser) or() Expr { return p.logic("or", p.and) }

func (p *parser) and() Expr { return p.logic("and", p.not) }

func (p *parser) logic(op string, sub func() Expr) Expr {
	left := sub()
	for p.isName(op) {
		pos := p.next().pos
		left = &Logic{node{pos}, op == "or", left, sub()}
	}
	return left
}

func (p *parser) not() Expr {
	if p.isName("not") {
		if !p.enter() {
			return nil
		}
		defer func() { p.depth-- }()
		pos := p.next().pos
		return &Not{node{pos}, p.not()}
	}
	return p.compare()
}

func (p *parser) compare() Expr {
	x := p.sum()
	var c *Compare
	for {
		var op string
		switch k := p.cur().kind; {
		case k == "==" || k == "!=" || k == "<" || k == "<=" || k == ">" || k == ">=":
			op = string(k)
		case p.isName("in"):
			op = "in"
		case p.isName("not") && p.lookName("in"):
			p.next()
			op = "notin"
		default:
			if c == nil {
				return x
			}
			return c
		}
		at := p.next().pos
		if c == nil {
			c = &Compare{node: node{at}, X: x}
		}
		c.Ops = append(c.Ops, op)
		c.Rest = append(c.Rest, p.sum())
	}
}

// binary parses a left-associative chain of ops whose operands sub parses.
func (p *parser) binary(sub func() Expr, ops ...kind) Expr {
	left := sub()
	for slices.Contains(ops, p.cur().kind) {
		op := p.next()
		left = &Binary{node{op.pos}, string(op.kind), left, sub()}
	}
	return left
}

func (p *parser) sum() Expr { return p.binary(p.concat, "+", "-") }

func (p *parser) concat() Expr {
	pos := p.cur().pos
	first := p.product()
	if !p.is("~") {
		return first
	}
	c := &Concat{node{pos}, []Expr{first}}
	for p.skipIf("~") {
		c.Items = append(c.Items, p.product())
	}
	return c
}

func (p *parser) product() Expr { return p.binary(p.power, "*", "/", "//", "%") }

func (p *parser) power() Expr {
	return p.binary(func() Expr { return p.unary(true) }, "**")
}

func (p *parser) unary(withFilter bool) Expr {
	if !p.enter() {
		return nil
	}
	defer func() { p.depth-- }()
	var e Expr
	switch t := *p.cur(); t.kind {
	case "-", "+":
		p.next()
		e = &Unary{node{t.pos}, string(t.kind), p.unary(false)}
	default:
		e = p.primary(false)
	}
	e = p.postfix(e)
	if withFilter {
		e = p.filterExpr(e)
	}
	return e
}

var constants = map[string]ConstKind{"true": ConstTrue, "True": ConstTrue, "false": ConstFalse, "False": ConstFalse, "none": ConstNone, "None": ConstNone}

func (p *parser) primary(namespace bool) Expr {
	t := *p.cur()
	n := node{t.pos}
	switch t.kind {
	case tokName:
		p.next()
		if kind, ok := constants[t.text]; ok {
			return &Const{node: n, Kind: kind}
		}
		if namespace && p.skipIf(".") {
			return &NSRef{n, t.text, p.expect(tokName).text}
		}
		return &Name{n, t.text, false}
	case tokString:
		var b strings.Builder
		for p.is(tokString) {
			b.WriteString(p.next().text)
		}
		return &Const{node: n, Kind: ConstStr, Str: b.String()}
	case tokInt:
		p.next()
		return &Const{node: n, Kind: ConstInt, Int: t.int}
	case tokFloat:
		p.next()
		return &Const{node: n, Kind: ConstFloat, Float: t.float}
	case "(":
		p.next()
		e := p.tuple(tupleOpts{cond: true, parens: true})
		p.expect(")")
		return e
	case "[":
		return p.listDisplay()
	case "{":
		return p.dict()
	}
	p.fail(t.pos, "unexpected %q", describe(&t))
	return nil
}

type tupleOpts struct {
	simple    bool // only names and literals
	cond      bool // conditional expressions allowed
	namespace bool // ns.attr allowed
	parens    bool // inside parentheses, where () is a tuple
}

func (p *parser) tuple(o tupleOpts) Expr {
	if !p.enter() {
		return nil
	}
	defer func() { p.depth-- }()
	pos := p.cur().pos
	var items []Expr
	comma := false
	for {
		if len(items) > 0 {
			p.expect(",")
		}
		if p.is(tokVarEnd) || p.is(tokEnd) || p.is(")") || p.err != nil {
			break
		}
		switch {
		case o.simple:
			items = append(items, p.primary(o.namespace))
		case o.cond:
			items = append(items, p.cond())
		default:
			items = append(items, p.or())
		}
		if !p.is(",") {
			break
		}
		comma = true
	}
	if !comma {
		if len(items) > 0 {
			return items[0]
		}
		if !o.parens {
			p.fail(pos, "Expected an expression, got %q", describe(p.cur()))
			return nil
		}
	}
	return &Tuple{node{pos}, items}
}

func (p *parser) listDisplay() Expr {
	l := &List{node: node{p.expect("[").pos}}
	p.list("]", true, func() { l.Items = append(l.Items, p.expression()) })
	p.expect("]")
	return l
}

func (p *parser) dict() Expr {
	d := &Dict{node: node{p.expect("{").pos}}
	p.list("}", true, func() {
		d.Keys = append(d.Keys, p.expression())
		p.expect(":")
		d.Values = append(d.Values, p.expression())
	})
	p.expect("}")
	return d
}

func (p *parser) postfix(e Expr) Expr {
	for {
		switch p.cur().kind {
		case ".", "[":
			e = p.subscript(e)
		case "(":
			e = p.call(e)
		default:
			return e
		}
	}
}

func (p *parser) filterExpr(e Expr) Expr {
	for {
		switch {
		case p.skipIf("|"):
			e = p.filter(e)
		case p.isName("is"):
			e = p.test(e)
		case p.is("("):
			e = p.call(e)
		default:
			return e
		}
	}
}

func (p *parser) subscript(e Expr) Expr {
	t := p.next()
	if t.kind == "." {
		a := p.next()
		switch a.kind {
		case tokName:
			return &Getattr{node{a.pos}, e, a.text}
		case tokInt:
			return &Getitem{node{a.pos}, e, &Const{node: node{a.pos}, Kind: ConstInt, Int: a.int}}
		}
		p.fail(a.pos, "expected name or number")
		return nil
	}
	var args []Expr
	p.list("]", false, func() { args = append(args, p.subscribed()) })
	p.expect("]")
	if len(args) == 1 {
		return &Getitem{node{t.pos}, e, args[0]}
	}
	return &Getitem{node{t.pos}, e, &Tuple{node{t.pos}, args}}
}

func (p *parser) subscribed() Expr {
	s := &Slice{node: node{p.cur().pos}}
	if !p.is(":") {
		e := p.expression()
		if !p.is(":") {
			return e
		}
		s.Start = e
	}
	p.next()
	part := func() Expr {
		if p.is("]") || p.is(",") {
			return nil
		}
		return p.expression()
	}
	if !p.is(":") {
		s.Stop = part()
	}
	if p.skipIf(":") {
		s.Step = part()
	}
	return s
}

func (p *parser) args() (a Args) {
	open := p.expect("(")
	ensure := func(ok bool) {
		if !ok {
			p.fail(open.pos, "invalid syntax for function call expression")
		}
	}
	p.list(")", true, func() {
		switch {
		case p.skipIf("*"):
			ensure(a.Star == nil && a.Star2 == nil)
			a.Star = p.expression()
		case p.skipIf("**"):
			ensure(a.Star2 == nil)
			a.Star2 = p.expression()
		case p.is(tokName) && p.look().kind == "=":
			ensure(a.Star2 == nil)
			name := p.next()
			p.next()
			for _, k := range a.Kw {
				if k.Name == name.text && p.err == nil {
					p.fail(name.pos, "keyword argument repeated: %s", name.text)
					p.err.Python = true
				}
			}
			a.Kw = append(a.Kw, Keyword{name.text, p.expression()})
		default:
			ensure(a.Star == nil && a.Star2 == nil && len(a.Kw) == 0)
			a.List = append(a.List, p.expression())
		}
	})
	p.expect(")")
	return a
}

func (p *parser) call(fn Expr) Expr {
	pos := p.cur().pos
	return &Call{node{pos}, fn, p.args()}
}

// filters parses zero or more "|name(args)" after x.
func (p *parser) filters(x Expr) Expr {
	for p.skipIf("|") {
		x = p.filter(x)
	}
	return x
}

// filter parses "name(args)".
func (p *parser) filter(x Expr) *Filter {
	f := &Filter{X: x}
	f.Pos, f.Name = p.dotted()
	if p.is("(") {
		f.Args = p.args()
	}
	return f
}

func (p *parser) dotted() (Pos, string) {
	t := p.expect(tokName)
	name := t.text
	for p.skipIf(".") {
		name += "." + p.expect(tokName).text
	}
	return t.pos, name
}

func (p *parser) test(x Expr) Expr {
	p.next() // the keyword "is"
	not := p.skipName("not")
	t := &Test{X: x}
	t.Pos, t.Name = p.dotted()
	switch {
	case p.is("("):
		t.Args = p.args()
	case p.isName("else") || p.isName("or") || p.isName("and"):
	case p.is(tokName) || p.is(tokString) || p.is(tokInt) || p.is(tokFloat) || p.is("[") || p.is("{"):
		if p.isName("is") {
			p.fail(p.cur().pos, "You cannot chain multiple tests with is")
			return nil
		}
		t.Args.List = []Expr{p.postfix(p.primary(false))}
	}
	if not {
		return &Not{node{t.Pos}, t}
	}
	return t
}
