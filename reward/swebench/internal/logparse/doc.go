// Package logparse turns the console output of a test runner into an ordered map of test → status. It
// implements exactly the log parsers of SWE-bench 5.0.2 (PyPI package swebench, harness.log_parsers).
//
// A SWE-bench instance names its parser ("parse_log_pytest"); [Lookup] returns it, and [ForRepo]
// returns the parser of older rows, which name none. Parsers are pure functions of the text: they keep
// no state, run no code and are safe for concurrent use.
//
//	parse, _ := logparse.Lookup("parse_log_pytest")
//	statuses, err := parse("PASSED tests/test_a.py::test_x\n", logparse.Context{})
//
// The rules are those of the reference, including its oddities, because they produced the test ids in
// data sets: words are split on Unicode white space, a line that merely begins with a status word
// counts as a result ("ERROR: file not found" stores the test "file" with the status "ERROR:"), and
// the last line about a test sets its status while the first line sets its place in the order. Where
// the reference raises an exception, the parser returns a located error of kind scorer: the log cannot
// be graded, which differs from a failed test.
package logparse
