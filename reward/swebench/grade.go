package swebench

import (
	"strings"

	"github.com/turnpack/turnpack/reward/swebench/internal/logparse"
	"github.com/turnpack/turnpack/rollout"
)

// Outcome divides one list of tests into successes and failures. As in the reference, a test whose
// status is not one of the five known words is in neither list.
type Outcome struct {
	Success []string `json:"success"`
	Failure []string `json:"failure"`
}

// Rate returns the share of successes, 1 for a list without judged tests: an instance without F2P (or
// P2P) tests cannot fail there.
func (o Outcome) Rate() float64 {
	n := len(o.Success) + len(o.Failure)
	if n == 0 {
		return 1
	}
	return float64(len(o.Success)) / float64(n)
}

// Lists holds the outcomes of both lists, in the order of the instance.
type Lists struct {
	FailToPass Outcome
	PassToPass Outcome
}

const resolvedFull = "RESOLVED_FULL"

// Resolution returns RESOLVED_FULL when both rates are 1, RESOLVED_PARTIAL when some F2P tests and all
// P2P tests pass, else RESOLVED_NO.
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

// judge returns the outcomes of the spec's two lists.
func (s Spec) judge(statuses *logparse.Statuses) Lists {
	if s.EvalType == failOnly {
		return Lists{divide(s.FailToPass, statuses, notFailed), divide(s.PassToPass, statuses, notFailed)}
	}
	return Lists{divide(s.FailToPass, statuses, passed), divide(s.PassToPass, statuses, passedOrSkipped)}
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

// passedOrSkipped is passed, but also accepts a skipped test, which is not a regression.
func passedOrSkipped(test string, statuses *logparse.Statuses) decision {
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

// resolve returns the status of a listed test. An id cut inside its parameters stands for all tests
// that begin with it, if they agree on passing or not.
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

// Result holds everything known after grading.
type Result struct {
	Run    Run
	Lists  Lists
	Report Report
	// Verdict is the typed outcome. If the log is not a run and shows that the environment broke, it
	// is VerdictInfraError or VerdictOOM, which are excluded from the statistics; the report then
	// still says "not resolved", as in the reference.
	Verdict rollout.Verdict
	// Reason explains a verdict other than resolved: a cause, a sign of a broken environment, or the
	// resolution.
	Reason string
}

// Grade grades a test log. patch is the model's patch, nil if there is none; then the instance is not
// resolved, whatever the log shows. Errors are those of readLog: an invalid spec (kind input) or a log
// that the parser cannot read (kind scorer).
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
