package ssr

import (
	"sort"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// TestResult is a parser's word on one test.
type TestResult string

// The results that a parser may give.
const (
	Passed TestResult = "passed"
	Failed TestResult = "failed"
)

// Why the output of a parser is no test map.
const (
	reasonNotJSON = "not_json"
	reasonBadMap  = "bad_map"
)

// Results maps test ids to results.
type Results map[string]TestResult

// ParseResults reads the output of an artifact's parser: a JSON object, not
// empty, whose values are exactly "passed" or "failed". reason is "" or says
// what is wrong: not_json or bad_map. Of two equal keys the last counts.
func ParseResults(output string) (results Results, reason string) {
	results, reason = looseResults(output)
	if reason != "" {
		return nil, reason
	}
	for _, r := range results {
		if r != Passed && r != Failed {
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
		results[test] = TestResult(text)
	}
	return results, ""
}

// passing reports whether test passed; an absent test did not.
func (r Results) passing(test string) bool { return r[test] == Passed }

// tests lists the test ids, sorted.
func (r Results) tests() []string {
	ids := make([]string, 0, len(r))
	for id := range r {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}
