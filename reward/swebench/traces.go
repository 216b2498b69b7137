package swebench

import (
	"regexp"
	"strings"
	"unicode"
)

// suiteRan reports whether a runner left evidence of having run at least one
// test in a log that names none, which tells "ran without failures" from "never
// ran". Each count must not be zero: a runner that loses its browser at once
// still prints "Executed 0 of 0".
func suiteRan(log string) bool {
	for _, t := range suiteTraces {
		for pos := 0; ; {
			i := strings.Index(log[pos:], t.literal)
			if i < 0 {
				break
			}
			at := pos + i
			pos = at + 1
			if t.counted && !endsInCount(log[:at]) {
				continue
			}
			if t.lineStart && at > 0 && log[at-1] != '\n' {
				continue
			}
			if t.tail.MatchString(log[at+len(t.literal):]) {
				return true
			}
		}
	}
	return false
}

type suiteTrace struct {
	literal   string         // cheap to look for
	tail      *regexp.Regexp // what must follow, anchored
	counted   bool           // a non-zero number must precede
	lineStart bool
}

const pySpace = `[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]`

var suiteTraces = []suiteTrace{
	{literal: "Executed ", tail: regexp.MustCompile(`\A[1-9]\p{Nd}* of \p{Nd}`)},
	{literal: "TOTAL: ", tail: regexp.MustCompile(`\A[1-9]\p{Nd}* (?:SUCCESS|FAILED)`)},
	{literal: " passing", tail: regexp.MustCompile(`\A`), counted: true},
	{literal: "Tests:", tail: regexp.MustCompile(`\A` + pySpace + `+[1-9]`)},
	{literal: "Test Suites:", tail: regexp.MustCompile(`\A` + pySpace + `+(?:\p{Nd}+ [\p{L}\p{N}_]+, )*[1-9]\p{Nd}* total`)},
	{literal: "# tests ", tail: regexp.MustCompile(`\A[1-9]`), lineStart: true},
	{literal: " spec", tail: regexp.MustCompile(`\As?, \p{Nd}+ failure`), counted: true},
	{literal: "': ok", tail: regexp.MustCompile(`\A(?m:$)`)},
}

// endsInCount reports whether s ends in a number with a digit 1 to 9 in it,
// from which on it is a number.
func endsInCount(s string) bool {
	digits := s[len(strings.TrimRightFunc(s, func(r rune) bool { return unicode.Is(unicode.Nd, r) })):]
	return strings.ContainsAny(digits, "123456789")
}

// Infra is a sign that the environment, not the patch, broke a run.
type Infra struct {
	Reason string // "out_of_memory", "missing_module", …
	// Certain is true for signs that a patch of the sources cannot cause; the
	// others may have either cause.
	Certain bool
}

var infraSigns = []struct {
	Infra
	any  []string
	line string // a whole line
	re   *regexp.Regexp
}{
	{Infra: Infra{"browser_launch_failed", true}, any: []string{"Failed to launch", "Failed to connect to the bus"}},
	{Infra: Infra{"display_unavailable", true}, any: []string{"cannot open display", "Missing X server", "unable to open X display"}},
	{Infra: Infra{"out_of_memory", true}, any: []string{"Cannot allocate memory", "OutOfMemoryError"}, line: "Killed"},
	{Infra: Infra{"container_unavailable", true}, any: []string{"Error response from daemon", "Cannot connect to the Docker daemon"}},
	{Infra: Infra{"network_unreachable", true}, any: []string{"Could not resolve host", "Temporary failure in name resolution"}},
	{Infra: Infra{"missing_module", false}, any: []string{"Cannot find module", "MODULE_NOT_FOUND", "ModuleNotFoundError"}},
	{Infra: Infra{"no_tests_collected", false}, any: []string{"no tests ran", "collected 0 items"}},
	{Infra: Infra{"tests_timed_out", false}, any: nil, re: regexp.MustCompile(`Timeout error: \p{Nd}+ seconds exceeded`)},
}

// classifyInfra looks for the first known sign of a broken environment in a
// log. The reference does so only for logs that are not a run, and lets the
// answer change no verdict.
func classifyInfra(log string) (Infra, bool) {
	log = unifyLines(log)
	for _, sign := range infraSigns {
		for _, text := range sign.any {
			if strings.Contains(log, text) {
				return sign.Infra, true
			}
		}
		if sign.line != "" && hasLine(log, sign.line) || sign.re != nil && sign.re.MatchString(log) {
			return sign.Infra, true
		}
	}
	return Infra{}, false
}

func hasLine(log, line string) bool {
	for pos := 0; ; {
		i := strings.Index(log[pos:], line)
		if i < 0 {
			return false
		}
		at, end := pos+i, pos+i+len(line)
		if (at == 0 || log[at-1] == '\n') && (end == len(log) || log[end] == '\n') {
			return true
		}
		pos = end
	}
}
