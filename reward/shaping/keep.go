package shaping

import (
	"math"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Keep is rejection sampling: it selects the rollouts that give rows. The zero value keeps all. Every
// rule rejects a rollout without a reward; rejected rollouts stay in the statistics of their group.
type Keep struct {
	// Above keeps rewards greater than its value, AtLeast rewards of at least its value; nil = any.
	Above, AtLeast *float64
	// Resolved keeps rollouts that solved their task (see Rules.MinSolved).
	Resolved bool
	// Best is the number of rollouts to keep in each group: those with the highest rewards, and among
	// equal rewards the first; 0 = all.
	Best int
}

// ParseKeep parses the format of String: reward>X, reward>=X, resolved, best or best:N, separated by
// commas where several rules must all hold; "none" and an empty text keep all.
func ParseKeep(text string) (Keep, error) {
	var k Keep
	if text == "" || text == "none" {
		return k, nil
	}
	for _, part := range strings.Split(text, ",") {
		part = strings.ReplaceAll(part, " ", "")
		var err error
		switch {
		case part == "resolved":
			k.Resolved = true
		case part == "best":
			k.Best = 1
		case strings.HasPrefix(part, "best:"):
			var n int
			if n, err = strconv.Atoi(part[len("best:"):]); n < 1 {
				err = strconv.ErrRange
			}
			if k.Best == 0 || n < k.Best {
				k.Best = n
			}
		case strings.HasPrefix(part, "reward>="):
			k.AtLeast, err = bound(part[len("reward>="):], k.AtLeast)
		case strings.HasPrefix(part, "reward>"):
			k.Above, err = bound(part[len("reward>"):], k.Above)
		default:
			err = strconv.ErrSyntax
		}
		if err != nil {
			return Keep{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "keep"}, "found %q, expected reward>NUMBER, reward>=NUMBER, resolved, best or best:NUMBER", part).
				WithFix("write one of them, or several with commas between, such as resolved,best:1")
		}
	}
	return k, nil
}

// bound parses the number of a rule and returns it, or before if that is larger.
func bound(text string, before *float64) (*float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		err = strconv.ErrRange
	}
	if before != nil {
		x = max(x, *before)
	}
	return &x, err
}

// String returns k in the format that ParseKeep reads.
func (k Keep) String() string {
	var parts []string
	number := func(name string, x *float64) {
		if x != nil {
			parts = append(parts, name+strconv.FormatFloat(*x, 'g', -1, 64))
		}
	}
	number("reward>", k.Above)
	number("reward>=", k.AtLeast)
	if k.Resolved {
		parts = append(parts, "resolved")
	}
	if k.Best > 0 {
		parts = append(parts, "best:"+strconv.Itoa(k.Best))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ",")
}
