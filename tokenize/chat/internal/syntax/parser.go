package syntax

import (
	"cmp"
	"slices"
	"strings"
)

// Parse parses a normalised source (see Normalize), whose expressions and blocks may nest up to maxDepth. Errors are
// *Error.
func Parse(source string, maxDepth int) ([]Stmt, error) {
	p := &parser{maxDepth: maxDepth}
	p.tokens, p.lexErr = lex(source)
	p.atEnd()
	body := p.subparse(nil)
	if p.err != nil {
		return nil, p.err
	}
	return body, nil
}

// parser keeps the first error in err. After an error all readers see the end of the template, so all loops stop;
// their results are then meaningless and Parse drops them.
type parser struct {
	tokens   []token
	i        int
	err      *Error
	lexErr   *Error // the lexer's error at the end of tokens; an earlier parser error wins
	depth    int
	maxDepth int
	tags     []string   // open tags, for messages
	ends     [][]string // end tags that the open blocks expect, for messages
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

// atEnd reports the lexer's error when the parser reaches the end of the tokens.
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

// enter counts a level of recursion; the caller undoes it with p.depth--.
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

// skipNames skips two given names if they come next, and reports whether it did.
func (p *parser) skipNames(first, second string) bool {
	if !p.isName(first) || !p.lookName(second) {
		return false
	}
	p.next()
	p.next()
	return true
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

// list parses comma-separated items up to end. trailing allows a comma after the last item.
func (p *parser) list(end kind, trailing bool, item func()) {
	for n := 0; !p.is(end) && p.err == nil; n++ {
		if n > 0 {
			p.expect(",")
			if trailing && p.is(end) {
				return
			}
		}
		item()
	}
}

func (p *parser) expectName(name string) token {
	if !p.isName(name) {
		p.fail(p.cur().pos, "expected token %q, got %q", name, describe(p.cur()))
		return token{pos: p.cur().pos}
	}
	return p.next()
}

// kindNames describes the kinds whose name is not their text.
var kindNames = map[kind]string{
	tokVarEnd: "end of print statement", tokVarBegin: "begin of print statement",
	tokEnd: "end of statement block", tokBegin: "begin of statement block",
	tokData: "template data / text", tokEOF: "end of template",
}

func describeKind(k kind) string { return cmp.Or(kindNames[k], string(k)) }

func describe(t *token) string {
	if t.kind == tokName {
		return t.text
	}
	return describeKind(t.kind)
}

// subparse parses statements until a block tag named in ends, which becomes the current token.
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
		default: // block begin: the lexer emits nothing else at this level
			out = nil
			p.next()
			if p.is(tokName) && slices.Contains(ends, p.cur().text) {
				return body
			}
			if s := p.statement(); s != nil {
				body = append(body, s)
			}
			p.expect(tokEnd)
		}
	}
	return body
}

// block parses the body of a statement: the rest of the opening tag, then statements up to one of ends.
func (p *parser) block(ends ...string) []Stmt {
	p.skipIf(":")
	p.expect(tokEnd)
	body := p.subparse(ends)
	if p.is(tokEOF) && p.err == nil {
		p.failNesting("", append(p.ends, ends), p.cur().pos)
	}
	return body
}

// closed is block for statements with a single end tag, which it skips.
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
		if slices.Contains(slices.Concat(ends...), tag) {
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

func (p *parser) nameTarget() *Name {
	t := p.expect(tokName)
	n := &Name{node{t.pos}, t.text, true}
	p.checkTarget(n)
	return n
}

// target parses what can stand left of "=" or between "for" and "in".
func (p *parser) target(namespace bool) Expr {
	e := p.tuple(tupleOpts{simple: true, namespace: namespace})
	p.checkTarget(e)
	return e
}

func (p *parser) checkTarget(e Expr) {
	switch e := e.(type) {
	case *Name:
		if _, constant := constants[e.Name]; constant {
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
