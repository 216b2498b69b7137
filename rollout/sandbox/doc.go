// Package sandbox runs agents' commands in containers with a repository, extracts a patch from them and
// evaluates patches in them.
//
// A [Provider] makes a [Sandbox]. [On] makes a provider from a [Driver] on this machine: folders and processes
// (package local), or docker, podman and apptainer (package container). Package swerl is a provider over HTTP
// with its servers, compatible with swe-rl.
//
// A failure has one of four causes, which training must distinguish:
//
//	infrastructure   an error of KindSandbox: no verdict, the attempt does not count
//	the request      an error of KindInput
//	time or memory   Result.End, Verdict.End: timeout, oom, pids
//	the command      Result.ExitCode, Verdict.Resolved and Verdict.Reason
//
// Output is limited while it streams: its beginning and end are kept, with a line that says how much is missing
// between them. When a command exceeds its time or a limit, or when ctx ends, every process that it started is
// killed. A [Blocklist] answers commands that agents should not run; it is advice, not security.
package sandbox
