package syntax

import (
	"strings"

	"github.com/turnpack/turnpack/internal/pytext"
)

func (p *parser) statement() Stmt {
	t := *p.cur()
	if t.kind != tokName {
		p.fail(t.pos, "tag name expected")
		return nil
	}
	parse, ok := p.statements()[t.text]
	if !ok {
		p.failNesting(t.text, p.ends, t.pos)
		return nil
	}
	p.tags = append(p.tags, t.text)
	p.next()
	s := parse(node{t.pos})
	p.tags = p.tags[:len(p.tags)-1]
	return s
}

// statements maps each tag to its parser, which starts after the tag name.
func (p *parser) statements() map[string]func(node) Stmt {
	return map[string]func(node) Stmt{
		"for": p.forStmt, "if": p.ifStmt, "set": p.setStmt, "with": p.withStmt,
		"macro": p.macroStmt, "call": p.callStmt, "filter": p.filterStmt,
		"print": p.printStmt, "block": p.blockStmt, "autoescape": p.autoescapeStmt,
		"extends": p.loadStmt("extends"), "include": p.loadStmt("include"),
		"import": p.loadStmt("import"), "from": p.loadStmt("from"),
		"generation": func(n node) Stmt { return &Generation{n, p.closed("endgeneration")} },
		"break":      func(n node) Stmt { return &Break{n} },
		"continue":   func(n node) Stmt { return &Continue{n} },
	}
}

func (p *parser) forStmt(n node) Stmt {
	s := &For{node: n}
	s.Target = p.target(false)
	p.expectName("in")
	s.Iter = p.tuple(tupleOpts{})
	if p.skipName("if") {
		s.Test = p.expression()
	}
	s.Recursive = p.skipName("recursive")
	s.Body = p.block("endfor", "else")
	if p.next().text == "else" {
		s.Else = p.closed("endfor")
	}
	return s
}

func (p *parser) ifStmt(n node) Stmt {
	first := &If{node: n}
	s := first
	for {
		s.Test = p.tuple(tupleOpts{})
		s.Body = p.block("elif", "else", "endif")
		t := p.next()
		if t.text == "elif" {
			s = &If{node: node{t.pos}}
			first.Elifs = append(first.Elifs, s)
			continue
		}
		if t.text == "else" {
			first.Else = p.closed("endif")
		}
		return first
	}
}

func (p *parser) setStmt(n node) Stmt {
	target := p.target(true)
	if p.skipIf("=") {
		return &Set{n, target, p.tuple(tupleOpts{cond: true})}
	}
	s := &SetBlock{node: n, Target: target}
	if f, ok := p.filters(nil).(*Filter); ok {
		s.Filter = f
	}
	s.Body = p.closed("endset")
	return s
}

func (p *parser) withStmt(n node) Stmt {
	s := &With{node: n}
	p.list(tokEnd, false, func() {
		s.Targets = append(s.Targets, p.target(false))
		p.expect("=")
		s.Values = append(s.Values, p.expression())
	})
	s.Body = p.closed("endwith")
	return s
}

func (p *parser) signature() (sig Signature) {
	p.expect("(")
	p.list(")", false, func() {
		sig.Params = append(sig.Params, p.nameTarget())
		if p.skipIf("=") {
			sig.Defaults = append(sig.Defaults, p.expression())
		} else if len(sig.Defaults) > 0 {
			p.fail(p.cur().pos, "non-default argument follows default argument")
		}
	})
	p.expect(")")
	return sig
}

func (p *parser) macroStmt(n node) Stmt {
	s := &Macro{node: n}
	s.Name = p.nameTarget().Name
	s.Signature = p.signature()
	s.Body = p.closed("endmacro")
	return s
}

func (p *parser) callStmt(n node) Stmt {
	s := &CallBlock{node: n}
	if p.is("(") {
		s.Signature = p.signature()
	}
	call, ok := p.expression().(*Call)
	if !ok {
		p.fail(n.Pos, "expected call")
		return nil
	}
	s.Call = call
	s.Body = p.closed("endcall")
	return s
}

func (p *parser) filterStmt(n node) Stmt {
	f := p.filters(p.filter(nil)).(*Filter)
	return &FilterBlock{n, f, p.closed("endfilter")}
}

func (p *parser) printStmt(n node) Stmt {
	s := &Output{node: n}
	p.list(tokEnd, false, func() { s.Nodes = append(s.Nodes, p.expression()) })
	return s
}

func (p *parser) blockStmt(n node) Stmt {
	s := &Block{node: n, Name: p.expect(tokName).text}
	s.Scoped = p.skipName("scoped")
	required := p.skipName("required")
	if p.is("-") {
		p.fail(p.cur().pos, "Block names in Jinja have to be valid Python identifiers and may not contain hyphens, use an underscore instead.")
	}
	s.Body = p.closed("endblock")
	if required && !blank(s.Body) {
		p.fail(n.Pos, "Required blocks can only contain comments or whitespace")
	}
	p.skipName(s.Name)
	return s
}

func blank(body []Stmt) bool {
	for _, s := range body {
		out, ok := s.(*Output)
		if !ok {
			return false
		}
		for _, e := range out.Nodes {
			if d, ok := e.(*Data); !ok || strings.TrimFunc(d.Text, pytext.IsSpace) != "" {
				return false
			}
		}
	}
	return true
}

func (p *parser) autoescapeStmt(n node) Stmt {
	return &Scope{n, p.expression(), p.closed("endautoescape")}
}

func (p *parser) loadStmt(tag string) func(node) Stmt {
	return func(n node) Stmt {
		s := &Load{node: n, Tag: tag, Template: p.expression()}
		switch tag {
		case "include":
			s.IgnoreMissing = p.skipNames("ignore", "missing")
			p.withContext()
		case "import":
			p.expectName("as")
			s.Names = []string{p.nameTarget().Name}
			p.withContext()
		case "from":
			p.expectName("import")
			for p.err == nil {
				if len(s.Names) > 0 {
					p.expect(",")
				}
				if p.withContext() {
					break
				}
				t := p.nameTarget()
				if strings.HasPrefix(t.Name, "_") {
					p.fail(t.Pos, "names starting with an underline can not be imported")
				}
				if p.skipName("as") {
					t = p.nameTarget()
				}
				s.Names = append(s.Names, t.Name)
				if p.withContext() || !p.is(",") {
					break
				}
			}
		}
		return s
	}
}

func (p *parser) withContext() bool {
	return p.skipNames("with", "context") || p.skipNames("without", "context")
}
