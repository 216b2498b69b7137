package parse

import "strings"

// Harmony, the format of gpt-oss: messages with a header and a body, each on a channel.
//
//	<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>

const (
	harmonyStart   = "<|start|>"
	harmonyChannel = "<|channel|>"
	harmonyMessage = "<|message|>"
	harmonyEnd     = "<|end|>"
	harmonyCall    = "<|call|>"
	harmonyReturn  = "<|return|>"
)

var harmonyEnds = []string{harmonyEnd, harmonyCall, harmonyReturn, harmonyStart, harmonyChannel}

// harmonyFirst distinguishes a reply that begins with a header from bare text. A prompt that opened
// the reasoning has written its header.
func harmonyFirst(p *Parser, in string, end bool) (int, state) {
	if p.opts.InReasoning {
		return 0, harmonyReasoning
	}
	n, mark, more := expect(in, end, harmonyChannel, harmonyStart, harmonyMessage, "to=")
	switch {
	case more && n == 0:
		return 0, nil
	case more:
		p.text(in[:n])
		return n, nil
	case mark == "":
		return 0, harmonyContent
	}
	p.out.drop()
	return 0, harmonyHeader
}

// harmonyHeader reads up to <|message|>.
func harmonyHeader(p *Parser, in string, end bool) (int, state) {
	if !p.trying {
		p.try()
		p.quiet = true
	}
	i := strings.Index(in, harmonyMessage)
	if i > maxName || i < 0 && len(in) > maxName {
		return harmonyFail(p, "a header has no %s", harmonyMessage)
	}
	if i < 0 {
		return 0, nil
	}
	header := in[:i]
	if k := strings.LastIndex(header, harmonyStart); k >= 0 {
		header = header[k+len(harmonyStart):]
	}
	recipient, channel := "", ""
	if _, after, ok := strings.Cut(header, harmonyChannel); ok {
		channel = firstWord(after)
	}
	if _, after, ok := strings.Cut(header, "to="); ok {
		recipient = firstWord(after)
	}
	next := harmonyContent
	switch {
	case recipient != "" && recipient != "assistant" && recipient != "user":
		p.head = strings.TrimPrefix(recipient, "functions.")
		return i + len(harmonyMessage), harmonyArguments
	case channel == "analysis":
		next = harmonyReasoning
	}
	p.trying = false
	return i + len(harmonyMessage), next
}

func firstWord(s string) string {
	if i := strings.IndexAny(s, " \t\r\n<"); i >= 0 {
		return s[:i]
	}
	return s
}

func harmonyContent(p *Parser, in string, end bool) (int, state) {
	i, mark := find(in, end, harmonyEnds)
	if mark == "" || i > 0 {
		p.text(in[:i])
		return i, nil
	}
	return harmonyNext(p, mark)
}

// harmonyNext continues after the mark that ended a body.
func harmonyNext(p *Parser, mark string) (int, state) {
	if mark == harmonyStart || mark == harmonyChannel {
		return 0, harmonyHeader
	}
	return len(mark), harmonyBetween
}

// harmonyBetween expects another message.
func harmonyBetween(p *Parser, in string, end bool) (int, state) {
	n, mark, more := expect(in, end, harmonyEnds...)
	switch {
	case more:
		return n, nil
	case mark == "":
		return 0, harmonyContent
	}
	return harmonyNext(p, mark)
}

func harmonyReasoning(p *Parser, in string, end bool) (int, state) {
	i, mark := find(in, end, harmonyEnds)
	if i > 0 {
		p.out.addReasoning(in[:i])
	}
	p.open = mark == ""
	if mark == "" || i > 0 {
		return i, nil
	}
	p.out.endReasoning()
	return harmonyNext(p, mark)
}

// harmonyArguments parses the body of a call, which must be an object.
func harmonyArguments(p *Parser, in string, end bool) (int, state) {
	n, mark, more := expect(in, end, harmonyEnds...)
	if more {
		return n, nil
	}
	if !plausible(p.head) {
		return harmonyFail(p, "%q is no name of a tool", p.head)
	}
	p.nameCall("", p.head)
	if mark != "" {
		p.addArguments("{}")
		p.finish()
		p.trying = false
		return harmonyNext(p, mark)
	}
	p.tagged = tagged{p: p}
	if in[0] != '{' {
		return harmonyFail(p, "the arguments are no JSON object")
	}
	p.quiet = false
	return 0, harmonyObject
}

func harmonyFail(p *Parser, format string, args ...any) (int, state) {
	p.quiet = false
	_, _ = p.fail(format, args...)
	return 0, harmonyContent
}

func harmonyObject(p *Parser, in string, _ bool) (int, state) {
	if why := p.tagged.Broken; why != "" {
		return harmonyFail(p, "the arguments: %s", why)
	}
	return p.passObject(in, harmonyObject, harmonyAfter)
}

func harmonyAfter(p *Parser, in string, end bool) (int, state) {
	n, mark, more := expect(in, end, harmonyEnds...)
	switch {
	case more:
		return n, nil
	case mark == "":
		return harmonyFail(p, "%q follows the arguments of a call", in[0])
	}
	p.finish()
	p.trying = false
	return harmonyNext(p, mark)
}
