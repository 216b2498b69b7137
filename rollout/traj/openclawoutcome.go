package traj

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// openClawOutcome says how a run ended and what it is worth, as generate() of
// OpenClaw-RL@0d034dd swe-rl/generate_with_swe_remote.py leaves it and
// swe-rl/server/swe_exec_server.py answers. The stored reward is 0 unless an
// evaluation answered, so it says nothing alone:
//
//   - an error is of the infrastructure: it cut the run, or lost its evaluation. The
//     writer stores the text of an exception, which may be empty.
//   - no error and no evaluation: the run made no patch, or what became of it is lost
//   - an evaluation says resolved, or not, with an error where no test came to its end
func (j *fileReader) openClawOutcome(r *rollout.Rollout, info value) {
	o, eval := &r.Outcome, info.Get("eval_result")
	o.Resolved = j.resolved(eval.Get("resolved"))
	if b := o.Resolved; b != nil && *b {
		o.Verdict = rollout.VerdictResolved
	}
	broken := func(reason, detail string) {
		r.Status = rollout.StatusFailed
		r.Failure = &rollout.Failure{Reason: reason, Detail: detail}
		o.Reason = firstWord(detail, reason)
		if o.Verdict == rollout.VerdictUnknown {
			o.Verdict = rollout.VerdictInfraError
		}
	}
	patch := o.Submission != nil && strings.TrimSpace(*o.Submission) != ""
	source := info.Get("patch_source")
	switch e := info.Get("error"); {
	case !e.IsNull():
		detail := plainText(e)
		broken(openClawFailure(detail), detail)
	case len(r.Messages) == 0:
		broken("no_messages", "the run has no messages and tells no error")
	case o.Verdict == rollout.VerdictResolved:
	case o.Resolved != nil:
		o.Verdict, o.Reason = openClawGrade(eval)
	case !eval.IsNull():
		broken("evaluation_unreadable", firstWord(eval.Get("error").String(), "the evaluation does not say whether the task is resolved"))
	case !source.IsNull() || patch:
		broken("not_evaluated", "there is a patch and no evaluation of it")
	case source.Kind() == jsonscan.Null:
		o.Verdict, o.Reason = rollout.VerdictNoPatch, "the run made no patch"
	}
}

// openClawFailures are the errors by how they begin.
var openClawFailures = []struct{ prefix, reason string }{
	{"LLM call failed", "llm_failed"}, {"diff failed", "diff_failed"}, {"SWE evaluate failed", "evaluate_failed"},
	{"SWE allocate failed", "allocate_failed"}, {"allocate failed", "allocate_failed"}, {"SWE heartbeat failed", "heartbeat_failed"},
}

func openClawFailure(detail string) string {
	for _, f := range openClawFailures {
		if strings.HasPrefix(detail, f.prefix) {
			return f.reason
		}
	}
	return "infra_error"
}

// openClawGrade is why an evaluation says unresolved. Where the container was gone,
// or the error is one that the server does not write, nobody knows the outcome.
func openClawGrade(eval value) (rollout.Verdict, string) {
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

// openClawSteps gives each turn what the run recorded of its command: Turn.Extra
// "step_debug" with action, returncode, output_len, the first and last 2,000
// characters of the output, start_ts and end_ts in seconds since 1970, and ok
// (false where the command timed out or could not be run). A reply without a command
// has none. step_idx counts replies.
func (j *fileReader) openClawSteps(r *rollout.Rollout, list value) error {
	if err := j.listOrNothing(list, 0, "/step_debug"); err != nil {
		return err
	}
	for i, x := range list.Items() {
		if x.Kind() != jsonscan.Object {
			return j.want(x, 0, "/step_debug", "an object")
		}
		k, ok := x.Get("step_idx").Int()
		if !ok {
			k = i
		}
		if k < 0 || k >= len(r.Turns) || r.Turns[k].Extra != nil {
			j.note("step_without_message", 0, "entry %d of step_debug is of step %d, which has no reply or an entry before; it was left in the dump", i, k)
			continue
		}
		t := &r.Turns[k]
		if said := r.Messages[t.Message].Content; !strings.Contains(said, x.Get("action").String()) {
			j.note("step_differs", rollout.At(t.Message), "entry %d of step_debug runs a command that the reply of its step does not hold", i)
		}
		keep(&t.Extra, "step_debug", x)
	}
	return nil
}
