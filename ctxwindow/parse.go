package ctxwindow

import (
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Parse reads a policy in the form that command lines use: "none" or "" for None, else a name and a
// token budget: "headtail:32768", "tail:32768", "refill:32768", "swe-rl:32768". Compaction needs a
// summarizer and has no such form.
func Parse(s string) (Policy, error) {
	name, number, budgeted := strings.Cut(s, ":")
	if s == "none" || s == "" {
		return None{}, nil
	}
	budget, err := strconv.Atoi(number)
	if !budgeted || err != nil || budget < 1 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "window"}, "found %q, expected none, or headtail, tail, refill or swe-rl with a budget of 1 or more, as in refill:32768", s)
	}
	var p Policy
	switch name {
	case "headtail":
		p = HeadTail{Budget: budget}
	case "tail":
		p = Tail{Budget: budget}
	case "refill":
		p = Refill{Budget: budget}
	case "swe-rl":
		p = SWERL(budget)
	default:
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "window"}, "no window is named %q, expected none, headtail, tail, refill or swe-rl", name)
	}
	return p, p.Validate()
}
