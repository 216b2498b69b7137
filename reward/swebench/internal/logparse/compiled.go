package logparse

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// Runners of compiled and JVM languages: Go, Rust, C, C++, Java.

// afterWord cuts one of words, then sep, off the front of line.
func afterWord(line, sep string, words ...string) (word, rest string, ok bool) {
	for _, w := range words {
		if tail, found := strings.CutPrefix(line, w); found {
			if rest, ok = strings.CutPrefix(tail, sep); ok {
				return w, rest, true
			}
		}
	}
	return "", "", false
}

func parseGoTest(log string, _ Context) (Statuses, error) {
	// "name (duration)": the last " (" that leaves room for both.
	return byWord(log, []result{{"--- PASS: ", Passed}, {"--- FAIL: ", Failed}, {"--- SKIP: ", Skipped}}, func(rest string) (string, bool) {
		if len(rest) < 2 || rest[len(rest)-1] != ')' {
			return "", false
		}
		i := strings.LastIndex(rest[:len(rest)-2], " (")
		return rest[:max(i, 0)], i > 0
	}), nil
}

func parseCargo(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range lines(log) {
		line = trim(line)
		if !strings.HasPrefix(line, "test") || !strings.Contains(line, "...") {
			continue
		}
		f := fields(line)
		if len(f) != 4 || f[0] != "test" || f[2] != "..." {
			continue
		}
		switch f[3] {
		case "ok":
			m.Set(f[1], Passed)
		case "FAILED":
			m.Set(f[1], Failed)
		}
	}
	return m, nil
}

// parseMaven pairs the tests named on command lines (-Dtest=NAME, one run per
// test) with the BUILD results, first in first out, because shell tracing and
// Maven's own output interleave.
func parseMaven(log string, _ Context) (Statuses, error) {
	var m Statuses
	var pending, unmatched []string
	set := func(test, result string) {
		if result == "SUCCESS" {
			m.Set(test, Passed)
		} else {
			m.Set(test, Failed)
		}
	}
	for line := range lines(log) {
		if strings.Contains(line, "-Dtest=") {
			if test := mavenTest(trim(line)); test != "" {
				pending = append(pending, test)
			}
		}
		var result string
		switch line = trimRight(line); {
		case strings.HasSuffix(line, "BUILD SUCCESS"):
			result = "SUCCESS"
		case strings.HasSuffix(line, "BUILD FAILURE"):
			result = "FAILURE"
		default:
			continue
		}
		if len(pending) > 0 {
			set(pending[0], result)
			pending = pending[1:]
		} else {
			unmatched = append(unmatched, result)
		}
	}
	for i := 0; i < min(len(pending), len(unmatched)); i++ {
		set(pending[i], unmatched[i])
	}
	return m, nil
}

// mavenTest is the word after the last "-Dtest=" that has one.
func mavenTest(line string) string {
	for end := len(line); ; {
		i := strings.LastIndex(line[:end], "-Dtest=")
		if i < 0 {
			return ""
		}
		word := line[i+len("-Dtest="):]
		if n := endOfWord(word); n > 0 {
			return word[:n]
		}
		end = i + len("-Dtest=") - 1
	}
}

func parseAnt(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range lines(log) {
		rest, ok := strings.CutPrefix(trim(line), "[junit]")
		if !ok {
			continue
		}
		word, rest := cutSpaces(rest)
		if word == "" {
			continue
		}
		status, tail, ok := afterWord(rest, "]", "[PASS", "[FAIL", "[ERR")
		if !ok {
			continue
		}
		test := trimLeft(tail)
		if len(test) == len(tail) {
			continue
		}
		if status == "[PASS" {
			m.Set(test, Passed)
		} else {
			m.Set(test, Failed)
		}
	}
	return m, nil
}

// cutSpaces splits s into its leading white space and what follows.
func cutSpaces(s string) (space, rest string) {
	rest = trimLeft(s)
	return s[:len(s)-len(rest)], rest
}

func parseGradle(log string, _ Context) (Statuses, error) {
	var m Statuses
	pending := ""
	for line := range lines(log) {
		line = trim(line)
		if line == "" {
			continue
		}
		status := Status("")
		switch {
		case strings.HasSuffix(line, string(Passed)):
			status = Passed
		case strings.HasSuffix(line, string(Failed)):
			status = Failed
		}
		if status != "" && line[0] != '>' {
			name, ok := cutLastSpace(line[:len(line)-len(status)])
			if _, first := utf8.DecodeRuneInString(name); ok && len(name) > first {
				m.Set(name, status)
				pending = ""
				continue
			}
		}
		if line[0] != '>' && strings.Contains(line, ">") {
			if f := fields(line); len(f) == 3 && f[1] == ">" {
				pending = line
				continue
			}
		}
		if pending != "" && line == string(status) {
			m.Set(pending, status)
			pending = ""
		}
	}
	return m, nil
}

func parseRedis(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range lines(log) {
		line = trim(line)
		if !strings.HasPrefix(line, "[") {
			continue
		}
		word, rest, ok := afterWord(line[1:], "]:", "ok", "err", "skip", "ignore")
		if !ok {
			continue
		}
		rest, ok = cutSpace(rest)
		if !ok || rest == "" {
			continue
		}
		name := dropDuration(rest)
		switch word {
		case "ok":
			m.Set(name, Passed)
		case "err":
			m.Set(dropInFile(name), Failed)
		default:
			m.Set(name, Skipped)
		}
	}
	return m, nil
}

// dropDuration removes a trailing " (12 ms)" or " (3s)", unless nothing would
// be left.
func dropDuration(s string) string {
	body, ok := strings.CutSuffix(s, "s)")
	if !ok {
		return s
	}
	body = strings.TrimSuffix(body, "m")
	open := strings.LastIndexByte(body, '(')
	if open < 0 || !isCount(body[open+1:]) {
		return s
	}
	name, ok := cutLastSpace(body[:open])
	if !ok || name == "" {
		return s
	}
	return name
}

// isCount reports whether s is one or more digits, then white space only.
func isCount(s string) bool {
	n := digitsPrefix(s)
	return n > 0 && trimLeft(s[n:]) == ""
}

// dropInFile removes a trailing " in path".
func dropInFile(s string) string {
	before, word := lastField(s)
	if word == "" || len(before)+len(word) != len(s) {
		return s
	}
	head := trimRight(before)
	head, ok := strings.CutSuffix(head, "in")
	if !ok {
		return s
	}
	name := trimRight(head)
	if len(name) == len(head) {
		return s
	}
	return name
}

func parseJQ(log string, _ Context) (Statuses, error) {
	return byWord(log, []result{{"PASS:", Passed}, {"FAIL:", Failed}}, afterSpace), nil
}

func parseMicroPython(log string, _ Context) (Statuses, error) {
	return byWord(log, []result{{"pass", Passed}, {"FAIL", Failed}, {"skip", Skipped}}, func(rest string) (string, bool) {
		name := trimLeft(rest)
		return name, name != "" && len(name) < len(rest)
	}), nil
}

func parseGoogleTest(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range lines(log) {
		line = trim(line)
		if len(line) == 0 || line[len(line)-1] != ')' {
			continue
		}
		for end := len(line); ; {
			open := strings.LastIndexByte(line[:end], '[')
			if open < 0 {
				break
			}
			if name, status, ok := googleResult(line[open+1:]); ok {
				m.Set(name, status)
				break
			}
			end = open
		}
	}
	return m, nil
}

// googleResult reads "  OK ] Suite.Name (3 ms)".
func googleResult(s string) (name string, status Status, ok bool) {
	s = trimLeft(s)
	switch {
	case strings.HasPrefix(s, "OK"):
		s, status = s[len("OK"):], Passed
	case strings.HasPrefix(s, "FAILED"):
		s, status = s[len("FAILED"):], Failed
	default:
		return "", "", false
	}
	if s, ok = strings.CutPrefix(trimLeft(s), "]"); !ok {
		return "", "", false
	}
	if s, ok = cutSpace(s); !ok || s == "" {
		return "", "", false
	}
	for body := s[:len(s)-1]; ; {
		open := strings.LastIndexByte(body, '(')
		if open < 0 {
			return "", "", false
		}
		if name, ok = cutLastSpace(body[:open]); ok {
			return name, status, true
		}
		body = body[:open]
	}
}

// parseDoctest reads the XML report of a doctest binary run with -s -r=xml: one
// test per sub-case, passed when each expression in it succeeded.
func parseDoctest(log string, _ Context) (Statuses, error) {
	var m Statuses
	start := strings.Index(log, "<doctest")
	if start < 0 {
		return m, nil
	}
	const closing = "</doctest>"
	n := strings.Index(log[start:], closing)
	if n < 0 {
		return m, rollout.Errorf(rollout.KindScorer, rollout.Where{Byte: rollout.At(start)}, "expected %s after <doctest, found the end of the log", closing).
			WithFix("the test binary was cut off: grade the instance as an error")
	}
	root, err := readXML(log[start : start+n+len(closing)])
	if err != nil {
		return m, rollout.Errorf(rollout.KindScorer, rollout.Where{Byte: rollout.At(start)}, "the doctest report is not well-formed XML: %w", err).
			WithFix("grade the instance as an error")
	}
	for _, testCase := range root.find("TestCase", nil) {
		for _, sub := range testCase.find("SubCase", nil) {
			status := Passed
			for _, e := range sub.find("Expression", nil) {
				if success, ok := e.attr["success"]; !ok || success != "true" {
					status = Failed
				}
			}
			m.Set(testCase.name()+" > "+sub.name(), status)
		}
	}
	return m, nil
}

type element struct {
	tag      string
	attr     map[string]string
	children []*element
}

func (e *element) name() string {
	if n, ok := e.attr["name"]; ok {
		return n
	}
	return "None"
}

// find appends the descendants of e called tag, in document order.
func (e *element) find(tag string, to []*element) []*element {
	for _, c := range e.children {
		if c.tag == tag {
			to = append(to, c)
		}
		to = c.find(tag, to)
	}
	return to
}

// maxXMLDepth bounds the recursion over a report a patch may have written.
const maxXMLDepth = 1000

func readXML(s string) (*element, error) {
	dec := xml.NewDecoder(strings.NewReader(s))
	var root *element
	var open []*element
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			if root == nil || len(open) > 0 {
				return nil, io.ErrUnexpectedEOF
			}
			return root, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			e := &element{tag: t.Name.Local, attr: make(map[string]string, len(t.Attr))}
			if t.Name.Space != "" {
				e.tag = "{" + t.Name.Space + "}" + e.tag
			}
			for _, a := range t.Attr {
				if a.Name.Space == "" {
					e.attr[a.Name.Local] = a.Value
				}
			}
			switch {
			case len(open) > 0:
				parent := open[len(open)-1]
				parent.children = append(parent.children, e)
			case root != nil:
				return nil, errors.New("more than one root element")
			default:
				root = e
			}
			if open = append(open, e); len(open) > maxXMLDepth {
				return nil, errors.New("elements nest too deeply")
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) == 0 && trim(string(t)) != "" {
				return nil, errors.New("text outside the root element")
			}
		}
	}
}
