package logparse

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// JavaScript runners whose result is one line per test.

func parseJest(log string, _ Context) (Statuses, error) {
	return byWord(log, []result{{"✓", Passed}, {"✕", Failed}, {"○", Skipped}}, func(rest string) (string, bool) {
		rest, ok := afterSpace(rest)
		return trim(dropDuration(rest)), ok
	}), nil
}

func parseVitest(log string, _ Context) (Statuses, error) {
	return byWord(log, []result{{"✓", Passed}, {"×", Failed}, {"↓", Skipped}}, func(rest string) (string, bool) {
		rest, ok := afterSpace(rest)
		return dropVitestTail(rest), ok
	}), nil
}

// dropVitestTail removes a trailing " 12ms", " 3 s", " 7" or " [skipped]",
// unless nothing would be left.
func dropVitestTail(s string) string {
	body, skipped := strings.CutSuffix(s, "[skipped]")
	if !skipped {
		body = trimRight(strings.TrimSuffix(strings.TrimSuffix(s, "s"), "m"))
		digits := len(body) - len(strings.TrimRightFunc(body, isDigit))
		if digits == 0 {
			return s
		}
		body = body[:len(body)-digits]
	}
	name, ok := cutLastSpace(body)
	if !ok || name == "" {
		return s
	}
	return name
}

func parseJestJSON(log string, _ Context) (Statuses, error) {
	return byWord(log, []result{{"[PASSED]", Passed}, {"[FAILED]", Failed}}, afterSpace), nil
}

func parseImmutable(log string, c Context) (Statuses, error) {
	switch c.InstanceID[strings.LastIndexByte(c.InstanceID, '-')+1:] {
	case "2006":
		return parseJest(log, c)
	case "2005":
		return parseJestJSON(log, c)
	}
	return Statuses{}, unknownInstance("parse_log_immutable_js", c)
}

func parseTAP(log string, _ Context) (Statuses, error) {
	return byWord(log, []result{{"ok ", Passed}, {"not ok ", Failed}}, func(rest string) (string, bool) {
		n := digitsPrefix(rest)
		name, ok := strings.CutPrefix(rest[n:], " ")
		return name, ok && n > 0 && name != ""
	}), nil
}

func parseMarked(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range lines(log) {
		if rest, ok := numbered(line); ok {
			if rest, ok = cutSpace(rest); ok {
				m.Set(trim(rest), Failed)
			}
		}
	}
	return m, nil
}

// numbered cuts "12)" off the front of a line.
func numbered(line string) (rest string, ok bool) {
	n := digitsPrefix(line)
	if n == 0 {
		return "", false
	}
	return strings.CutPrefix(line[n:], ")")
}

// parseCarbon reads "PASS file (1.2 s)" and "FAIL file" lines.
func parseCarbon(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range lines(log) {
		word, rest, ok := afterWord(line, "", "PASS", "FAIL")
		if ok {
			rest, ok = cutSpace(rest)
		}
		if !ok {
			continue
		}
		status := Passed
		if word == "FAIL" {
			status = Failed
		}
		m.Set(dropFirstTiming(rest), status)
	}
	return m, nil
}

// dropFirstTiming cuts a line at its last " (12ms)", else at its last " (3 s)",
// else at its last " (3s)".
func dropFirstTiming(s string) string {
	for _, spaced := range [...]struct {
		space bool
		unit  string
	}{{false, "ms)"}, {true, "s)"}, {false, "s)"}} {
		for end := len(s); ; {
			open := strings.LastIndexByte(s[:end], '(')
			if open < 0 {
				break
			}
			end = open
			tail := s[open+1:]
			digits := len(tail) - len(strings.TrimLeftFunc(tail, func(r rune) bool { return r == '.' || isDigit(r) }))
			if digits == 0 {
				continue
			}
			tail, ok := tail[digits:], true
			if spaced.space {
				tail, ok = cutSpace(tail)
			}
			if !ok || !strings.HasPrefix(tail, spaced.unit) {
				continue
			}
			if name, ok := cutLastSpace(s[:open]); ok {
				return name
			}
		}
	}
	return s
}

var grommetTiming = compile(`<s>\(<d.>+<s>?(?:ms|s)\)\z`)

func parseGrommet(log string, _ Context) (Statuses, error) {
	var m Statuses
	for _, kind := range [...]struct {
		word   string
		status Status
	}{{"FAIL", Failed}, {"PASS", Passed}} {
		for pos := 0; ; {
			i := strings.Index(log[pos:], kind.word)
			if i < 0 {
				break
			}
			at := pos + i
			pos = at + 1
			if at != startOfLine(log, at) {
				continue
			}
			// The white space may be the line's own end: the name is then the next line.
			rest, ok := cutSpace(log[at+len(kind.word):])
			if !ok {
				continue
			}
			from := len(log) - len(rest)
			pos = endOfLine(log, from)
			name := trim(log[from:pos])
			if loc := grommetTiming.FindStringIndex(name); loc != nil {
				name = name[:loc[0]]
			}
			m.Set(name, kind.status)
		}
	}
	return m, nil
}

// Failure headings of the karma reporters.
var (
	chartFailure = compile(`\AChrome<s><d.>+<blank>\(.+?\)<blank>(.*)FAILED(?m:$)`)

	bpmnFailures = []literalPattern{
		{"2KPhantomJS", compile(`\A2KPhantomJS<s><d.>+<s>\(Linux<s><d.>+\)<s>(.*)FAILED\n`), 1},
		{"2KPhantomJS", compile(`\A2KPhantomJS<s><d.>+<s>\(Linux<s>x86_64\)<s>(.*)FAILED\n`), 1},
		{"Chrome", compile(`\AChrome<s>Headless<s>(.*)<s>\(Linux<s>x86_64\)<s>(.*)FAILED\n`), 2},
		{"HeadlessChrome", compile(`\AHeadlessChrome<s><d.>+<s>\(Linux<s><d.>+\)<s>(.*)FAILED\n`), 1},
	}

	openLayersFailures = []literalPattern{
		{"Chrome", compile(`\AChrome<s>Headless<s><d.>+<s>\(Linux<s><S>+\)<s>(.*)<s>FAILED\n`), 1},
		{"Chrome", compile(`\AChrome<s><d.>+<s>\(Linux<s><S>+\)<s>(.*)FAILED\n`), 1},
	}
	openLayersCase = compile(`(?m)^case<s>(.*):<s>mismatch`)
)

type literalPattern struct {
	literal string
	re      *regexp.Regexp
	group   int
}

func parseChartJS(log string, _ Context) (Statuses, error) {
	var m Statuses
	for g := range eachAt(stripANSI(log), "Chrome", chartFailure) {
		m.Set(g[1], Failed)
	}
	return m, nil
}

func parseBPMN(log string, _ Context) (Statuses, error) {
	var m Statuses
	for _, p := range bpmnFailures {
		for g := range eachAt(log, p.literal, p.re) {
			m.Set(g[p.group], Failed)
		}
	}
	return m, nil
}

func parseOpenLayers(log string, _ Context) (Statuses, error) {
	var m Statuses
	for _, p := range openLayersFailures {
		for g := range eachAt(log, p.literal, p.re) {
			m.Set(squeeze(g[p.group]), Failed)
		}
	}
	mochaErrors(log, &m)
	if strings.Contains(log, "mismatch") {
		for _, g := range openLayersCase.FindAllStringSubmatch(log, -1) {
			m.Set(squeeze(g[1]), Failed)
		}
	}
	return m, nil
}

// mochaErrors reads "  1) suite\n test\n Error:" blocks: two white spaces at a
// line start, a number, and everything up to the next "Error:".
func mochaErrors(log string, m *Statuses) {
	for pos := 0; pos < len(log); {
		rest, ok := cutSpace(log[pos:])
		if ok {
			rest, ok = cutSpace(rest)
		}
		if ok {
			rest, ok = numbered(rest)
		}
		if ok {
			i := strings.Index(rest, "Error:")
			if i < 0 {
				return
			}
			m.Set(squeeze(rest[:i]), Failed)
			pos = len(log) - len(rest) + i
		}
		if i := strings.IndexByte(log[pos:], '\n'); i >= 0 {
			pos += i + 1
		} else {
			return
		}
	}
}

// parseESLint reads "  1) title … SomeError" blocks of mocha's min reporter:
// the title ends at the first white space after which the line holds "Error".
func parseESLint(log string, _ Context) (Statuses, error) {
	var m Statuses
	for pos := 0; ; {
		i := strings.IndexByte(log[pos:], ')')
		if i < 0 {
			return m, nil
		}
		closing := pos + i
		digits := strings.TrimRightFunc(log[pos:closing], isDigit)
		head, two := cutLastSpace(digits)
		if two {
			_, two = cutLastSpace(head)
		}
		if !two || len(digits) == closing-pos {
			// A number never reaches back over a bracket: go on after this one.
			pos = closing + 1
			continue
		}
		title, end, ok := eslintTitle(log, closing+1)
		if !ok {
			return m, nil
		}
		m.Set(squeeze(title), Failed)
		pos = end
	}
}

// eslintTitle returns the text from i to the white space that the error line
// follows, and where the match ends.
func eslintTitle(log string, from int) (title string, end int, ok bool) {
	for i := from; i < len(log); {
		r, n := utf8.DecodeRuneInString(log[i:])
		if !isSpace(r) {
			i += n
			continue
		}
		text := len(log) - len(trimLeft(log[i:]))
		if text == len(log) {
			return "", 0, false
		}
		eol := endOfLine(log, text)
		if e := strings.LastIndex(log[text:eol], "Error"); e >= 0 {
			return log[from:i], text + e + len("Error"), true
		}
		// No later blank of this line can do better.
		i = eol
	}
	return "", 0, false
}
