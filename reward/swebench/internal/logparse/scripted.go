package logparse

import (
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Runners of PHP and Ruby.

var (
	// phpSuite matches a test suite heading, "Name (Namespace\Class)".
	phpSuite  = compile(`\A(<w>.+) \(.+\)\z`)
	phpResult = compile(`\A<s>*([✔✘↩])<s>*(.*)\z`)
)

func parsePHPUnit(log string, _ Context) (Statuses, error) {
	var m Statuses
	suite := "None" // the suite name that the reference uses before the first heading
	for line := range strings.SplitSeq(log, "\n") {
		if g := phpSuite().FindStringSubmatch(line); g != nil {
			suite = g[1]
		} else if g := phpResult().FindStringSubmatch(line); g != nil {
			m.Set(suite+" > "+g[2], map[string]Status{"✔": Passed, "✘": Failed, "↩": Skipped}[g[1]])
		}
	}
	return m, nil
}

var (
	// parseMinitest reads "Suite#test_name. = 0.00 s = ." lines: the outcome is the last '.', 'F' or
	// 'E' on the line, preceded by '='; the name ends at the last ". " before the last such '='.
	parseMinitest = perLine(trim, `(?P<test>.+)\. .*=.*(?P<word>[.FE]).*`,
		words{".": Passed, "F": Failed, "E": Failed}, nil)
	// parseCucumber reads the progress format: "name ....F".
	parseCucumber = perLine(trim, `(?P<test>.*) \.+(?P<word>\.|F).*`,
		words{".": Passed, "F": Failed}, nil)
	parseRSpecJSON = perLine(trim, `(?P<test>.+) - (?P<word>passed|failed).*`,
		words{"passed": Passed, "failed": Failed}, nil)

	rubyResult = compile(`\A(?:test: )?(.+):<s>+(?:(\.)|([EFO])(?:[^\p{L}\p{N}_]|\z))`)
)

// parseRubyUnit reads "name:." lines, split at the last colon followed by an outcome.
func parseRubyUnit(log string, _ Context) (Statuses, error) {
	var m Statuses
	for line := range strings.SplitSeq(log, "\n") {
		if g := rubyResult().FindStringSubmatch(trim(line)); g != nil {
			m.Set(g[1], map[string]Status{".": Passed, "E": Failed, "F": Failed, "O": Skipped}[g[2]+g[3]])
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
