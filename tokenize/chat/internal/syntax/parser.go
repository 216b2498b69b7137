package syntax

import "strings"

// Options bounds what Parse accepts.
type Options struct {
	// MaxDepth bounds the nesting of expressions and blocks.
	MaxDepth int
}

// Parse reads a normalised source (see Normalize). Errors are *Error.
func Parse(source string, opts Options) ([]Stmt, error) {
	p := &parser{maxDepth: opts.MaxDepth}
	p.tokens, p.lexErr = lex(source)
	p.atEnd()
	body := p.subparse(nil)
	if p.err != nil {
		return nil, p.err
	}
	return body, nil
}

// parser keeps the first error in err. After an error every reader sees the end
// of the template, so all loops stop; what they return is then meaningless and
// Parse drops it.
type parser struct {
	tokens   []token
	i        int
	err      *Error
	lexErr   *Error // the fault that ends tokens; an error in front of it counts
	depth    int
	maxDepth int
	tags     []string   // open tags, for messages
	ends     [][]string // what the open blocks look for, for messages
}

func (p *parser) cur() *token  { return &p.tokens[p.i] }
func (p *parser) look() *token { return &p.tokens[min(p.i+1, len(p.tokens)-1)] }

func (p *parser) next() token {
	t := p.tokens[p.i]
	if p.i < len(p.tokens)-1 {
		p.i++
		p.atEnd()
	}
	return t
}

// atEnd takes over the lexer's fault where the tokens end with one.
func (p *parser) atEnd() {
	if p.i == len(p.tokens)-1 && p.err == nil {
		p.err = p.lexErr
	}
}

func (p *parser) fail(pos Pos, format string, args ...any) {
	if p.err == nil {
		p.err = errorAt(pos, format, args...)
	}
	p.i = len(p.tokens) - 1
}

// enter guards recursion; the caller leaves with p.depth--.
func (p *parser) enter() bool {
	p.depth++
	if p.depth > p.maxDepth {
		pos := p.cur().pos
		p.fail(pos, "nesting is deeper than %d", p.maxDepth)
		p.err.Limit = true
		return false
	}
	return true
}

func (p *parser) is(k kind) bool            { return p.cur().kind == k }
func (p *parser) isName(name string) bool   { return p.is(tokName) && p.cur().text == name }
func (p *parser) lookName(name string) bool { return p.look().kind == tokName && p.look().text == name }

func (p *parser) skipIf(k kind) bool {
	if p.is(k) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(k kind) token {
	if !p.is(k) {
		if p.is(tokEOF) {
			p.fail(p.cur().pos, "unexpected end of template, expected %q.", describeKind(k))
		} else {
			p.fail(p.cur().pos, "expected token %q, got %q", describeKind(k), describe(p.cur()))
		}
		return token{pos: p.cur().pos}
	}
	return p.next()
}

func (p *parser) expectName(name string) token {
	if !p.isName(name) {
		p.fail(p.cur().pos, "expected token %q, got %q", name, describe(p.cur()))
		return token{pos: p.cur().pos}
	}
	return p.next()
}

func describeKind(k kind) string {
	switch k {
	case tokVarEnd:
		return "end of print statement"
	case tokVarBegin:
		return "begin of print statement"
	case tokEnd:
		return "end of statement block"
	case tokBegin:
		return "begin of statement block"
	case tokData:
		return "template data / text"
	case tokEOF:
		return "end of template"
	}
	return string(k)
}

func describe(t *token) string {
	if t.kind == tokName {
		return t.text
	}
	return describeKind(t.kind)
}

// subparse reads statements until one of the end tags (a block that starts with
// one of these names), which it leaves as the current token.
func (p *parser) subparse(ends []string) []Stmt {
	var body []Stmt
	var out *Output
	add := func(pos Pos, e Expr) {
		if out == nil {
			out = &Output{node: node{pos}}
			body = append(body, out)
		}
		out.Nodes = append(out.Nodes, e)
	}
	if !p.enter() {
		return nil
	}
	defer func() { p.depth-- }()
	if ends != nil {
		p.ends = append(p.ends, ends)
		defer func() { p.ends = p.ends[:len(p.ends)-1] }()
	}
	for !p.is(tokEOF) {
		switch t := p.cur(); t.kind {
		case tokData:
			add(t.pos, &Data{node{t.pos}, t.text})
			p.next()
		case tokVarBegin:
			pos := p.next().pos
			add(pos, p.tuple(tupleOpts{cond: true}))
			p.expect(tokVarEnd)
		default: // block begin: the lexer gives nothing else at this level
			out = nil
			p.next()
			for _, end := range ends {
				if p.isName(end) {
					return body
				}
			}
			if s := p.statement(); s != nil {
				body = append(body, s)
			}
			p.expect(tokEnd)
		}
	}
	return body
}

// block reads the body of a statement: the rest of the opening tag, then
// statements up to one of ends.
func (p *parser) block(ends ...string) []Stmt {
	p.skipIf(":")
	p.expect(tokEnd)
	body := p.subparse(ends)
	if p.is(tokEOF) && p.err == nil {
		p.failNesting("", append(p.ends, ends), p.cur().pos)
	}
	return body
}

// closed is block for statements with a single end tag, which it drops.
func (p *parser) closed(end string) []Stmt {
	body := p.block(end)
	p.next()
	return body
}

func (p *parser) failNesting(tag string, ends [][]string, pos Pos) {
	msg := "Unexpected end of template."
	if tag != "" {
		msg = "Encountered unknown tag '" + tag + "'."
	}
	if len(ends) > 0 {
		looking := "'" + strings.Join(ends[len(ends)-1], "' or '") + "'"
		known := false
		for _, e := range ends {
			for _, name := range e {
				known = known || name == tag
			}
		}
		if known {
			msg += " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for " + looking + "."
		} else {
			msg += " Jinja was looking for the following tags: " + looking + "."
		}
	}
	if len(p.tags) > 0 {
		msg += " The innermost block that needs to be closed is '" + p.tags[len(p.tags)-1] + "'."
	}
	p.fail(pos, "%s", msg)
}

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

// statements maps each tag to its parser, which starts behind the tag name.
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
	s.Target = p.target(targetOpts{tuple: true})
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
	target := p.target(targetOpts{tuple: true, namespace: true})
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
	for !p.is(tokEnd) && p.err == nil {
		if len(s.Targets) > 0 {
			p.expect(",")
		}
		s.Targets = append(s.Targets, p.target(targetOpts{tuple: true}))
		p.expect("=")
		s.Values = append(s.Values, p.expression())
	}
	s.Body = p.closed("endwith")
	return s
}

func (p *parser) signature() (sig Signature) {
	p.expect("(")
	for !p.is(")") && p.err == nil {
		if len(sig.Params) > 0 {
			p.expect(",")
		}
		sig.Params = append(sig.Params, p.nameTarget())
		if p.skipIf("=") {
			sig.Defaults = append(sig.Defaults, p.expression())
		} else if len(sig.Defaults) > 0 {
			p.fail(p.cur().pos, "non-default argument follows default argument")
		}
	}
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
	f := p.filter(nil)
	for p.skipIf("|") {
		f = p.filter(f)
	}
	return &FilterBlock{n, f, p.closed("endfilter")}
}

func (p *parser) printStmt(n node) Stmt {
	s := &Output{node: n}
	for !p.is(tokEnd) && p.err == nil {
		if len(s.Nodes) > 0 {
			p.expect(",")
		}
		s.Nodes = append(s.Nodes, p.expression())
	}
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
			if d, ok := e.(*Data); !ok || strings.TrimFunc(d.Text, isSpace) != "" {
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
			if p.isName("ignore") && p.lookName("missing") {
				p.next()
				p.next()
				s.IgnoreMissing = true
			}
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
	if (p.isName("with") || p.isName("without")) && p.lookName("context") {
		p.next()
		p.next()
		return true
	}
	return false
}

type targetOpts struct {
	tuple, namespace bool
}

func (p *parser) nameTarget() *Name {
	t := p.expect(tokName)
	n := &Name{node{t.pos}, t.text, true}
	p.checkTarget(n)
	return n
}

// target reads what can stand left of "=" or between "for" and "in".
func (p *parser) target(o targetOpts) Expr {
	e := p.tuple(tupleOpts{simple: true, namespace: o.namespace})
	p.checkTarget(e)
	return e
}

func (p *parser) checkTarget(e Expr) {
	switch e := e.(type) {
	case *Name:
		switch e.Name {
		case "true", "false", "none", "True", "False", "None":
			p.fail(e.Pos, "can't assign to 'name'")
		}
		e.Store = true
	case *NSRef:
	case *Tuple:
		for _, item := range e.Items {
			p.checkTarget(item)
		}
	case nil:
	default:
		p.fail(e.At(), "can't assign to this expression")
	}
}
