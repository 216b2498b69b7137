package parse

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/tokenize/parse/internal/literal"
)

// Families that write calls as JSON objects with a name and arguments: Hermes and Qwen, MiniMax M1,
// Nemotron, early Mistral, Llama 3.

// tagged collects one such object.
type tagged struct {
	literal.Object
	p     *Parser
	key   string
	text  strings.Builder // the current value, except arguments emitted at once
	name  string
	named bool // the name was emitted
	args  bool
	typed bool // the arguments are an object
	list  bool // within a list of calls
}

func (t *tagged) OnKey(key string) string {
	t.key, t.typed = key, false
	t.text.Reset()
	if t.isArguments() && t.args || key == "name" && t.name != "" {
		return fmt.Sprintf("%q comes twice", key)
	}
	if t.isArguments() && t.name != "" {
		t.give()
	}
	return ""
}

// give emits the name, once the object is known to be a call: with a name and arguments.
func (t *tagged) give() {
	t.named, t.p.quiet = true, false
	t.p.nameCall(t.p.call.id, t.name)
}

func (t *tagged) isArguments() bool { return t.key == "arguments" || t.key == "parameters" }

func (t *tagged) OnValue(piece string) {
	if t.isArguments() && (t.typed || t.text.Len() == 0 && strings.HasPrefix(piece, "{")) {
		t.typed = true
		t.p.addArguments(piece)
		return
	}
	t.text.WriteString(piece)
}

func (t *tagged) OnValueEnd() string {
	text := t.text.String()
	var s string
	switch {
	case t.isArguments() && !t.typed:
		t.args = true
		if text != "null" && (json.Unmarshal([]byte(text), &s) != nil || !isObject(s)) {
			return "the arguments are no object"
		}
		if s == "" {
			s = "{}"
		}
		t.p.addArguments(s)
	case t.isArguments():
		t.args = true
	case t.key == "name":
		if json.Unmarshal([]byte(text), &t.name) != nil || t.name == "" {
			return "the name is no text"
		}
		if t.args {
			t.give()
		}
	case t.key == "id" && !t.p.call.begun:
		_ = json.Unmarshal([]byte(text), &t.p.call.id)
	}
	return ""
}

func isObject(s string) bool {
	return strings.HasPrefix(trimLeft(s), "{") && json.Valid([]byte(s))
}

// taggedBody expects the object of a call, or a list of them.
func taggedBody(p *Parser, in string, _ bool) (int, state) {
	rest, skipped := skip(in)
	switch {
	case rest == "":
		return skipped, nil
	case rest[0] == '{':
		p.tagged, p.between = tagged{p: p, list: p.tagged.list}, false
		return 0, taggedObject
	case rest[0] == '[' && p.format.list && !p.tagged.list:
		p.tagged.list = true
		return 1, nil
	}
	if p.quiet {
		return p.keepAsText()
	}
	return p.fail("%q begins no JSON object", rest[0])
}

func taggedObject(p *Parser, in string, _ bool) (int, state) {
	t := &p.tagged
	if t.Broken != "" {
		if p.quiet {
			return p.keepAsText()
		}
		return p.fail("%s", t.Broken)
	}
	n, done := t.Feed(in, t)
	if !done {
		if n < len(in) || t.Broken != "" {
			return n, taggedObject
		}
		return n, nil
	}
	switch {
	case t.name == "":
		t.Broken = "the call has no name"
		return n, taggedObject
	case !t.args && p.quiet:
		t.Broken = "the call has no arguments"
		return n, taggedObject
	case !t.args:
		t.give()
		p.addArguments("{}")
	}
	p.call.whole = true
	return n, taggedAfter
}

// taggedAfter expects what may follow a call: another one, or the end mark.
func taggedAfter(p *Parser, in string, end bool) (int, state) {
	f, t := p.format, &p.tagged
	loose := f.end == "" || f.loose
	if loose && !t.list && p.call.whole { // nothing more can go wrong
		p.finish()
	}
	rest, skipped := skip(in)
	if rest == "" {
		return skipped, nil
	}
	leave := func(n int) (int, state) {
		if p.call.whole {
			p.finish()
		}
		p.trying = false
		if n == 0 {
			p.text(p.tried.String()) // white space
		}
		return n, p.home()
	}
	switch {
	case t.list && rest[0] == ',':
		p.finish()
		p.between = false // the list continues
		return 1, taggedBody
	case t.list && rest[0] == ']':
		p.finish()
		t.list = false
		return 1, nil
	case t.list:
		return p.fail("%q follows a call of a list", rest[0])
	case f.end != "" && strings.HasPrefix(rest, f.end):
		return leave(len(f.end))
	case f.end != "" && !end && strings.HasPrefix(f.end, rest):
		return 0, nil
	case loose && f.many && rest[0] == ';':
		p.between, p.quiet = false, true
		return 1, taggedBody
	case loose && rest[0] == '{':
		return leave(0)
	case f.many && rest[0] == '{':
		if p.call.whole {
			p.finish()
		}
		return 0, taggedBody
	case loose || !p.call.whole:
		return leave(0)
	}
	return p.fail("%q follows the JSON object of a call", rest[0])
}

// llamaTag parses what follows <|python_tag|>: an object, a Python call of a built-in tool, or a
// program.
func llamaTag(p *Parser, in string, end bool) (int, state) {
	rest, skipped := skip(in)
	switch {
	case rest == "":
		return skipped, nil
	case rest[0] == '{':
		p.quiet = false
		return 0, taggedBody
	}
	p.python, p.from, p.quiet = literal.PythonScan{}, p.tried.Len(), true
	return 0, builtin
}
