package logparse

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// JavaScript runners whose test names depend on the suites around them.

// suiteStack holds the current path of suite headings, by indentation.
type suiteStack []suiteLevel

type suiteLevel struct {
	name   string
	indent int
}

// heading updates the path with an indented line that is not a result.
func (s *suiteStack) heading(line string) {
	chars, bytes := indent(line)
	if chars == 0 {
		return
	}
	levels := *s
	for len(levels) > 0 && levels[len(levels)-1].indent >= chars {
		levels = levels[:len(levels)-1]
	}
	*s = append(levels, suiteLevel{trimRight(line[bytes:]), chars})
}

// join returns the headings and name, separated by " - ".
func (s suiteStack) join(name string) string {
	var b strings.Builder
	for _, l := range s {
		b.WriteString(l.name)
		b.WriteString(" - ")
	}
	b.WriteString(name)
	return b.String()
}

func parseCalypso(log string, _ Context) (Statuses, error) {
	var m Statuses
	var suites suiteStack
	_, log, found := strings.Cut(log, " ./node_modules/.bin/jest ")
	for found {
		var run string
		run, log, found = strings.Cut(log, " ./node_modules/.bin/jest ")
		for line := range strings.SplitSeq(run, "\n") {
			if strings.HasPrefix(line, "Test Suites") || strings.HasPrefix(line, "  ● ") {
				break
			}
			body := trim(line)
			status, symbol := Passed, "✓"
			if !strings.HasPrefix(body, symbol) {
				if status, symbol = Failed, "✕"; !strings.HasPrefix(body, symbol) {
					suites.heading(line)
					continue
				}
			}
			name, ok := calypsoName(line, symbol)
			if !ok {
				return Statuses{}, rollout.Errorf(rollout.KindScorer, rollout.Where{}, "expected an indented result ending in its duration, found %q", line).
					WithFix("the reference raises AttributeError on such a log; grade the instance as an error")
			}
			if len(suites) == 0 {
				name = " - " + name
			}
			m.Set(trim(suites.join(name)), status)
		}
	}
	return m, nil
}

var milliseconds = compile(`\(<d>+ms\)`)

func calypsoName(line, symbol string) (string, bool) {
	if chars, _ := indent(line); chars == 0 {
		return "", false
	}
	name, ok := cutSpace(strings.TrimPrefix(trimLeft(line), symbol))
	if !ok {
		return "", false
	}
	all := milliseconds().FindAllStringIndex(name, -1)
	if len(all) == 0 {
		return name, true
	}
	last := all[len(all)-1]
	return name[:last[0]], last[1] == len(name)
}

func parseHighlightJS(log string, _ Context) (Statuses, error) {
	var m Statuses
	log = beforeSummary(log)
	suite, inSuite := "", false
	full := func(name string) string {
		if inSuite {
			return suite + "." + name
		}
		return name
	}
	for line := range strings.SplitSeq(log, "\n") {
		body := trim(line)
		if strings.HasPrefix(body, "✓") || strings.HasPrefix(body, "✔") {
			m.Set(full(dropMilliseconds(trimLeft(line)[len("✓"):])), Passed)
		} else if _, ok := cutNumber(body); ok {
			_, name, _ := strings.Cut(line, ")")
			m.Set(full(dropMilliseconds(name)), Failed)
		} else if strings.HasPrefix(line, "  ") {
			suite, inSuite = body, true
		}
	}
	return m, nil
}

func dropMilliseconds(name string) string { return trim(milliseconds().ReplaceAllString(name, "")) }

var summary = compile(`\n[ \t]*<d>+ passing`)

// beforeSummary returns the log up to its first "<n> passing" line.
func beforeSummary(log string) string {
	if loc := summary().FindStringIndex(log); loc != nil {
		return log[:loc[0]]
	}
	return log
}

func parseLighthouse(log string, c Context) (Statuses, error) {
	switch c.Version {
	case "9.5", "10.0", "10.2":
		return parseLighthouseMocha(log)
	}
	v, err := strconv.ParseFloat(trim(c.Version), 64)
	if err != nil {
		return Statuses{}, rollout.Errorf(rollout.KindScorer, rollout.Where{Field: "version"}, "parse_log_lighthouse chooses its rules by version, expected a number, found %q", c.Version).
			WithFix("set the version of the instance row")
	}
	if v >= 3 {
		return parseCarbon(log, c)
	}
	var m Statuses
	runs := strings.Split(log, "./node_modules/.bin/mocha --reporter json")
	for _, run := range runs[1:] {
		fullTitles(run, `"passes": [`, "]", Passed, &m)
		fullTitles(run, `"failures": [`, "],", Failed, &m)
	}
	return m, nil
}

// fullTitles reads the "fullTitle" lines between the last opening and the last
// closing text of a JSON report.
func fullTitles(run, opening, closing string, status Status, m *Statuses) {
	if i := strings.LastIndex(run, opening); i >= 0 {
		run = run[i+len(opening):]
	}
	if i := strings.LastIndex(run, closing); i >= 0 {
		run = run[:i]
	}
	m.setMatches(run, fullTitle(), status, identity)
}

var fullTitle = compile(`"fullTitle":<s>"(.*)",\n`)

var (
	lighthouseRun   = compile(`running<s><d>+<s>test<s>files`)
	lighthouseEnd   = compile(`<d>+<s>passing`)
	lighthouseTimed = compile(`\A(.*)<s>\(<d>+m+s\)`)
)

func parseLighthouseMocha(log string) (Statuses, error) {
	var m Statuses
	for _, run := range lighthouseRun().Split(log, -1)[1:] {
		if loc := lighthouseEnd().FindStringIndex(run); loc != nil {
			run = run[:loc[0]]
		}
		var suites suiteStack
		for line := range strings.SplitSeq(trim(run), "\n") {
			body := trim(line)
			status := Failed
			rest, ok := strings.CutPrefix(body, "✔")
			if ok {
				status = Passed
			} else {
				rest, ok = cutNumber(body)
			}
			if ok {
				rest, ok = cutSpace(rest)
			}
			if !ok {
				suites.heading(line)
				continue
			}
			if g := lighthouseTimed().FindStringSubmatch(rest); g != nil {
				rest = g[1]
			}
			m.Set(suites.join(rest), status)
		}
	}
	return m, nil
}

func parsePrism(log string, _ Context) (Statuses, error) {
	var m Statuses
	runs := strings.Split(log, "./node_modules/.bin/mocha tests/run.js --reporter json")
	for n, run := range runs[1:] {
		if _, after, ok := strings.Cut(run, "{"); ok {
			run = after
		}
		if i := strings.LastIndexByte(run, '}'); i >= 0 {
			run = run[:i]
		}
		var report map[string]json.RawMessage
		err := json.Unmarshal([]byte("{"+run+"}"), &report)
		for _, part := range [...]struct {
			key    string
			status Status
		}{{"failures", Failed}, {"passes", Passed}} {
			var tests []map[string]json.RawMessage
			if err == nil {
				if err = json.Unmarshal(report[part.key], &tests); err == nil && tests == nil {
					err = fmt.Errorf("%s is null", part.key)
				}
			}
			for _, test := range tests {
				var title *string
				if err == nil {
					err = json.Unmarshal(test["fullTitle"], &title)
				}
				switch {
				case err != nil:
				case title == nil:
					err = errors.New("a fullTitle is null")
				default:
					m.Set(*title, part.status)
				}
			}
		}
		if err != nil {
			return Statuses{}, rollout.Errorf(rollout.KindScorer, rollout.Where{}, "expected mocha's JSON report after run %d of the test command: %w", n+1, err).
				WithFix("the reference raises on such a log; grade the instance as an error")
		}
	}
	return m, nil
}

func parseNext(log string, c Context) (Statuses, error) {
	if c.Version == "1.27" {
		return parseNextCypress(log)
	}
	return parseNextKarma(log)
}

var assertionBlock = compile(`AssertionError:<s>+#(?s:.*?)\n\n`)

func parseNextKarma(log string) (Statuses, error) {
	var m Statuses
	var suites suiteStack
	log = assertionBlock().ReplaceAllString(stripANSI(log), "")
	for _, run := range strings.Split(log, " xvfb-run ")[1:] {
		if i := strings.LastIndex(run, "Starting browser Chrome"); i >= 0 {
			run = run[i+len("Starting browser Chrome"):]
		}
		for line := range strings.SplitSeq(run, "\n") {
			if strings.HasPrefix(line, "TOTAL") {
				break
			}
			body := trim(line)
			if hasAnyPrefix(body, "ERROR", "LOG", "WARN", "Check", "in") {
				continue
			}
			if _, name, ok := strings.Cut(line, "✗"); ok {
				m.Set(suites.join(trimLeft(name)), Failed)
			} else if _, name, ok := strings.Cut(line, "✓"); ok {
				m.Set(suites.join(trimLeft(name)), Passed)
			} else {
				suites.heading(line)
			}
		}
	}
	return m, nil
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

var (
	cypressSuite   = compile(`Running:(.*)\)\n{3}<s>{2}(.*)\n`)
	cypressFailure = compile(`(?m)^<s>{4}<d>+\)<s>(.*)`)
	cypressSuccess = compile(`(?m)^<s>{4}✓<s>(.*)\(`)
)

func parseNextCypress(log string) (Statuses, error) {
	var m Statuses
	suites := cypressSuite().FindAllStringSubmatchIndex(log, -1)
	for i, s := range suites {
		end := len(log)
		if i+1 < len(suites) {
			end = suites[i+1][0]
		}
		suite, body := log[s[4]:s[5]], log[s[1]:end]
		name := func(test string) string { return suite + ": " + trim(test) }
		m.setMatches(body, cypressFailure(), Failed, name)
		m.setMatches(body, cypressSuccess(), Passed, name)
	}
	return m, nil
}

func parseKarma(log string, _ Context) (Statuses, error) {
	var m Statuses
	current, started := -1, false
	var suite []string
	for line := range strings.SplitSeq(log, "\n") {
		switch {
		case strings.HasPrefix(line, "SUMMARY:"):
			return m, nil
		case strings.Contains(line, "Starting browser"):
			started = true
			continue
		case !started:
			continue
		}
		_, bytes := indent(line)
		space, body := line[:bytes], line[bytes:]
		symbol, n := utf8.DecodeRuneInString(body)
		if symbol == '✔' || symbol == '✖' {
			if name, ok := cutSpace(body[n:]); ok {
				path := strings.Join(append(suite[:len(suite):len(suite)], name), " > ")
				if symbol == '✔' {
					m.Set(path, Passed)
				} else {
					m.Set(path, Failed)
				}
				continue
			}
		}
		// A heading: its last white space separates indentation and name.
		space, ok := cutLastSpace(space)
		level := utf8.RuneCountInString(space)
		switch {
		case !ok || level == 0 || level == current:
		case level > current:
			current = level
			suite = append(suite, body)
		default:
			current = level
			if len(suite) == 0 {
				return Statuses{}, rollout.Errorf(rollout.KindScorer, rollout.Where{}, "heading %q closes a suite that was never opened", line).
					WithFix("the reference raises IndexError on such a log; grade the instance as an error")
			}
			suite = suite[:len(suite)-1]
		}
	}
	return m, nil
}

var (
	quartoTest = []string{"[smoke]", "[unit]"}
	quartoTemp = []func() *regexp.Regexp{compile(`/tmp/<w>+\.qmd`), compile(`/tmp/<w>+/`)}
)

func parseQuarto(log string, _ Context) (Statuses, error) {
	var m Statuses
	renamed := map[string]string{}
	for line := range strings.SplitSeq(log, "\n") {
		if strings.Contains(line, "ERRORS") || strings.Contains(line, "failures:") {
			break
		}
		if !strings.Contains(line, quartoTest[0]) && !strings.Contains(line, quartoTest[1]) {
			continue
		}
		for _, temp := range quartoTemp {
			re := temp()
			found := re.FindString(line)
			if found == "" {
				continue
			}
			if _, known := renamed[found]; !known {
				renamed[found] = "/tmp/" + strconv.Itoa(len(renamed))
			}
			line = re.ReplaceAllLiteralString(line, renamed[found])
		}
		name, _, _ := strings.Cut(line, "...")
		name = trim(name)
		if strings.HasPrefix(line, "test result:") || strings.Contains(line, "34mINFO") ||
			strings.Contains(line, "passed") && strings.Contains(line, "failed") && strings.Contains(line, "steps") {
			continue
		}
		_, known := m.Get(name)
		switch {
		case strings.Contains(line, "32mok"):
			m.Set(name, Passed)
		case strings.Contains(line, "31mFAILED") || !known:
			m.Set(name, Failed)
		}
	}
	return m, nil
}
