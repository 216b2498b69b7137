package parse

import (
	"strings"

	"github.com/turnpack/turnpack/tokenize/parse/internal/literal"
)

// Families that write calls in Python: Llama 4, LFM2, and the built-in tools of Llama 3.1.

// pythonHead checks whether a list begins with the name of a call.
func pythonHead(p *Parser, in string, end bool) (int, state) {
	rest, skipped := skip(in)
	switch {
	case rest == "":
		return skipped, nil
	case rest[0] == '{':
		return 0, taggedBody
	}
	i := 0
	if rest[0] == '[' {
		i = 1
	}
	for start := len(rest[i:]) - len(trimLeft(rest[i:])) + i; i < len(rest); i++ {
		c := rest[i]
		switch {
		case c == '(' && i > start:
			p.python, p.from, p.quiet = literal.PythonScan{}, p.tried.Len(), false
			return 0, pythonBody
		case i < start || literal.Identifier(c) || c == '.' && i > start:
			continue
		}
		i = maxName + 1
		break
	}
	if i > maxName || end {
		if p.quiet {
			p.trying = false
			p.text(in[:1])
			return 1, p.home()
		}
		if p.format.loose {
			return 0, markedText
		}
		return p.fail("the text begins no call in Python")
	}
	return 0, nil
}

// markedText reads the text that Llama 4 writes between the marks, before calls in JSON.
func markedText(p *Parser, in string, end bool) (int, state) {
	i, mark := find(in, end, p.format.marks, p.format.end)
	switch {
	case i > 0 || mark == "":
		return i, nil
	case mark != p.format.end:
		return p.fail("the text begins no call in Python")
	}
	p.trying = false
	p.text(p.tried.String()[p.from:])
	return len(mark), p.home()
}

func pythonBody(p *Parser, in string, _ bool) (int, state) { return p.pythonUpTo(in, pythonDone) }

// pythonUpTo reads an expression; done is the state after it.
func (p *Parser) pythonUpTo(in string, done state) (int, state) {
	n, ended := p.python.End(in)
	if ended {
		return n, done
	}
	return n, nil
}

func pythonDone(p *Parser, _ string, _ bool) (int, state) {
	calls, err := literal.Python(p.tried.String()[p.from:])
	if err != "" {
		return p.fail("%s", err)
	}
	for _, c := range calls {
		p.nameCall("", c.Name)
		p.addArguments(c.Arguments)
		p.finish()
	}
	return 0, pythonAfter
}

func pythonAfter(p *Parser, in string, end bool) (int, state) {
	n, mark, more := expect(in, end, p.format.end)
	if more && p.format.end != "" {
		return n, nil
	}
	p.trying = false
	if mark == "" {
		p.text(p.tried.String()) // white space
	}
	return len(mark), p.home()
}

// builtin parses a call of a tool built into Llama 3.1: name.call(key="value").
func builtin(p *Parser, in string, _ bool) (int, state) { return p.pythonUpTo(in, builtinDone) }

func builtinDone(p *Parser, _ string, _ bool) (int, state) {
	calls, err := literal.Python(p.tried.String()[p.from:])
	if err != "" || len(calls) != 1 || !strings.HasSuffix(calls[0].Name, ".call") {
		return p.keepAsText() // a program, which is not a call
	}
	p.nameCall("", strings.TrimSuffix(calls[0].Name, ".call"))
	p.addArguments(calls[0].Arguments)
	p.finish()
	p.trying = false
	return 0, p.home()
}
