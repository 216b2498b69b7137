package parse

import "strings"

// Families that write the name of a call in a header and its arguments as JSON: Kimi K2, DeepSeek
// V3 and V3.1, Mistral.

// header holds the marks of such a family.
type header struct {
	section, sectionEnd string
	call, callEnd       string
	sep                 string
	ids                 bool // the header is an id: functions.name:0
}

var kimiHeader = &header{
	section: "<|tool_calls_section_begin|>", sectionEnd: "<|tool_calls_section_end|>",
	call: "<|tool_call_begin|>", callEnd: "<|tool_call_end|>", sep: "<|tool_call_argument_begin|>", ids: true,
}

var deepseekHeader = &header{
	section: "<｜tool▁calls▁begin｜>", sectionEnd: "<｜tool▁calls▁end｜>",
	call: "<｜tool▁call▁begin｜>", callEnd: "<｜tool▁call▁end｜>", sep: "<｜tool▁sep｜>",
}

const fence = "```"

// section expects a call, or the end of the calls.
func section(p *Parser, in string, end bool) (int, state) {
	h := p.format.header
	n, mark, more := expect(in, end, h.call, h.sectionEnd)
	switch {
	case more:
		return n, nil
	case mark == h.call:
		return len(mark), headerName
	case mark == h.sectionEnd && p.between:
		p.trying = false
		return len(mark), p.home()
	case p.between:
		p.trying = false
		return 0, p.home()
	}
	return p.fail("expected %s", h.call)
}

func headerName(p *Parser, in string, end bool) (int, state) {
	h := p.format.header
	i := strings.Index(in, h.sep)
	if i > maxName || i < 0 && len(in) > maxName {
		return p.fail("the call has no %s", h.sep)
	}
	if i < 0 {
		return 0, nil
	}
	p.head = strings.TrimSpace(in[:i])
	return i + len(h.sep), headerSecond
}

// headerSecond distinguishes a header that was the name from one that was a type, after which the
// name has a line of its own and the arguments are in a fence.
func headerSecond(p *Parser, in string, end bool) (int, state) {
	h := p.format.header
	n, mark, more := expect(in, end, "{", h.callEnd)
	if more {
		return n, nil
	}
	if mark != "" {
		id, name := "", p.head
		if h.ids {
			id = p.head
			var index string
			name, index, _ = strings.Cut(strings.TrimPrefix(name, "functions."), ":")
			if index == "" || strings.Trim(index, "0123456789") != "" {
				return p.fail("%q is no id like functions.name:0", id)
			}
		}
		return headerNamed(p, id, name)
	}
	i := strings.IndexByte(in, '\n')
	if h.ids || i > maxName || i < 0 && len(in) > maxName {
		return p.fail("%q begins no arguments", in[0])
	}
	if i < 0 {
		return 0, nil
	}
	p.head = strings.TrimSpace(in[:i])
	return i, headerFence
}

func headerFence(p *Parser, in string, end bool) (int, state) {
	n, mark, more := expect(in, end, fence+"json", "{")
	switch {
	case more:
		return n, nil
	case mark == "":
		return p.fail("%q begins no arguments", in[0])
	case mark == "{":
		return headerNamed(p, "", p.head)
	}
	return len(mark), nil
}

func headerNamed(p *Parser, id, name string) (int, state) {
	if !plausible(name) {
		return p.fail("%q is no name of a tool", name)
	}
	p.between = false
	p.nameCall(id, name)
	p.tagged = tagged{p: p}
	return 0, headerArguments
}

// headerArguments emits an object as it arrives.
func headerArguments(p *Parser, in string, end bool) (int, state) {
	t := &p.tagged
	if t.Broken != "" {
		return p.fail("the arguments: %s", t.Broken)
	}
	if h := p.format.header; h != nil && !t.Begun() && strings.HasPrefix(in, h.callEnd) {
		p.addArguments("{}")
		p.call.whole = true
		return 0, headerAfter
	}
	return p.passObject(in, headerArguments, headerAfter)
}

// passObject emits what has arrived of an object. The state is after once the object ends, and
// broken if it is malformed.
func (p *Parser) passObject(in string, broken, after state) (int, state) {
	n, done := p.tagged.Scan.Feed(in)
	p.addArguments(in[:n])
	switch {
	case done:
		p.call.whole = true
		return n, after
	case p.tagged.Broken != "":
		return n, broken
	}
	return n, nil
}

func headerAfter(p *Parser, in string, end bool) (int, state) {
	h := p.format.header
	if h == nil { // Mistral has no mark at the end of a call
		p.finish()
		p.trying = false
		return 0, p.home()
	}
	n, mark, more := expect(in, end, h.callEnd, h.sectionEnd, fence)
	switch {
	case more:
		return n, nil
	case mark == fence:
		return len(mark), nil
	case mark == "":
		return p.fail("%q follows the arguments of a call", in[0])
	}
	p.finish()
	if mark == h.callEnd {
		return len(mark), section
	}
	return 0, section
}

// Mistral: [TOOL_CALLS][{…}] at first, then [TOOL_CALLS]name[ARGS]{…}.

const (
	mistralCalls = "[TOOL_CALLS]"
	mistralArgs  = "[ARGS]"
	mistralID    = "[CALL_ID]"
)

func mistral(p *Parser, in string, end bool) (int, state) {
	rest, skipped := skip(in)
	switch {
	case rest == "":
		return skipped, nil
	case rest[0] == '[' || rest[0] == '{':
		return 0, taggedBody
	}
	i := strings.IndexByte(in, '{')
	if i > maxName || i < 0 && len(in) > maxName {
		return p.fail("the call has no arguments")
	}
	if i < 0 {
		return 0, nil
	}
	name := strings.TrimSuffix(strings.TrimSpace(in[:i]), mistralArgs)
	name, id, _ := strings.Cut(name, mistralID)
	_, next := headerNamed(p, strings.TrimSpace(id), strings.TrimSpace(name))
	if !p.trying {
		return 0, next
	}
	return i, next
}
