package logparse

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/decimal"
)

// JavaScript runners whose result is one line per test.

var (
	parseJest = perLine(trim, `(?P<word>[✓✕○])<s>(?P<test>.+?)(?:<s>\(<d>+<s>*m?s\))?`,
		words{"✓": Passed, "✕": Failed, "○": Skipped}, trim)
	parseVitest = perLine(trim, `(?P<word>[✓×↓])<s>(?P<test>.+?)(?:<s>(?:<d>+<s>*m?s?|\[skipped\]))?`,
		words{"✓": Passed, "×": Failed, "↓": Skipped}, nil)
	parseJestJSON = perLine(trim, `\[(?P<word>PASSED|FAILED)\]<s>(?P<test>.+)`,
		words{"PASSED": Passed, "FAILED": Failed}, nil)
	parseTAP = perLine(trim, `(?P<word>ok|not ok) <d>+ (?P<test>.+)`,
		words{"ok": Passed, "not ok": Failed}, nil)
	parseMarked = perLine(identity, `<d>+\)<s>(?P<test>.*)`, words{"": Failed}, trim)
	// parseCarbon reads "PASS file (1.2 s)" and "FAIL file" lines.
	parseCarbon = perLine(identity, `(?P<word>PASS|FAIL)<s>(?P<test>.*)`, words{"PASS": Passed, "FAIL": Failed}, dropFirstTiming)
)

func parseImmutable(log string, c Context) (Statuses, error) {
	switch c.InstanceID[strings.LastIndexByte(c.InstanceID, '-')+1:] {
	case "2006":
		return parseJest(log, c)
	case "2005":
		return parseJestJSON(log, c)
	}
	return Statuses{}, unknownInstance("parse_log_immutable_js", c)
}

// carbonTimings are tried in order.
var carbonTimings = []func() *regexp.Regexp{
	compile(`\A(.*)<s>\(<d.>+ms\)`),
	compile(`\A(.*)<s>\(<d.>+<s>s\)`),
	compile(`\A(.*)<s>\(<d.>+s\)`),
}

// dropFirstTiming truncates a line at its last " (12ms)", else at its last " (3 s)", else at its last
// " (3s)".
func dropFirstTiming(s string) string {
	for _, timing := range carbonTimings {
		if g := timing().FindStringSubmatch(s); g != nil {
			return g[1]
		}
	}
	return s
}

// cutNumber removes a prefix such as "12)" from a line.
func cutNumber(line string) (rest string, ok bool) {
	n := digitsPrefix(line)
	if n == 0 {
		return "", false
	}
	return strings.CutPrefix(line[n:], ")")
}

// setMatches sets the status of every test that the first group of re matches in log, under its name after
// rename.
func (s *Statuses) setMatches(log string, re *regexp.Regexp, status Status, rename func(string) string) {
	for _, g := range re.FindAllStringSubmatch(log, -1) {
		s.Set(rename(g[1]), status)
	}
}

func identity(test string) string { return test }

var (
	// The white space after the word may be the line end: the name is then the next line.
	grommetFailed = compile(`(?m)^FAIL<s>(.*)`)
	grommetPassed = compile(`(?m)^PASS<s>(.*)`)
	grommetTiming = compile(`<s>\(<d.>+<s>?(?:ms|s)\)\z`)
)

func parseGrommet(log string, _ Context) (Statuses, error) {
	var m Statuses
	name := func(line string) string { return grommetTiming().ReplaceAllLiteralString(trim(line), "") }
	m.setMatches(log, grommetFailed(), Failed, name)
	m.setMatches(log, grommetPassed(), Passed, name)
	return m, nil
}

// Failure headings of the karma reporters; the group is the name of the test.
var (
	chartFailure = compile(`Chrome<s><d.>+<blank>\(.+?\)<blank>(.*)FAILED(?m:$)`)

	bpmnFailures = []func() *regexp.Regexp{
		compile(`2KPhantomJS<s><d.>+<s>\(Linux<s><d.>+\)<s>(.*)FAILED\n`),
		compile(`2KPhantomJS<s><d.>+<s>\(Linux<s>x86_64\)<s>(.*)FAILED\n`),
		compile(`Chrome<s>Headless<s>.*<s>\(Linux<s>x86_64\)<s>(.*)FAILED\n`),
		compile(`HeadlessChrome<s><d.>+<s>\(Linux<s><d.>+\)<s>(.*)FAILED\n`),
	}

	openLayersFailures = []func() *regexp.Regexp{
		compile(`Chrome<s>Headless<s><d.>+<s>\(Linux<s><S>+\)<s>(.*)<s>FAILED\n`),
		compile(`Chrome<s><d.>+<s>\(Linux<s><S>+\)<s>(.*)FAILED\n`),
	}
	openLayersCase = compile(`(?m)^case<s>(.*):<s>mismatch`)

	// mochaError matches a "  1) suite\n test\n Error:" block: two white spaces at a line start, a
	// number, and everything up to the next "Error:".
	mochaError = compile(`(?m)^<s>{2}<d>+\)((?s:.*?))Error:`)
	// eslintNumber and eslintTitle match a "  1) title … SomeError" block of mocha's min
	// reporter: the title ends at the first white space after which the line holds "Error".
	eslintNumber = compile(`<s>{2}<d>+\z`)
	eslintTitle  = compile(`\A((?s:.*?))<s>+.*Error`)
)

func parseChartJS(log string, _ Context) (Statuses, error) {
	var m Statuses
	m.setMatches(stripANSI(log), chartFailure(), Failed, identity)
	return m, nil
}

func parseBPMN(log string, _ Context) (Statuses, error) {
	var m Statuses
	for _, heading := range bpmnFailures {
		m.setMatches(log, heading(), Failed, identity)
	}
	return m, nil
}

func parseOpenLayers(log string, _ Context) (Statuses, error) {
	var m Statuses
	for _, heading := range openLayersFailures {
		m.setMatches(log, heading(), Failed, squeeze)
	}
	m.setMatches(log, mochaError(), Failed, squeeze)
	m.setMatches(log, openLayersCase(), Failed, squeeze)
	return m, nil
}

// maxNumber is the maximum length in bytes of the number of a failure, including the white space
// before it.
const maxNumber = 64

func parseESLint(log string, _ Context) (Statuses, error) {
	var m Statuses
	for {
		before, rest, ok := strings.Cut(log, ")")
		if !ok {
			return m, nil
		}
		log = rest
		if r, _ := utf8.DecodeLastRuneInString(before); decimal.Digit(r) < 0 || !eslintNumber().MatchString(before[max(0, len(before)-maxNumber):]) {
			continue
		}
		g := eslintTitle().FindStringSubmatchIndex(rest)
		if g == nil {
			return m, nil // no title after a later number would match either
		}
		m.Set(squeeze(rest[g[2]:g[3]]), Failed)
		log = rest[g[1]:]
	}
}
