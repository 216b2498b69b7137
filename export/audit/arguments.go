package audit

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/turnpack/turnpack/internal/anyrows"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

// argumentsAt matches the key of a JSON call, outside other strings, whose arguments are a
// string.
var argumentsAt = regexp.MustCompile(`(?:^|[^\\])"(?:arguments|parameters)"\s*:\s*"`)

// bracedArguments matches JSON text inside the braces of a call in Gemma 4's own notation,
// which has no JSON.
var bracedArguments = regexp.MustCompile(`call:[^\s{}<>"]+\{\s*\{\s*"`)

// arguments finds trained calls whose arguments are JSON text inside a string: the template was
// given the recorded JSON text instead of the object it encodes.
func (a *auditor) arguments(r *anyrows.Row) {
	for _, s := range runs(r) {
		for from := s.from; from < s.to; { // the text between two control tokens
			to := from
			for to < s.to && to < len(r.IDs) && !a.opts.Model.Special[r.IDs[to]] {
				to++
			}
			if from < to && a.callIn(r, from, to) {
				text := a.text(r.IDs[from:to])
				if found := escapedArguments(text); found != "" {
					a.report(r, "escaped-arguments", col.LossMask, from, to-from, "a call says %.60q", found)
				}
			}
			from = to + 1
		}
	}
}

// callIn reports whether tokens [from, to) may be part of a call.
func (a *auditor) callIn(r *anyrows.Row, from, to int) bool {
	if len(r.Flags) < to {
		return true
	}
	for _, f := range r.Flags[from:to] {
		if f&rollout.FlagToolCall != 0 {
			return true
		}
	}
	return false
}

// escapedArguments returns text from the first escaped arguments on, or "" if there are none.
func escapedArguments(text string) string {
	if at := bracedArguments.FindStringIndex(text); at != nil {
		return text[at[0]:]
	}
	whole := strings.TrimSpace(text)
	if encodesObject(whole, true) {
		return whole
	}
	for _, at := range argumentsAt.FindAllStringIndex(text, -1) {
		if encodesObject(text[at[1]-1:], false) {
			return text[at[1]-1:]
		}
	}
	return ""
}

// encodesObject reports whether text begins with (if whole: is) a JSON string that contains a
// JSON object.
func encodesObject(text string, whole bool) bool {
	d := json.NewDecoder(strings.NewReader(text))
	var inner string
	if !strings.HasPrefix(text, `"`) || d.Decode(&inner) != nil || whole && d.InputOffset() != int64(len(text)) {
		return false
	}
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(inner), &object) == nil && object != nil
}
