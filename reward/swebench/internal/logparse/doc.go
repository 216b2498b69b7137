// Package logparse turns the console output of a test runner into an ordered
// map of test → status, with the rules of the log parsers of SWE-bench 5.0.2
// (PyPI package swebench, harness.log_parsers), all of them and no others.
//
// A SWE-bench instance names its parser ("parse_log_pytest"); [Lookup] finds it
// and [ForRepo] gives the one that older rows, which name none, imply. Parsers
// are pure functions of the text: they keep no state, run no code and may be
// called concurrently.
//
//	parse, _ := logparse.Lookup("parse_log_pytest")
//	statuses, err := parse("PASSED tests/test_a.py::test_x\n", logparse.Context{})
//
// The rules are those of the reference, oddities included, because a test id in
// a data set was produced by them: words are split on Unicode white space, a
// line that merely begins with a status word counts as a result ("ERROR: file
// not found" stores the test "file" with the status "ERROR:"), and the last
// line about a test wins while the first one fixes its place in the order.
// Where the reference raises an exception, the parser returns a located error
// of kind scorer: the log cannot be graded, which is not the same as a failure.
package logparse
