package ssr

import (
	"maps"
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// passed and failed are what a parser may say of one test.
const (
	passed = "passed"
	failed = "failed"
)

// Why the output of a parser is no test map.
const (
	reasonNotJSON = "not_json"
	reasonBadMap  = "bad_map"
)

// Results maps test ids to "passed" or "failed".
type Results map[string]string

// ParseResults reads the output of an artifact's parser: a JSON object, not
// empty, whose values are exactly "passed" or "failed". reason is "" or says
// what is wrong: not_json or bad_map. Of two equal keys the last counts.
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

// looseResults reads a map with any values; those that are not text are "".
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

// passing reports whether test passed; an absent test did not.
func (r Results) passing(test string) bool { return r[test] == passed }

// tests lists the test ids, sorted.
func (r Results) tests() []string { return slices.Sorted(maps.Keys(r)) }
