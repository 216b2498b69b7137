package logparse

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

var statusWords = []string{"PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL"}

func startsWithStatus(line string) bool { return hasAnyPrefix(line, statusWords...) }

func endsWithStatus(line string) bool {
	return slices.ContainsFunc(statusWords, func(word string) bool { return strings.HasSuffix(line, word) })
}

// skipSummary reports whether a result line is pytest's "SKIPPED [3] file:line: reason", in which [3]
// is a count. It is limited to SKIPPED, since "PASSED [100%]" is a test id that two published
// instances list.
func skipSummary(status, name string) bool {
	if status != string(Skipped) || len(name) < 3 || name[0] != '[' || name[len(name)-1] != ']' {
		return false
	}
	return digitsPrefix(name[1:]) == len(name)-2
}

// shortSummary reads "STATUS test" from a line that begins with a status. As in the reference, the " -
// message" tail of a FAILED line is separated by replacing every " - " by one blank.
func shortSummary(line string) (status, test string, ok bool) {
	status, rest := nextField(line)
	test, _ = nextField(rest)
	if test == "-" && strings.HasPrefix(line, "FAILED") {
		// In any other case the replacement does not change the first two words.
		line = strings.ReplaceAll(line, " - ", " ")
		status, rest = nextField(line)
		test, _ = nextField(rest)
	}
	return status, test, test != "" && !skipSummary(status, test)
}

func parsePytest(log string, _ Context) (Statuses, error) {
	return shortSummaries(log, func(test string) string { return test }), nil
}

func parsePytestOptions(log string, _ Context) (Statuses, error) {
	return shortSummaries(log, shortenOption), nil
}

func shortSummaries(log string, rename func(test string) string) Statuses {
	var m Statuses
	for line := range strings.SplitSeq(log, "\n") {
		if startsWithStatus(line) {
			if status, test, ok := shortSummary(line); ok {
				m.Set(rename(test), Status(status))
			}
		}
	}
	return m
}

// shortenOption reduces a path used as a parameter to its last component: test_x[/a/b/c] becomes
// test_x[/c]. Text after the last bracket is dropped.
func shortenOption(test string) string {
	open := strings.IndexByte(test, '[')
	if open < 0 {
		return test
	}
	end := strings.LastIndexByte(test, ']')
	if end < open {
		return test
	}
	option := test[open+1 : end]
	if strings.HasPrefix(option, "/") && !strings.HasPrefix(option, "//") && !strings.Contains(option, "*") {
		option = option[strings.LastIndexByte(option, '/'):]
	}
	return test[:open] + "[" + option + "]"
}

func parseMatplotlib(log string, c Context) (Statuses, error) {
	if strings.Contains(log, "MouseButton.") {
		log = strings.NewReplacer("MouseButton.LEFT", "1", "MouseButton.RIGHT", "3").Replace(log)
	}
	return parsePytest(log, c)
}

var colour = compile(`\[<d>+m`)

func isControl(r rune) bool { return r > 0 && r < 0x20 }

// stripDecoration returns line without "[<digits>m", and then without the control characters 1..31;
// sequences formed by the second step are kept.
func stripDecoration(line string) string {
	line = colour().ReplaceAllLiteralString(line, "")
	return strings.Join(strings.FieldsFunc(line, isControl), "")
}

func parsePytestV2(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range strings.SplitSeq(log, "\n") {
		line = stripDecoration(line)
		switch {
		case startsWithStatus(line):
			if strings.HasPrefix(line, "FAILED") {
				line, _, _ = strings.Cut(line, " - ")
			}
			status, rest := nextField(line)
			test, _ := nextField(rest)
			if test != "" && !skipSummary(status, test) {
				m.Set(squeeze(rest), Status(status))
			}
		case endsWithStatus(line):
			before, status := lastField(line)
			if test := squeeze(before); test != "" {
				m.Set(test, Status(status))
			}
		}
	}
	return m, nil
}

func parseSeaborn(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range strings.SplitSeq(log, "\n") {
		failed := strings.HasPrefix(line, "FAILED")
		inner := !failed && strings.Contains(line, " PASSED ")
		if !failed && !inner && !strings.HasPrefix(line, "PASSED") {
			continue
		}
		first, rest := nextField(line)
		second, _ := nextField(rest)
		switch {
		case second == "":
		case failed:
			m.Set(second, Failed)
		case inner:
			if second == string(Passed) {
				m.Set(first, Passed)
			}
		default:
			m.Set(second, Passed)
		}
	}
	return m, nil
}

func parseSympy(log string, _ Context) (Statuses, error) {
	var m Statuses
	// Result lines are applied after all failure headings, regardless of their positions.
	var results []string
	for line := range strings.SplitSeq(log, "\n") {
		// A failure heading is "____ path/test_x.py:test_name ____": the test is the text between the
		// first and the last blank of the line.
		if first := strings.IndexByte(line, ' '); first >= 0 {
			last := strings.LastIndexByte(line, ' ')
			if first < last && strings.Contains(line[first+1:last], ".py:") {
				m.Set(line[first+1:last], Failed)
			}
		}
		if line = trim(line); strings.HasPrefix(line, "test_") {
			results = append(results, line)
		}
	}
	for _, line := range results {
		var status Status
		switch {
		case strings.HasSuffix(line, " E"):
			status = Errored
		case strings.HasSuffix(line, " F"):
			status = Failed
		case strings.HasSuffix(line, " ok"):
			status = Passed
		default:
			continue
		}
		test, _ := nextField(line)
		m.Set(test, status)
	}
	return m, nil
}

// djangoFailures lists, by status, the end of a line about a failed test and the heading before its
// name.
var djangoFailures = []struct {
	end, heading string
	status       Status
}{{" ... FAIL", "FAIL:", Failed}, {" ... ERROR", "ERROR:", Errored}}

func parseDjango(log string, _ Context) (Statuses, error) {
	const (
		versionTest = "--version is equivalent to version"
		siteNoise   = "Applying sites.0002_alter_domain_unique...test_no_migrations"
	)
	var m Statuses
	previous, havePrevious := "", false
	at := 0
	for line := range strings.SplitSeq(log, "\n") {
		at++
		line = trim(line)
		if strings.Contains(line, versionTest) {
			m.Set(versionTest, Passed)
		}
		if i := strings.Index(line, " ... "); i >= 0 {
			previous, havePrevious = line[:i], true
		} else if !hasAnyPrefix(line, "FAIL:", "ERROR:", "ok") {
			continue
		}
		for _, suffix := range [...]string{" ... ok", " ... OK", " ...  OK"} {
			if strings.HasSuffix(line, suffix) {
				if strings.HasPrefix(line, siteNoise) {
					_, line, _ = strings.Cut(line, "...")
					line = trim(line)
				}
				m.Set(strings.TrimSuffix(line, suffix), Passed)
				break
			}
		}
		if i := strings.Index(line, " ... skipped"); i >= 0 {
			m.Set(line[:i], Skipped)
		}
		for _, bad := range djangoFailures {
			if strings.HasSuffix(line, bad.end) {
				m.Set(line[:strings.Index(line, bad.end)], bad.status)
			}
			if strings.HasPrefix(line, bad.heading) {
				test, err := secondWord(line, at)
				if err != nil {
					return Statuses{}, err
				}
				m.Set(test, bad.status)
			}
		}
		if havePrevious && strings.HasPrefix(line, "ok") {
			m.Set(previous, Passed)
		}
	}
	djangoInterrupted(log, &m)
	return m, nil
}

func secondWord(line string, at int) (string, error) {
	_, rest := nextField(line)
	word, _ := nextField(rest)
	if word == "" {
		return "", rollout.Errorf(rollout.KindScorer, rollout.Where{Line: at}, "expected a test name after %q, found the end of the line", line).
			WithFix("the reference raises IndexError on such a log; grade the instance as an error or repair the log")
	}
	return word, nil
}

// djangoInterrupted sets the status of tests whose "... ok" was interrupted by another message: the
// test name and "... MESSAGE" on one line, "ok" on a later one.
func djangoInterrupted(log string, m *Statuses) {
	const (
		testing  = "Testing against Django installed in "
		server   = "Internal Server Error: /"
		sysCheck = "System check identified no issues (0 silenced)"
	)
	exhausted := false // no further end in the log, whatever the beginning
	interrupted(log, testing, m, func(after int) int {
		for from := after; !exhausted; {
			i := strings.Index(log[from:], " silenced).\nok")
			if i < 0 {
				exhausted = true
				break
			}
			end := from + i + len(" silenced).\nok")
			if end == len(log) || log[end] == '\n' {
				return end
			}
			from += i + 1
		}
		return -1
	})
	eol := 0 // the end of the line looked at
	interrupted(log, server, m, func(after int) int {
		if eol < after {
			eol = endOfLine(log, after)
		}
		if eol == after || log[eol-1] != '/' {
			return -1
		}
		return okLine(log, eol)
	})
	interrupted(log, sysCheck, m, func(after int) int { return okLine(log, after) })
}

// okLine returns the end of "\nok" at i if nothing follows it on its line, else -1.
func okLine(log string, i int) int {
	if !strings.HasPrefix(log[i:], "\nok") {
		return -1
	}
	if end := i + 3; end == len(log) || log[end] == '\n' {
		return end
	}
	return -1
}

// interrupted marks as passed every test whose line holds <test><space>...<space>message, if tail
// accepts the text after it: tail gets the offset after message and returns the end of the whole
// construct, or -1. Matches do not overlap.
func interrupted(log, message string, m *Statuses, tail func(after int) int) {
	done, start, seen := 0, 0, 0 // start is that of the last line of log[:seen]
	for pos := 0; ; {
		i := strings.Index(log[pos:], message)
		if i < 0 {
			return
		}
		at := pos + i
		pos = at + 1
		head, ok := cutLastSpace(log[:at])
		if !ok || !strings.HasSuffix(head, "...") {
			continue
		}
		head, ok = cutLastSpace(head[:len(head)-3])
		if !ok {
			continue
		}
		if eol := strings.LastIndexByte(head[seen:], '\n'); eol >= 0 {
			start = seen + eol + 1
		}
		if seen = len(head); start < done {
			continue
		}
		if end := tail(at + len(message)); end >= 0 {
			m.Set(head[start:], Passed)
			done = end
			pos = max(pos, end)
		}
	}
}
