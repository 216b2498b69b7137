package parse

import (
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/tokenize/parse/internal/literal"
)

// Families that write each parameter of a call between marks: Qwen3-Coder and Nemotron 3, GLM,
// MiniMax M2, DeepSeek V3.2 and V4.

// parameters holds the marks of such a family.
type parameters struct {
	outer, outerEnd string
	name, nameEnd   string // around the name; without them it ends at a mark
	callEnd         string
	key, keyEnd     string
	value, valueEnd string // value "": the value follows keyEnd
	lines           bool   // values are on lines of their own
	quoted          bool   // names and keys are attributes
	lenient         bool   // a value may lack its end mark
}

var qwen3CoderParameters = &parameters{
	outer: "<tool_call>", outerEnd: "</tool_call>", name: "<function=", nameEnd: ">", callEnd: "</function>",
	key: "<parameter=", keyEnd: ">", valueEnd: "</parameter>", lines: true, lenient: true,
}

var glmParameters = &parameters{
	outer: "<tool_call>", callEnd: "</tool_call>",
	key: "<arg_key>", keyEnd: "</arg_key>", value: "<arg_value>", valueEnd: "</arg_value>",
}

var minimaxM2Parameters = &parameters{
	outer: "<minimax:tool_call>", outerEnd: "</minimax:tool_call>", name: "<invoke name=", nameEnd: ">", callEnd: "</invoke>",
	key: "<parameter name=", keyEnd: ">", valueEnd: "</parameter>", quoted: true, lenient: true,
}

// dsmlParameters are those of DeepSeek, whose versions name the block of calls differently.
func dsmlParameters(block string) *parameters {
	return &parameters{
		outer: "<｜DSML｜" + block + ">", outerEnd: "</｜DSML｜" + block + ">", name: "<｜DSML｜invoke name=", nameEnd: ">", callEnd: "</｜DSML｜invoke>",
		key: "<｜DSML｜parameter name=", keyEnd: ">", valueEnd: "</｜DSML｜parameter>", quoted: true, lenient: true,
	}
}

// maxName bounds names and keys, which are held back until they end.
const maxName = 1024

// parameter is the current parameter.
type parameter struct {
	types literal.Types
	text  strings.Builder // a value other than text
	begun bool
	held  bool // a newline held back, which the value may end with
	keys  map[string]bool
}

// expect skips white space and returns which of some marks comes next, "" if none. With n > 0 only
// white space is consumed; more says that more text is needed.
func expect(in string, end bool, marks ...string) (n int, mark string, more bool) {
	rest, n := skip(in)
	if rest == "" {
		return n, "", true
	}
	for _, m := range marks {
		switch {
		case m == "":
		case strings.HasPrefix(rest, m):
			return 0, m, false
		case strings.HasPrefix(m, rest) && !end:
			more = true
		}
	}
	return 0, "", more
}

// skip returns in for states that skip white space first. rest is "" if there is white space, of
// which skipped bytes are then consumed, or if in is empty.
func skip(in string) (rest string, skipped int) {
	if skipped = len(in) - len(trimLeft(in)); skipped > 0 {
		return "", skipped
	}
	return in, 0
}

// paramCall expects a call, or the end of the calls.
func paramCall(p *Parser, in string, end bool) (int, state) {
	x := p.format.params
	if x.name == "" {
		return 0, paramName
	}
	n, mark, more := expect(in, end, x.name, x.outerEnd)
	switch {
	case more:
		return n, nil
	case mark == x.name:
		return len(mark), paramName
	case mark == x.outerEnd && p.between:
		p.trying = false
		return len(mark), p.home()
	}
	if p.between { // the end mark is missing
		p.trying = false
		return 0, p.home()
	}
	return p.fail("expected %s", x.name)
}

func paramName(p *Parser, in string, end bool) (int, state) {
	x := p.format.params
	i := strings.Index(in, cmp.Or(x.nameEnd, "<"))
	if i > maxName || i < 0 && len(in) > maxName {
		return p.fail("the name of the call has no end")
	}
	if i < 0 {
		return 0, nil
	}
	name, _ := x.attribute(in[:i])
	if !plausible(name) {
		return p.fail("%q is no name of a tool", name)
	}
	p.between = false
	p.param = parameter{keys: map[string]bool{}}
	p.nameCall("", name)
	return i + len(x.nameEnd), paramNext
}

// attribute returns a name without its quotes; verbatim is the value of an attribute "string",
// which says whether the value is text.
func (x *parameters) attribute(s string) (name, verbatim string) {
	s = strings.TrimSpace(s)
	if !x.quoted {
		return s, ""
	}
	if i := strings.LastIndex(s, ` string="`); i >= 0 {
		verbatim = strings.TrimSuffix(s[i+len(` string="`):], `"`)
		s = strings.TrimSpace(s[:i])
	}
	return strings.Trim(s, `"'`), verbatim
}

func plausible(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool {
		return r <= ' ' || strings.ContainsRune("\"'{}[]()<>=,;`", r)
	}) < 0
}

// paramNext expects a parameter, or the end of the call.
func paramNext(p *Parser, in string, end bool) (int, state) {
	x := p.format.params
	n, mark, more := expect(in, end, x.key, x.callEnd, x.outerEnd)
	switch {
	case more:
		return n, nil
	case mark == x.key:
		return len(mark), paramKey
	case mark == "":
		return p.fail("expected %s or %s", x.key, x.callEnd)
	}
	if p.call.params == 0 {
		p.addArguments("{")
	}
	p.addArguments("}")
	p.finish()
	if x.name == "" {
		p.trying = false
		return len(mark), p.home()
	}
	if mark == x.callEnd {
		return len(mark), paramCall
	}
	return 0, paramCall
}

func paramKey(p *Parser, in string, end bool) (int, state) {
	x := p.format.params
	i := strings.Index(in, x.keyEnd)
	if i > maxName || i < 0 && len(in) > maxName {
		return p.fail("the name of a parameter has no end")
	}
	if i < 0 {
		return 0, nil
	}
	key, verbatim := x.attribute(in[:i])
	if key == "" || p.param.keys[key] {
		return p.fail("the parameter %q comes twice or has no name", key)
	}
	q := &p.param
	q.keys[key] = true
	q.begun, q.held = false, false
	q.text.Reset()
	switch q.types = p.schema.Of(p.call.name, key); verbatim {
	case "true":
		q.types = literal.String
	case "false":
		q.types = literal.JSON
	}
	before := ", "
	if p.call.params == 0 {
		before = "{"
	}
	p.call.params++
	p.addArguments(before + literal.Quote(key) + ": ")
	if q.types == literal.String {
		p.addArguments(`"`)
	}
	next := paramValue
	if x.value != "" {
		next = paramOpens
	}
	return i + len(x.keyEnd), next
}

func paramOpens(p *Parser, in string, end bool) (int, state) {
	n, mark, more := expect(in, end, p.format.params.value)
	if more {
		return n, nil
	}
	if mark == "" {
		return p.fail("expected %s", p.format.params.value)
	}
	return len(mark), paramValue
}

// paramValue emits a value as it arrives. A value without its end mark ends where the next
// parameter or the call's end begins, as in vLLM and SGLang.
func paramValue(p *Parser, in string, end bool) (int, state) {
	x := p.format.params
	var next string
	if x.lenient {
		next = x.key
	}
	i, mark := find(in, end, p.format.ends, x.valueEnd, next)
	if mark == "" || i > 0 {
		p.param.add(p, in[:i])
		return i, nil
	}
	q := &p.param
	if q.types == literal.String {
		p.addArguments(`"`)
	} else {
		text := q.text.String()
		if x.lines {
			text = strings.TrimSuffix(text, "\n")
		}
		p.addArguments(q.types.Value(text))
	}
	if mark == x.valueEnd {
		return len(mark), paramNext
	}
	return 0, paramNext
}

func (q *parameter) add(p *Parser, s string) {
	lines := p.format.params.lines
	if s == "" {
		return
	}
	if lines && !q.begun {
		s = strings.TrimPrefix(s, "\n")
	}
	q.begun = true
	if q.types != literal.String {
		q.text.WriteString(s)
		return
	}
	if !lines {
		p.addArguments(literal.Escaped(s))
		return
	}
	if q.held && s != "" {
		s, q.held = "\n"+s, false
	}
	if strings.HasSuffix(s, "\n") {
		s, q.held = s[:len(s)-1], true
	}
	p.addArguments(literal.Escaped(s))
}
