package openclaw

import (
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// outcome sets the status and outcome of a run from what generate() of OpenClaw-RL@0d034dd
// swe-rl/generate_with_swe_remote.py stores and swe-rl/server/swe_exec_server.py answers.
// The stored reward is 0 unless an evaluation answered, so it means nothing alone:
//
//   - an error belongs to the infrastructure: it ended the run, or lost its evaluation.
//     The writer stores the text of an exception, which may be empty.
//   - no error and no evaluation: the run made no patch, or its evaluation is lost
//   - an evaluation says resolved or not, with an error if no test finished
func outcome(in *format.File, r *rollout.Rollout, info format.Value) {
	o, eval := &r.Outcome, info.Get("eval_result")
	o.Resolved = in.Resolved(eval.Get("resolved"))
	if b := o.Resolved; b != nil && *b {
		o.Verdict = rollout.VerdictResolved
	}
	broken := func(reason, detail string) {
		r.Status = rollout.StatusFailed
		r.Failure = &rollout.Failure{Reason: reason, Detail: detail}
		o.Reason = cmp.Or(detail, reason)
		if o.Verdict == rollout.VerdictUnknown {
			o.Verdict = rollout.VerdictInfraError
		}
	}
	patch := o.Submission != nil && strings.TrimSpace(*o.Submission) != ""
	source := info.Get("patch_source")
	switch e := info.Get("error"); {
	case !e.IsNull():
		detail := format.PlainText(e)
		broken(failureReason(detail), detail)
	case len(r.Messages) == 0:
		broken("no_messages", "the run has no messages and tells no error")
	case o.Verdict == rollout.VerdictResolved:
	case o.Resolved != nil:
		o.Verdict, o.Reason = gradeOf(eval)
	case !eval.IsNull():
		broken("evaluation_unreadable", cmp.Or(eval.Get("error").String(), "the evaluation does not say whether the task is resolved"))
	case !source.IsNull() || patch:
		broken("not_evaluated", "there is a patch and no evaluation of it")
	case source.Kind() == jsonscan.Null:
		o.Verdict, o.Reason = rollout.VerdictNoPatch, "the run made no patch"
	}
}

// failures maps prefixes of errors to reasons.
var failures = []struct{ prefix, reason string }{
	{"LLM call failed", "llm_failed"}, {"diff failed", "diff_failed"}, {"SWE evaluate failed", "evaluate_failed"},
	{"SWE allocate failed", "allocate_failed"}, {"allocate failed", "allocate_failed"}, {"SWE heartbeat failed", "heartbeat_failed"},
}

func failureReason(detail string) string {
	for _, f := range failures {
		if strings.HasPrefix(detail, f.prefix) {
			return f.reason
		}
	}
	return "infra_error"
}

// gradeOf returns why an evaluation is unresolved. If the container was gone, or the server
// never writes this error, the outcome is unknown.
func gradeOf(eval format.Value) (rollout.Verdict, string) {
	detail, output := eval.Get("error").String(), eval.Get("output").String()
	for _, s := range []string{detail, output} {
		if strings.Contains(s, "Error response from daemon") || strings.Contains(s, "Cannot connect to the Docker daemon") {
			return rollout.VerdictInfraError, s
		}
	}
	switch {
	case detail == "":
		return rollout.VerdictUnresolved, ""
	case strings.HasPrefix(detail, "git apply failed"), strings.HasPrefix(detail, "patch validation failed"):
		return rollout.VerdictApplyFailed, detail
	case strings.HasPrefix(detail, "Evaluation timed out"):
		return rollout.VerdictTestsTimeout, detail
	}
	return rollout.VerdictInfraError, detail
}

// steps gives each turn what the run recorded of its command: Turn.Extra "step_debug" with
// action, returncode, output_len, the first and last 2,000 characters of the output,
// start_ts and end_ts in seconds since 1970, and ok (false if the command timed out or
// could not be run). A reply without a command has none. step_idx counts replies.
func steps(in *format.File, r *rollout.Rollout, list format.Value) error {
	in.ListOrNull(list, 0, "/step_debug")
	for i, x := range list.Items() {
		if x.Kind() != jsonscan.Object {
			return in.Want(x, 0, "/step_debug", "an object")
		}
		k, ok := x.Get("step_idx").Int()
		if !ok {
			k = i
		}
		if k < 0 || k >= len(r.Turns) || r.Turns[k].Extra != nil {
			in.Note("step_without_message", 0, "entry %d of step_debug is of step %d, which has no reply or an entry before; it was left in the dump", i, k)
			continue
		}
		t := &r.Turns[k]
		if said := r.Messages[t.Message].Content; !strings.Contains(said, x.Get("action").String()) {
			in.Note("step_differs", rollout.At(t.Message), "entry %d of step_debug runs a command that the reply of its step does not hold", i)
		}
		format.Keep(&t.Extra, "step_debug", x)
	}
	return nil
}
