package logparse

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Runners of compiled and JVM languages: Go, Rust, C, C++, Java.

var (
	parseGoTest = perLine(trim, `--- (?P<word>PASS|FAIL|SKIP): (?P<test>.+) \(.+\)`,
		words{"PASS": Passed, "FAIL": Failed, "SKIP": Skipped}, nil)
	parseCargo = perLine(trim, `test<s>+(?P<test><S>+)<s>+\.\.\.<s>+(?P<word>ok|FAILED)`,
		words{"ok": Passed, "FAILED": Failed}, nil)
	parseAnt = perLine(trim, `\[junit\]<s>+\[(?P<word>PASS|FAIL|ERR)\]<s>+(?P<test>.+)`,
		words{"PASS": Passed, "FAIL": Failed, "ERR": Failed}, nil)
	parseJQ = perLine(trim, `(?P<word>PASS|FAIL):<s>(?P<test>.+)`,
		words{"PASS": Passed, "FAIL": Failed}, nil)
	parseMicroPython = perLine(trim, `(?P<word>pass|FAIL|skip)<s>+(?P<test>.+)`,
		words{"pass": Passed, "FAIL": Failed, "skip": Skipped}, nil)
	parseGoogleTest = perLine(trim, `.*\[<s>*(?P<word>OK|FAILED)<s>*\]<s>(?P<test>.*)<s>\(.*\)`,
		words{"OK": Passed, "FAILED": Failed}, nil)
)

// mavenTest matches the last test named on a command line.
var mavenTest = compile(`.*-Dtest=(<S>+)`)

// parseMaven pairs the tests named on command lines (-Dtest=NAME, one run per test) with the BUILD
// results, first in first out, because the output of shell tracing and of Maven interleaves.
func parseMaven(log string, _ Context) (Statuses, error) {
	var m Statuses
	var pending []string
	var unmatched []Status
	for line := range strings.SplitSeq(log, "\n") {
		if strings.Contains(line, "-Dtest=") {
			if g := mavenTest().FindStringSubmatch(line); g != nil {
				pending = append(pending, g[1])
			}
		}
		var result Status
		switch line = trimRight(line); {
		case strings.HasSuffix(line, "BUILD SUCCESS"):
			result = Passed
		case strings.HasSuffix(line, "BUILD FAILURE"):
			result = Failed
		default:
			continue
		}
		if len(pending) > 0 {
			m.Set(pending[0], result)
			pending = pending[1:]
		} else {
			unmatched = append(unmatched, result)
		}
	}
	for i := 0; i < min(len(pending), len(unmatched)); i++ {
		m.Set(pending[i], unmatched[i])
	}
	return m, nil
}

var (
	gradleResult = compile(`\A([^>].+)<s>(PASSED|FAILED)\z`)
	gradleTest   = compile(`\A[^>]<S>*<s>+><s>+<S>+\z`)
)

// parseGradle reads "class > method PASSED" lines; the status may be alone on a later line.
func parseGradle(log string, _ Context) (Statuses, error) {
	var m Statuses
	pending := ""
	for line := range strings.SplitSeq(log, "\n") {
		line = trim(line)
		if strings.HasSuffix(line, string(Passed)) || strings.HasSuffix(line, string(Failed)) {
			if g := gradleResult().FindStringSubmatch(line); g != nil {
				m.Set(g[1], Status(g[2]))
				pending = ""
				continue
			}
		}
		if strings.Contains(line, ">") && gradleTest().MatchString(line) {
			pending = line
		} else if pending != "" && (line == string(Passed) || line == string(Failed)) {
			m.Set(pending, Status(line))
			pending = ""
		}
	}
	return m, nil
}

var (
	redisResult = compile(`\A\[(ok|err|skip|ignore)\]:<s>(.+?)(?:<s>\(<d>+<s>*m?s\))?\z`)
	redisFile   = compile(`<s>+in<s>+<S>+\z`)
)

func parseRedis(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range strings.SplitSeq(log, "\n") {
		g := redisResult().FindStringSubmatch(trim(line))
		if g == nil {
			continue
		}
		switch g[1] {
		case "ok":
			m.Set(g[2], Passed)
		case "err":
			m.Set(redisFile().ReplaceAllLiteralString(g[2], ""), Failed)
		default:
			m.Set(g[2], Skipped)
		}
	}
	return m, nil
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
				if e.attr("success") != "true" {
					status = Failed
				}
			}
			m.Set(testCase.attr("name")+" > "+sub.attr("name"), status)
		}
	}
	return m, nil
}

type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
}

// attr returns the value of an attribute, "None" if it is missing.
func (e *element) attr(name string) string {
	value := "None"
	for _, a := range e.Attrs {
		if a.Name == (xml.Name{Local: name}) {
			value = a.Value
		}
	}
	return value
}

// find appends the descendants of e named tag, in document order.
func (e *element) find(tag string, to []*element) []*element {
	for i := range e.Children {
		c := &e.Children[i]
		if c.XMLName == (xml.Name{Local: tag}) {
			to = append(to, c)
		}
		to = c.find(tag, to)
	}
	return to
}

func readXML(s string) (*element, error) {
	dec := xml.NewDecoder(strings.NewReader(s))
	root := &element{}
	if err := dec.Decode(root); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows the root element")
	}
	return root, nil
}
