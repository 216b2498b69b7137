package swebench

import (
	"slices"
	"strings"
	"unicode"

	"github.com/turnpack/turnpack/internal/decimal"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/reward/swebench/internal/logparse"
	"github.com/turnpack/turnpack/rollout"
)

// Marker lines printed by the evaluation script.
const (
	markerStart        = ">>>>> Start Test Output"
	markerEnd          = ">>>>> End Test Output"
	markerApplied      = ">>>>> Applied Patch (pred)"
	markerApplyFailed  = ">>>>> Patch Apply Failed"
	markerResetFailed  = ">>>>> Reset Failed"
	markerTestsErrored = ">>>>> Tests Errored"
	markerTestsTimeout = ">>>>> Tests Timed Out"
	markerExitCode     = ">>>>> Test Exit Code:"
)

// Reasons why a log is not a run, in the order of the checks.
const (
	causeNone         = ""
	causeApplyFailed  = "apply_failed"  // the patch did not apply
	causeResetFailed  = "reset_failed"  // the test files could not be reset
	causeTestsError   = "tests_error"   // the test command could not run
	causeTestsTimeout = "tests_timeout" // the test command ran out of time
	causeNoMarkers    = "no_markers"    // the start or the end of the output is missing
	causeNoResults    = "no_results"    // no test is named and no runner left evidence
	causeExitCode     = "exit_code"     // non-zero exit status, yet no failure reported
)

// Run is the content of a test log.
type Run struct {
	// Found reports whether the log counts as a run; Cause is the reason if it does not.
	Found bool
	Cause string
	// Statuses holds the tests in the order of their first appearance; empty if Found is false.
	Statuses logparse.Statuses
}

// Spec holds the data of an instance that grading needs.
type Spec struct {
	InstanceID string
	Version    string // used by two JavaScript parsers only
	Parser     string // one of Parsers, "parse_log_pytest"
	// EvalType selects how a listed test without a status in the log counts: "pass_and_fail" or "", as
	// failed; "fail_only", as passed, like every test not reported as failed.
	EvalType   string
	FailToPass []string
	PassToPass []string
	unmarked   bool // the harness writes no markers
}

const (
	passAndFail = "pass_and_fail"
	failOnly    = "fail_only"
)

// validate reports every fault of the spec.
func (s Spec) validate() error {
	var f faults.List
	if _, ok := logparse.Lookup(s.Parser); !ok {
		f.Join(rollout.Errorf(rollout.KindInput, rollout.Where{Field: "log_parser"}, "instance %q: no log parser %q", s.InstanceID, s.Parser).
			WithFix("use one of swebench.Parsers()"))
	}
	if !slices.Contains([]string{"", passAndFail, failOnly}, s.EvalType) {
		f.Add("eval_type", "instance %q: expected pass_and_fail or fail_only, found %q", s.InstanceID, s.EvalType)
	}
	return f.Err()
}

// readLog reads an evaluation log. CRLF and lone CR end lines like LF. Every log gives a result; an
// error means that the spec is invalid (kind input) or that the parser cannot read the log (kind
// scorer). Bytes that are not UTF-8 are kept; the reference cannot open such a file.
func (s Spec) readLog(log string) (Run, error) {
	if err := s.validate(); err != nil {
		return Run{}, err
	}
	log = unifyLines(log)
	marks := findMarkers(log)
	if marks.bad != causeNone {
		return Run{Cause: marks.bad}, nil
	}
	region := ""
	switch {
	case marks.start >= 0 && marks.end >= 0:
		region = log[marks.start:marks.regionEnd]
	case s.unmarked && marks.start < 0 && marks.end < 0 && strings.Contains(strings.ToLower(log), "applied patch"):
		region = log[strings.LastIndex(log, markerApplied)+1:]
	default:
		return Run{Cause: causeNoMarkers}, nil
	}

	parse, _ := logparse.Lookup(s.Parser)
	context := logparse.Context{InstanceID: s.InstanceID, Version: s.Version}
	run := Run{Found: true}
	var err error
	if run.Statuses, err = parse(region, context); err != nil {
		return Run{}, err
	}
	if run.Statuses.Len() == 0 {
		// Nothing was recognised between the markers.
		if run.Statuses, err = parse(log, context); err != nil {
			return Run{}, err
		}
		if run.Statuses.Len() == 0 && !suiteRan(log) {
			return Run{Cause: causeNoResults}, nil
		}
	}
	if strings.ContainsFunc(marks.exitCode, func(r rune) bool { return decimal.Digit(r) > 0 }) && run.Statuses.Len() > 0 && !anyFailure(&run.Statuses) {
		return Run{Cause: causeExitCode}, nil
	}
	return run, nil
}

// unifyLines replaces CRLF and lone CR by LF.
func unifyLines(log string) string {
	return strings.ReplaceAll(strings.ReplaceAll(log, "\r\n", "\n"), "\r", "\n")
}

// markers holds the content of the evaluation script's marker lines.
type markers struct {
	bad       string // the first failure code in the order of the causes
	start     int    // offset after the first start marker, -1 if there is none
	end       int    // offset of the first end marker anywhere, -1 if there is none
	regionEnd int    // where the first region ends: an end or a start marker, or the log's end
	exitCode  string // "", or the number that the exit code marker tells, in digits of any script
}

// failureMarkers holds the failure codes in the order of the causes.
var failureMarkers = [...]struct {
	text  string
	cause string
}{
	{markerApplyFailed, causeApplyFailed},
	{markerResetFailed, causeResetFailed},
	{markerTestsErrored, causeTestsError},
	{markerTestsTimeout, causeTestsTimeout},
}

// findMarkers finds all markers in one pass, since logs are long and '>' is rare.
func findMarkers(log string) markers {
	m := markers{start: -1, end: -1, regionEnd: len(log)}
	worst := len(failureMarkers)
	for pos := 0; ; pos++ {
		i := strings.IndexByte(log[pos:], '>')
		if i < 0 {
			break
		}
		pos += i
		rest := log[pos:]
		closes := m.start >= 0 && m.regionEnd == len(log)
		switch {
		case strings.HasPrefix(rest, markerStart):
			if m.start < 0 {
				m.start = pos + len(markerStart)
			} else if closes {
				m.regionEnd = pos
			}
		case strings.HasPrefix(rest, markerEnd):
			if m.end < 0 {
				m.end = pos
			}
			if closes {
				m.regionEnd = pos
			}
		case strings.HasPrefix(rest, markerExitCode):
			if m.exitCode == "" {
				m.exitCode = exitCode(rest[len(markerExitCode):])
			}
		}
		for k, f := range failureMarkers[:worst] {
			if strings.HasPrefix(rest, f.text) {
				worst, m.bad = k, f.cause
			}
		}
	}
	return m
}

func anyFailure(s *logparse.Statuses) bool {
	for _, status := range s.All() {
		if status == logparse.Failed || status == logparse.Errored {
			return true
		}
	}
	return false
}

// exitCode returns the digits of the number at the beginning of s, after the exit code marker; "" if
// there is none.
func exitCode(s string) string {
	s = strings.TrimPrefix(strings.TrimLeftFunc(s, pytext.IsSpace), "-")
	return s[:len(s)-len(strings.TrimLeftFunc(s, unicode.IsDigit))]
}
