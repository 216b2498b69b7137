package logparse

import (
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// Runners of PHP and Ruby.

func parsePHPUnit(log string, _ Context) (Statuses, error) {
	var m Statuses
	suite := "None" // what the reference prints before the first suite
	for line := range lines(log) {
		if name, ok := phpSuite(line); ok {
			suite = name
			continue
		}
		rest := trimLeft(line)
		r, n := utf8.DecodeRuneInString(rest)
		var status Status
		switch r {
		case '✔':
			status = Passed
		case '✘':
			status = Failed
		case '↩':
			status = Skipped
		default:
			continue
		}
		m.Set(suite+" > "+trimLeft(rest[n:]), status)
	}
	return m, nil
}

// phpSuite reads a test-suite heading, "Name (Namespace\Class)".
func phpSuite(line string) (string, bool) {
	if len(line) < 2 || line[len(line)-1] != ')' {
		return "", false
	}
	first, n := utf8.DecodeRuneInString(line)
	if !isWord(first) {
		return "", false
	}
	i := strings.LastIndex(line[:len(line)-2], " (")
	if i <= n {
		return "", false
	}
	return line[:i], true
}

// parseMinitest reads "Suite#test_name. = 0.00 s = ." lines: the outcome is the
// last of '.', 'F', 'E' on the line, the name ends at the last ". " before the
// last '=' before it.
func parseMinitest(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range lines(log) {
		line = trim(line)
		outcome := strings.LastIndexAny(line, ".FE")
		if outcome < 0 {
			continue
		}
		equals := strings.LastIndexByte(line[:outcome], '=')
		if equals < 0 {
			continue
		}
		end := strings.LastIndex(line[:equals], ". ")
		if end <= 0 {
			continue
		}
		if line[outcome] == '.' {
			m.Set(line[:end], Passed)
		} else {
			m.Set(line[:end], Failed)
		}
	}
	return m, nil
}

// parseCucumber reads the progress format: "name ....F".
func parseCucumber(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range lines(log) {
		line = trim(line)
		for end := len(line); ; {
			blank := strings.LastIndexByte(line[:end], ' ')
			if blank < 0 {
				break
			}
			progress := line[blank+1:]
			dots := len(progress) - len(strings.TrimLeft(progress, "."))
			switch {
			case dots >= 1 && strings.HasPrefix(progress[dots:], "F"):
				m.Set(line[:blank], Failed)
			case dots >= 2:
				m.Set(line[:blank], Passed)
			default:
				end = blank
				continue
			}
			break
		}
	}
	return m, nil
}

func parseRubyUnit(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range lines(log) {
		line = trim(line)
		if rest, ok := strings.CutPrefix(line, "test: "); ok && rubyResult(rest, &m) {
			continue
		}
		rubyResult(line, &m)
	}
	return m, nil
}

// rubyResult reads "name: ." with the last colon that an outcome follows.
func rubyResult(line string, m *Statuses) bool {
	for end := len(line); ; {
		colon := strings.LastIndexByte(line[:end], ':')
		if colon <= 0 {
			return false
		}
		end = colon
		tail := line[colon+1:]
		outcome := trimLeft(tail)
		if len(outcome) == len(tail) || outcome == "" {
			continue
		}
		var status Status
		switch outcome[0] {
		case '.':
			m.Set(line[:colon], Passed)
			return true
		case 'E', 'F':
			status = Failed
		case 'O':
			status = Skipped
		default:
			continue
		}
		if next, n := utf8.DecodeRuneInString(outcome[1:]); n > 0 && isWord(next) {
			continue
		}
		m.Set(line[:colon], status)
		return true
	}
}

func parseRSpecJSON(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range lines(log) {
		line = trim(line)
		passed := strings.LastIndex(line, " - passed")
		failed := strings.LastIndex(line, " - failed")
		switch {
		case passed > failed && passed > 0:
			m.Set(line[:passed], Passed)
		case failed > passed && failed > 0:
			m.Set(line[:failed], Failed)
		}
	}
	return m, nil
}

func parseJekyll(log string, c Context) (Statuses, error) {
	parts := strings.Split(c.InstanceID, "-")
	if len(parts) > 1 {
		switch parts[1] {
		case "9141", "8047", "8167":
			return parseMinitest(log, c)
		case "8761", "8771":
			return parseCucumber(log, c)
		}
	}
	return Statuses{}, unknownInstance("parse_log_jekyll", c)
}

func unknownInstance(parser string, c Context) error {
	return rollout.Errorf(rollout.KindScorer, rollout.Where{Field: "instance_id"}, "%s picks a runner by instance and does not know instance %q", parser, c.InstanceID).
		WithFix("set the instance id, or name the runner's own parser")
}
