// Package swebench grades a coding rollout as SWE-bench 5.0.2 does, from the log of a test run and an
// instance row, without running commands.
//
//	spec, err := instance.Spec()                        // parser, eval type, test lists
//	result, err := spec.Grade(prediction.Patch, log)    // Run, Lists, Report, Verdict
//
// [Spec.Grade] decides whether the log shows a run, reads the status of each test (with the parsers of
// subpackage logparse), compares the statuses with the lists FAIL_TO_PASS and PASS_TO_PASS, and adds
// the report of the reference and a [rollout.Verdict], which distinguishes a test failure, a log
// without a run and a broken machine.
//
// Surprising rules, all of them rules of the reference:
//
//   - F2P passes with PASSED or XFAIL; a skipped F2P test has failed. P2P also
//     passes with SKIPPED. An empty list counts as fully passed.
//   - A log that ends in a non-zero exit code but reports no failure is not a
//     run: a patch can print PASSED lines of its own.
//   - The text of a failure code anywhere in the log voids it, also when a test
//     merely prints it.
//   - When nothing is found between the markers the whole log is read instead.
//   - A listed id with more '[' than ']' was cut in the data set and matches by
//     prefix if all candidates agree.
//
// [ReadInstances] and [ReadPredictions] read the data files of SWE-bench,
// SWE-Gym and SWE-rebench; [ReadReports], [WriteReports] and [Summary] read and
// write the official JSON.
package swebench
