package prm

import (
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/decimal"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/prm/internal/command"
	"github.com/turnpack/turnpack/rollout"
)

// ScoreRange defines which numbers are valid votes. The zero value accepts −1 and 1.
type ScoreRange struct {
	// Values lists the accepted numbers. A number within 1e-9 of one counts as exactly that number.
	Values []float64
	// Min and Max are the inclusive bounds of a range, used if Values is empty and Min < Max.
	Min, Max float64
}

const scaleTolerance = 1e-9

// values returns the accepted values, nil for a range.
func (s ScoreRange) values() []float64 {
	switch {
	case len(s.Values) > 0:
		return s.Values
	case s.Min < s.Max:
		return nil
	}
	return []float64{-1, 1}
}

func (s ScoreRange) accept(v float64) (float64, bool) {
	values := s.values()
	if values == nil {
		return v, v >= s.Min && v <= s.Max
	}
	for _, want := range values {
		if math.Abs(v-want) < scaleTolerance {
			return want, true
		}
	}
	return 0, false
}

// text returns the accepted numbers as text.
func (s ScoreRange) text() string {
	values := s.values()
	if values == nil {
		return "[" + strconv.FormatFloat(s.Min, 'g', -1, 64) + ", " + strconv.FormatFloat(s.Max, 'g', -1, 64) + "]"
	}
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = strconv.FormatFloat(v, 'g', -1, 64)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// Rule defines how a judge's text becomes a number. The zero value is the rule of the swe-rl judge
// (OpenClaw-RL@0d034dd5e): the first decimal box, −1 or 1. Its chat judge is {Kind: "boxed-last",
// Digit: true} with −1, 0 or 1, its hindsight judge the same with −1 or 1 ([Hint] reads its hint), its
// terminal judge {Kind: "tail"}. All limits and cuts count code points, never bytes.
type Rule struct {
	// Kind selects the place of the vote: "boxed-first" or "", the first \boxed{…}, even if it is
	// unusable; "boxed-last", the last one; "tail", the first one among the last Tail code points;
	// "regex", group "score", else group 1, of the last match of Pattern; "json", member Field of the
	// last JSON object that has it.
	Kind string
	// Digit reads only boxes of the form \boxed{ sign? digit } without blanks. By default boxes hold
	// digits with an optional sign and fraction, surrounding white space is removed, and one inner
	// brace level is allowed. Digits are decimal digits of any script.
	Digit   bool
	Tail    int    // 0 means 50
	Pattern string // RE2
	Field   string // a dotted path; "" means "score"
	Scale   ScoreRange
}

// Parser returns the vote in a text, or an error of kind [rollout.KindJudge] with the reason why there
// is none. It is safe for concurrent use.
type Parser func(text string) (float64, error)

const defaultTail = 50

// Compile checks the rule, reports all faults at once and returns its parser.
func (r Rule) Compile() (Parser, error) {
	var f faults.List
	faults.Word(&f, "Rule.Kind", r.Kind, "boxed-first", "boxed-last", "tail", "regex", "json")
	if r.Tail < 0 {
		f.Add("Rule.Tail", "%d code points is negative", r.Tail)
	}
	for _, v := range append([]float64{r.Scale.Min, r.Scale.Max}, r.Scale.Values...) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			f.Add("Rule.Scale", "%g is not finite", v)
		}
	}
	switch s := r.Scale; {
	case s.Min == 0 && s.Max == 0: // no range
	case len(s.Values) > 0:
		f.Add("Rule.Scale", "found both values and a range from %g to %g", s.Min, s.Max)
	case s.Min >= s.Max:
		f.Add("Rule.Scale", "minimum %g is not below maximum %g", s.Min, s.Max)
	}
	for _, only := range []struct {
		field, kind string
		set         bool
	}{{"Tail", "tail", r.Tail > 0}, {"Pattern", "regex", r.Pattern != ""}, {"Field", "json", r.Field != ""}} {
		if only.set && r.Kind != only.kind {
			f.Add("Rule."+only.field, "it has a meaning with the kind %s only, found %q", only.kind, r.Kind)
		}
	}
	r.Scale.Values = slices.Clone(r.Scale.Values)
	var find func(string) (string, error)
	switch r.Kind {
	case "", "boxed-first":
		find = func(t string) (string, error) { return r.firstBox(t) }
	case "boxed-last":
		find = r.lastBox
	case "tail":
		n := cmp.Or(r.Tail, defaultTail)
		find = func(t string) (string, error) { return r.firstBox(tail(t, n)) }
	case "regex":
		re, err := regexp.Compile(r.Pattern)
		switch {
		case r.Pattern == "":
			f.Add("Rule.Pattern", "a regex rule needs a pattern with a group that holds the score")
		case err != nil:
			f.Add("Rule.Pattern", "%w", err)
		case re.NumSubexp() == 0:
			f.Add("Rule.Pattern", "%q has no group that holds the score", r.Pattern)
		default:
			find = regexFinder(re)
		}
	case "json":
		path := strings.Split(cmp.Or(r.Field, "score"), ".")
		find = func(t string) (string, error) { return jsonField(t, path) }
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return func(text string) (float64, error) {
		found, err := find(text)
		if err != nil {
			return 0, err
		}
		v, ok := plainNumber(found)
		if !ok {
			return 0, noVote("found %q, which is no plain decimal", clip(found))
		}
		if v, ok = r.Scale.accept(v); !ok {
			return 0, noVote("found %s, expected one of %s", clip(found), r.Scale.text())
		}
		return v, nil
	}, nil
}

func noVote(format string, args ...any) error {
	return rollout.Errorf(rollout.KindJudge, rollout.Where{}, format, args...)
}

const clipRunes = 40

// clip shortens quoted text for messages.
func clip(s string) string {
	if utf8.RuneCountInString(s) <= clipRunes {
		return s
	}
	return string([]rune(s)[:clipRunes]) + "…"
}

// One inner brace level is allowed: a box within a box is text of the outer box.
var (
	boxDecimal = regexp.MustCompile(`\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}`)
	boxDigit   = regexp.MustCompile(`\\boxed\{([-+]?\p{Nd})\}`)
)

func (r Rule) boxes() *regexp.Regexp {
	if r.Digit {
		return boxDigit
	}
	return boxDecimal
}

func (r Rule) firstBox(text string) (string, error) {
	if i := strings.Index(text, `\boxed{`); i >= 0 {
		if m := r.boxes().FindStringSubmatchIndex(text[i:]); m != nil {
			return strip(text[i+m[2] : i+m[3]]), nil
		}
	}
	return "", noVote(`found no \boxed{…}`)
}

func (r Rule) lastBox(text string) (string, error) {
	all := r.boxes().FindAllStringSubmatchIndex(text, -1)
	if len(all) == 0 {
		return "", noVote(`found no \boxed{…}`)
	}
	m := all[len(all)-1]
	return strip(text[m[2]:m[3]]), nil
}

func regexFinder(re *regexp.Regexp) func(string) (string, error) {
	group := max(re.SubexpIndex("score"), 1)
	return func(text string) (string, error) {
		all := re.FindAllStringSubmatchIndex(text, -1)
		for i := len(all) - 1; i >= 0; i-- {
			if m := all[i]; m[2*group] >= 0 {
				return strip(text[m[2*group]:m[2*group+1]]), nil
			}
		}
		return "", noVote("found no match of %q", clip(re.String()))
	}
}

// tail returns the last n code points of s.
func tail(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// strip removes white space as Python's str.strip does: Unicode white space and the four information
// separators.
func strip(s string) string {
	return strings.TrimFunc(s, pytext.IsSpace)
}

var plainDecimal = regexp.MustCompile(`\A[-+]?\p{Nd}+(?:\.\p{Nd}+)?\z`)

// plainNumber parses an optional sign, digits of any script and an optional fraction, without an
// exponent or a bare point.
func plainNumber(s string) (float64, bool) {
	if !plainDecimal.MatchString(s) {
		return 0, false
	}
	ascii := strings.Map(func(r rune) rune {
		if d := decimal.Digit(r); d >= 0 {
			return '0' + rune(d)
		}
		return r
	}, s)
	v, _ := strconv.ParseFloat(ascii, 64) // a number out of range is infinite
	return v, true
}

// jsonField returns the number at path in the last JSON object that has it.
func jsonField(text string, path []string) (string, error) {
	found, objects := "", 0
	command.EachObject(text, func(obj map[string]any) {
		objects++
		if v, ok := lookup(obj, path); ok {
			found = v
		}
	})
	switch {
	case found != "":
		return found, nil
	case objects == 0:
		return "", noVote("found no JSON object")
	}
	return "", noVote("found no number at %q in %d JSON objects", strings.Join(path, "."), objects)
}

func lookup(obj map[string]any, path []string) (string, bool) {
	for i, key := range path {
		v, ok := obj[key]
		if !ok {
			return "", false
		}
		if i == len(path)-1 {
			switch v := v.(type) {
			case json.Number:
				f, err := v.Float64()
				return strconv.FormatFloat(f, 'f', -1, 64), err == nil
			case string:
				return strip(v), strip(v) != ""
			}
			return "", false
		}
		if obj, ok = v.(map[string]any); !ok {
			return "", false
		}
	}
	return "", false
}
