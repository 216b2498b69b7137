package swebench

import (
	"strings"

	"github.com/turnpack/turnpack/reward/swebench/internal/logparse"
	"github.com/turnpack/turnpack/rollout"
)

// Outcome divides one list of tests. A test whose status is none of the five
// known words is in neither list, as in the reference.
type Outcome struct {
	Success []string `json:"success"`
	Failure []string `json:"failure"`
}

// Rate is the share of successes. A list without any judged test counts as 1:
// an instance that lists no F2P (or P2P) test cannot fail there.
func (o Outcome) Rate() float64 {
	n := len(o.Success) + len(o.Failure)
	if n == 0 {
		return 1
	}
	return float64(len(o.Success)) / float64(n)
}

// Lists is the outcome of both lists, in the order of the instance.
type Lists struct {
	FailToPass Outcome
	PassToPass Outcome
}

const resolvedFull = "RESOLVED_FULL"

// Resolution is RESOLVED_FULL when both rates are 1, RESOLVED_PARTIAL when some F2P
// tests and all P2P tests pass, else RESOLVED_NO.
func (l Lists) Resolution() string {
	f2p, p2p := l.FailToPass.Rate(), l.PassToPass.Rate()
	switch {
	case p2p == 1 && f2p == 1:
		return resolvedFull
	case p2p == 1 && f2p > 0:
		return "RESOLVED_PARTIAL"
	}
	return "RESOLVED_NO"
}

// judge compares statuses with the spec's two lists.
func (s Spec) judge(statuses *logparse.Statuses) Lists {
	if s.EvalType == failOnly {
		return Lists{divide(s.FailToPass, statuses, notFailed), divide(s.PassToPass, statuses, notFailed)}
	}
	return Lists{divide(s.FailToPass, statuses, passed), divide(s.PassToPass, statuses, maintained)}
}

type decision int

const (
	undecided decision = iota
	success
	failure
)

func divide(tests []string, statuses *logparse.Statuses, decide func(string, *logparse.Statuses) decision) Outcome {
	o := Outcome{Success: []string{}, Failure: []string{}}
	for _, test := range tests {
		switch decide(test, statuses) {
		case success:
			o.Success = append(o.Success, test)
		case failure:
			o.Failure = append(o.Failure, test)
		}
	}
	return o
}

func passed(test string, statuses *logparse.Statuses) decision {
	switch status, ok := resolve(test, statuses); {
	case !ok:
		return failure
	case passes(status):
		return success
	case status == logparse.Failed, status == logparse.Errored, status == logparse.Skipped:
		return failure
	}
	return undecided
}

// maintained also accepts a skipped test: that is no regression.
func maintained(test string, statuses *logparse.Statuses) decision {
	if status, ok := resolve(test, statuses); ok && status == logparse.Skipped {
		return success
	}
	return passed(test, statuses)
}

func notFailed(test string, statuses *logparse.Statuses) decision {
	if status, ok := statuses.Get(test); ok && status == logparse.Failed {
		return failure
	}
	return success
}

func passes(s logparse.Status) bool { return s == logparse.Passed || s == logparse.XFail }

// resolve finds the status of a listed test. An id cut inside its parameters
// stands for all tests that begin with it, if they agree on pass or not.
func resolve(test string, statuses *logparse.Statuses) (logparse.Status, bool) {
	if status, ok := statuses.Get(test); ok {
		return status, true
	}
	if strings.Count(test, "[") <= strings.Count(test, "]") {
		return "", false
	}
	var first logparse.Status
	found := false
	for name, status := range statuses.All() {
		switch {
		case !strings.HasPrefix(name, test):
		case !found:
			first, found = status, true
		case passes(status) != passes(first):
			return "", false
		}
	}
	return first, found
}

// Result is everything known after grading.
type Result struct {
	Run    Run
	Lists  Lists
	Report Report
	// Verdict is the typed outcome. When the log is no run and shows that the
	// environment broke, it is VerdictInfraError or VerdictOOM, which take no
	// part in the statistics; the report still says "not resolved", as the
	// reference does.
	Verdict rollout.Verdict
	// Reason explains a verdict other than resolved: a cause, an infra sign, or
	// the resolution.
	Reason string
}

// Grade grades a test log. patch is the model's patch, nil if there was none,
// in which case nothing can be resolved whatever the log says. Errors are those
// of readLog.
func (s Spec) Grade(patch *string, log string) (Result, error) {
	run, err := s.readLog(log)
	if err != nil {
		return Result{}, err
	}
	r := Result{Run: run, Lists: s.judge(&run.Statuses)}
	if patch == nil {
		r.Report.PatchIsNone = true
		r.Verdict, r.Reason = rollout.VerdictNoPatch, "no_patch"
		return r, nil
	}
	r.Report.PatchExists = true
	if !run.Found {
		sign, broken := classifyInfra(log)
		if broken {
			r.Report.InfraFailure = sign.certain
			r.Report.InfraFailureReason = sign.reason
		}
		r.Verdict, r.Reason = notARun(run.Cause, sign)
		return r, nil
	}
	r.Report.PatchApplied = true
	none := divide(nil, nil, nil)
	r.Report.Tests = &TestReport{r.Lists.FailToPass, r.Lists.PassToPass, none, none}
	resolution := r.Lists.Resolution()
	r.Report.Resolved = resolution == resolvedFull
	r.Verdict = rollout.VerdictUnresolved
	if r.Report.Resolved {
		r.Verdict = rollout.VerdictResolved
	} else {
		r.Reason = strings.ToLower(resolution)
	}
	return r, nil
}

func notARun(cause string, sign infra) (rollout.Verdict, string) {
	if sign.certain {
		if sign.reason == "out_of_memory" {
			return rollout.VerdictOOM, sign.reason
		}
		return rollout.VerdictInfraError, sign.reason
	}
	switch cause {
	case causeApplyFailed:
		return rollout.VerdictApplyFailed, cause
	case causeResetFailed:
		return rollout.VerdictResetFailed, cause
	case causeTestsTimeout:
		return rollout.VerdictTestsTimeout, cause
	case causeNoMarkers:
		return rollout.VerdictNoMarkers, cause
	}
	return rollout.VerdictTestsError, cause
}
