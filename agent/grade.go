package agent

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// GradeOptions configures how a patch is graded. The zero value is the default.
type GradeOptions struct {
	// ExitCode grades by the script's exit code alone, as swe-rl does, even if the instance names its tests.
	ExitCode bool
	Dir      string        // of the repository; default sandbox.DefaultDir
	Timeout  time.Duration // of the script; default an hour
}

// Evaluation is the result of an evaluation in traj.json.
type Evaluation struct {
	OK         bool   `json:"ok"`
	Resolved   bool   `json:"resolved"`
	ReturnCode int    `json:"returncode"`
	Output     string `json:"output"` // the last 2,000 characters
	Error      string `json:"error,omitempty"`
}

// gradeOutput is the maximum length of a requested log: test lists need the whole log.
const gradeOutput = 16 << 20

// Grade evaluates the patch of an attempt in a sandbox that no agent has used: by the test lists of the
// instance if it has some and the log covers them, otherwise by the exit code of its script. An attempt without
// a patch is unchanged. Infrastructure failures are recorded in the attempt; an error means that ctx ended.
func (a *Attempt) Grade(ctx context.Context, box sandbox.Sandbox, in swebench.Instance, o GradeOptions) error {
	if a.Patch == nil || a.Rollout == nil || a.Rollout.Failure != nil {
		return nil
	}
	v, err := box.Evaluate(ctx, sandbox.Evaluation{Patch: *a.Patch, Script: in.EvalScript, Dir: o.Dir, Timeout: o.Timeout, MaxOutput: gradeOutput})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.Fail("evaluate_failed", "SWE evaluate failed: "+err.Error())
		return nil
	}
	verdict, reason := rollout.VerdictUnresolved, v.Reason
	switch {
	case v.End == sandbox.EndOOM:
		verdict = rollout.VerdictOOM
	case strings.HasPrefix(v.Reason, "git apply failed"), strings.HasPrefix(v.Reason, "patch validation failed"):
		verdict = rollout.VerdictApplyFailed
	case v.End == sandbox.EndTimeout, strings.HasPrefix(v.Reason, "Evaluation timed out"):
		verdict = rollout.VerdictTestsTimeout
	case v.Reason != "":
		verdict = rollout.VerdictInfraError
	case v.Resolved:
		verdict = rollout.VerdictResolved
	}
	applied := verdict != rollout.VerdictApplyFailed
	a.Report = &swebench.Report{PatchExists: true, PatchApplied: applied, Resolved: verdict == rollout.VerdictResolved, InfraFailure: verdict.Infra()}
	if v.Reason == "" && !o.ExitCode && len(in.FailToPass)+len(in.PassToPass) > 0 {
		graded, ok, err := byTests(in, *a.Patch, v)
		if err != nil {
			return err
		}
		if ok {
			verdict, reason, a.Report = graded.Verdict, graded.Reason, &graded.Report
		}
	}
	runes := []rune(v.Output)
	a.Evaluation = &Evaluation{OK: true, Resolved: verdict == rollout.VerdictResolved, ReturnCode: v.ExitCode, Error: v.Reason,
		Output: string(runes[max(0, len(runes)-sandbox.EvaluateOutput):])}
	if verdict.Infra() {
		a.Fail("infra_error", "SWE evaluate failed: "+reason)
		a.Rollout.Outcome.Verdict = verdict
		return nil
	}
	resolved, score := a.Evaluation.Resolved, 0.0
	if resolved {
		score = 1
	}
	a.Rollout.Outcome = rollout.Outcome{Verdict: verdict, Reason: reason, Resolved: &resolved, Reward: &score, Submission: a.Patch}
	return nil
}

// byTests grades a log by the test lists of the instance. If ok is false, the instance names no parser for its
// log, or the log is truncated, and the exit code decides.
func byTests(in swebench.Instance, patch string, v sandbox.Verdict) (r swebench.Result, ok bool, err error) {
	spec, err := in.Spec()
	if err != nil {
		in.LogParser = "parse_log_pytest"
		if spec, err = in.Spec(); err != nil {
			return r, false, nil
		}
	}
	const start, end = ">>>>> Start Test Output", ">>>>> End Test Output"
	log := v.Output
	if marked := strings.Contains(log, start) && strings.Contains(log, end); !marked {
		// Custom scripts print no marks, and a server of swe-rl cuts them off.
		if utf8.RuneCountInString(log) >= sandbox.EvaluateOutput && utf8.RuneCountInString(log) <= sandbox.EvaluateOutput+64 {
			return r, false, nil
		}
		log = start + "\n" + log + "\n" + end + "\n"
	}
	r, err = spec.Grade(&patch, log)
	var e *rollout.Error
	if errors.As(err, &e) {
		return r, false, nil
	}
	return r, err == nil, err
}
