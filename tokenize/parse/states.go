package parse

import (
	"strings"
	"unicode/utf8"
)

// begin parses the beginning of the reply, which may be reasoning.
func (p *Parser) begin(in string, end bool) (int, state) {
	f := p.format
	if i := len(in) - len(trimLeft(in)); i > 0 {
		p.text(in[:i])
		return i, nil
	}
	if in == "" {
		return 0, nil
	}
	if think := f.think[0]; think != "" && !p.opts.KeepReasoning && !p.thought {
		switch {
		case strings.HasPrefix(in, think):
			p.out.drop()
			p.inReasoning, p.thought = true, true
			return len(think), (*Parser).reasoning
		case strings.HasPrefix(think, in) && !end:
			return 0, nil
		}
	}
	return 0, (*Parser).content
}

// reasoning emits text up to its end mark, or up to a call.
func (p *Parser) reasoning(in string, end bool) (int, state) {
	think := p.format.think
	i, mark := find(in, end, p.format.marks, think[:]...)
	switch {
	case mark == "" || i > 0:
		p.text(in[:i])
		return i, nil
	case mark == think[1]:
		p.inReasoning = false
		p.out.endReasoning()
		return len(mark), (*Parser).begin
	case mark == think[0]:
		if p.out.reasoning.Len() > 0 { // repeated at the beginning it is ignored
			p.text(mark)
		}
		return len(mark), nil
	}
	return p.enter(mark)
}

// content emits text up to the mark of a call.
func (p *Parser) content(in string, end bool) (int, state) {
	f := p.format
	var stray string
	if !p.opts.KeepReasoning {
		stray = f.think[1]
	}
	i, mark := find(in, end, f.marks, stray)
	switch {
	case mark == "" || i > 0:
		p.text(in[:i])
		return i, nil
	case mark == stray:
		p.fault(faultThinking, p.at, -1, "%q ends no reasoning", mark)
		p.text(mark)
		return len(mark), nil
	}
	return p.enter(mark)
}

// resync emits the rest of a malformed call, up to its end mark.
func (p *Parser) resync(in string, end bool) (int, state) {
	home := p.home()
	stop := p.format.end
	if stop == "" {
		return 0, home
	}
	i, mark := find(in, end, p.format.marks, stop, p.format.think[1], p.format.another)
	switch {
	case mark == "" || i > 0:
		p.text(in[:i])
		return i, nil
	case mark == stop:
		p.text(mark)
		return len(mark), home
	case mark == p.format.another: // the next call of the same block
		p.try()
		p.between = true
		return 0, p.format.body
	}
	return 0, home
}

func (p *Parser) home() state {
	if p.inReasoning {
		return (*Parser).reasoning
	}
	return (*Parser).content
}

func (p *Parser) text(s string) {
	if p.inReasoning {
		p.out.addReasoning(s)
		return
	}
	if rest := trimLeft(s); p.out.calls > 0 && !p.out.after && !p.format.textAfter && rest != "" {
		p.out.after = true
		p.fault(faultOrder, p.at+len(s)-len(rest), -1, "text follows a call")
	}
	p.out.addContent(s)
}

// try begins an attempt at parsing a call.
func (p *Parser) try() {
	p.trying, p.between, p.quiet, p.tryAt, p.call = true, false, false, p.at, call{}
	p.tried.Reset()
}

// enter begins an attempt at the call that mark begins. A bracket is part of the call, and may
// begin something else; so may the mark of a further call of a block, if models leave out the
// first.
func (p *Parser) enter(mark string) (int, state) {
	p.try()
	switch mark {
	case "{":
		p.quiet = true
		return 0, taggedBody
	case "[":
		p.quiet = true
		return 0, pythonHead
	case p.format.another:
		return 0, p.format.body
	}
	p.from = len(mark)
	return len(mark), p.format.body
}

// fail ends an attempt: the text read stays text. No byte is consumed.
func (p *Parser) fail(format string, args ...any) (int, state) {
	p.trying, p.between, p.tagged.list = false, false, false
	if p.call.begun {
		p.fault(faultCall, p.tryAt, p.out.calls-1, format, args...)
		p.endCall()
		return 0, (*Parser).resync
	}
	if !p.inReasoning {
		p.fault(faultCall, p.tryAt, -1, format, args...)
	}
	return p.keepAsText()
}

// keepAsText is fail for text that was no call at all, such as an answer in JSON.
func (p *Parser) keepAsText() (int, state) {
	p.trying, p.between, p.tagged.list = false, false, false
	at := p.at
	p.at = p.tryAt
	p.text(p.tried.String())
	p.at = at
	p.tried.Reset()
	return 0, (*Parser).resync
}

// cut ends an attempt that the end of the reply truncated.
func (p *Parser) cut() {
	if p.call.whole {
		p.finish()
	}
	if p.between {
		p.trying = false
		p.state = p.home()
		return
	}
	if p.quiet {
		_, p.state = p.keepAsText()
		return
	}
	_, p.state = p.fail("the reply ends within the call")
}

// find returns the offset of the first of some marks, and the mark. If there is none it returns the
// length of the part of in that belongs to no mark for certain, and "".
func find(in string, end bool, more []string, marks ...string) (int, string) {
	for i := range len(in) {
		rest, best, part := in[i:], "", false
		for _, list := range [...][]string{marks, more} {
			for _, m := range list {
				switch {
				case m == "" || m[0] != rest[0]:
				case strings.HasPrefix(rest, m):
					if len(m) > len(best) {
						best = m
					}
				case strings.HasPrefix(m, rest):
					part = true
				}
			}
		}
		if part && !end {
			return i, ""
		}
		if best != "" {
			return i, best
		}
	}
	return len(in), ""
}

// heldStop returns how many bytes at the end of text may begin a stop text, or are all of one.
func heldStop(text string, stops []string) int {
	held := 0
	for _, s := range stops {
		for n := min(len(s), len(text)); n > held; n-- {
			if text[len(text)-n:] == s[:n] {
				held = n
				break
			}
		}
	}
	return held
}

// partOfRune returns how many bytes at the end of text begin a character without completing it.
func partOfRune(text string) int {
	for n := 1; n <= 3 && n <= len(text); n++ {
		c := text[len(text)-n]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
