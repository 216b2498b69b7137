package parse

import "github.com/turnpack/turnpack/tokenize/parse/internal/literal"

// Gemma 4 writes <|tool_call>call:name{key:<|"|>text<|"|>,count:2}<tool_call|>.

// gemmaBody reads the call up to its end mark; marks inside a quoted text do not count.
func gemmaBody(p *Parser, in string, end bool) (int, state) {
	i, mark := find(in, end, nil, literal.GemmaQuote, p.format.end)
	switch {
	case mark == "" || i > 0:
		return i, nil
	case mark == literal.GemmaQuote:
		return len(mark), gemmaText
	}
	c, bad := literal.Gemma(p.tried.String()[p.from:])
	if bad != "" || !plausible(c.Name) {
		return p.fail("the call is not call:name{…}: %s", bad)
	}
	p.nameCall("", c.Name)
	p.addArguments(c.Arguments)
	p.finish()
	p.trying = false
	return len(mark), p.home()
}

func gemmaText(p *Parser, in string, end bool) (int, state) {
	i, mark := find(in, end, nil, literal.GemmaQuote)
	if mark == "" || i > 0 {
		return i, nil
	}
	return len(mark), gemmaBody
}
