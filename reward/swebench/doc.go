// Package swebench grades a coding rollout the way SWE-bench 5.0.2 does: from
// the log of a test run and an instance row, without running anything.
//
//	spec, err := instance.Spec()                        // parser, eval type, test lists
//	result, err := spec.Grade(prediction.Patch, log)    // Run, Lists, Report, Verdict
//
// [Spec.Grade] decides whether the log shows a run at all, reads the status of each
// test (subpackage logparse holds the parsers), compares the statuses with the
// lists FAIL_TO_PASS and PASS_TO_PASS, and adds the report of the reference and a [rollout.Verdict], so that a
// test failure, a log that shows no run and a broken machine stay apart.
//
// Rules that surprise, all of them the reference's:
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
