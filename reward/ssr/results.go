package ssr

import (
	"maps"
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// passed and failed are the results that a parser may report for a test.
const (
	passed = "passed"
	failed = "failed"
)

// Reasons why the output of a parser is not a test map.
const (
	reasonNotJSON = "not_json"
	reasonBadMap  = "bad_map"
)

// Results maps test ids to "passed" or "failed".
type Results map[string]string

// ParseResults parses the output of an artifact's parser: a JSON object, not empty, whose values are
// exactly "passed" or "failed". reason is "", or the fault: not_json or bad_map. The last of two equal
// keys counts.
func ParseResults(output string) (results Results, reason string) {
	results, reason = looseResults(output)
	if reason != "" {
		return nil, reason
	}
	for _, r := range results {
		if r != passed && r != failed {
			return nil, reasonBadMap
		}
	}
	if len(results) == 0 {
		return nil, reasonBadMap
	}
	return results, ""
}

// looseResults reads a map with any values; values that are not strings become "".
func looseResults(output string) (Results, string) {
	var doc jsonscan.Doc
	v, err := doc.Parse([]byte(output), jsonscan.Options{NonFinite: true})
	if err != nil {
		return nil, reasonNotJSON
	}
	if v.Kind() != jsonscan.Object {
		return nil, reasonBadMap
	}
	results := Results{}
	for test, result := range v.Members() {
		text, _ := result.Text()
		results[test] = text
	}
	return results, ""
}

// passing reports whether test passed; a missing test did not.
func (r Results) passing(test string) bool { return r[test] == passed }

// tests returns the test ids, sorted.
func (r Results) tests() []string { return slices.Sorted(maps.Keys(r)) }
