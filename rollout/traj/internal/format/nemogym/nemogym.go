package nemogym

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Importer reads rollouts with one model.
func Importer() format.Importer {
	return format.Importer{Name: "nemo-gym", Match: match, Read: read, Stateless: true}
}

func match(v format.Value, _ *format.File) bool {
	if v.Get("responses_create_params").Kind() != jsonscan.Object {
		return false // the same input without a response is a task, not a rollout
	}
	return v.Get("response").Kind() == jsonscan.Object || v.Get("response").Kind() == jsonscan.Null && v.Get("reward").Kind() == jsonscan.Number
}

func read(in *format.File, v format.Value) error {
	response := v.Get("response")
	if params := v.Get("responses_create_params"); params.Kind() == jsonscan.Absent && response.Get("output").Kind() != jsonscan.Array {
		return in.Want(params, 0, "/responses_create_params", "an object")
	}
	r, err := readCall(in, v.Get("responses_create_params"), response)
	if err != nil {
		return err
	}
	identity(in, r, v)
	outcome(in, r, v, response)
	in.Leftover(r, v, "responses_create_params", "response", "reward", "resolved", "model_patch", "_ng_task_index", "_ng_rollout_index", "instance_id")
	in.NoteParts(r)
	in.UnlinkResults(r)
	return in.Emit(r)
}

// readCall reads a request and its output: the items of all model calls and of the
// environment between them.
func readCall(in *format.File, params, response format.Value) (*rollout.Rollout, error) {
	r := &rollout.Rollout{Index: format.NoIndex, Turns: []rollout.Turn{}}
	x := &format.Items{File: in, Rollout: r, Sampled: rollout.SampledPrefilled}
	x.AddRequest(params)
	switch output := response.Get("output"); output.Kind() {
	case jsonscan.Array:
	case jsonscan.Null, jsonscan.Absent:
		in.Note("no_output", 0, "the response has no output")
	default:
		return nil, in.Want(output, 0, "/response/output", "a list of items")
	}
	output, err := lastTransition(in, response.Get("output"))
	if err != nil {
		return nil, err
	}
	given := len(r.Messages)
	x.Open, x.Sampled = false, rollout.SampledByPolicy
	for _, item := range output.Items() {
		x.Add(item)
	}
	repeatedPrompt(in, r, given)
	// The response of a run has the end of its last call.
	format.EndLast(r, response.Path("incomplete_details", "reason").String())
	r.Tools = format.FunctionTools(params.Get("tools"))
	r.Temperature = format.Temperature(params.Get("temperature"))
	for i := range r.Turns {
		r.Turns[i].Sampling = format.SamplingOf(params)
	}
	if len(r.Turns) == 1 { // with several calls, usage may be a sum
		x.File.CheckUsage(&r.Turns[0], response)
	}
	in.TemplateKwargs(r, params)
	return r, nil
}

// lastTransition returns the list with the whole conversation if the output is a list of
// transitions, each of which repeats the conversation so far and adds a step. Other outputs
// are returned unchanged.
func lastTransition(in *format.File, output format.Value) (format.Value, error) {
	last := output
	for i, next := range output.Items() {
		if next.Kind() != jsonscan.Array {
			return output, nil // faults in later items are reported when they are read
		}
		if i > 0 && !begins(next, last) {
			return output, in.Fail(0, "/response/output", "transition %d does not go on where the one before it ends, so what the model saw is not known", i)
		}
		last = next
	}
	return last, nil
}

// begins reports whether list begins with all items of start.
func begins(list, start format.Value) bool {
	if list.Len() < start.Len() {
		return false
	}
	have := format.Elements(list)
	for i, item := range start.Items() {
		if !bytes.Equal(item.Raw(), have[i].Raw()) {
			return false
		}
	}
	return true
}

// repeatedPrompt removes the given messages from the start of the output, where some
// environments repeat them: the model saw them once.
func repeatedPrompt(in *format.File, r *rollout.Rollout, given int) {
	if given == 0 || len(r.Messages) < 2*given {
		return
	}
	for i := range given {
		if a, b := &r.Messages[i], &r.Messages[given+i]; a.Role == rollout.RoleAssistant || format.RenderedDigest(a) != format.RenderedDigest(b) {
			return
		}
	}
	in.Note("prompt_repeated", rollout.At(given), "the output begins with the %d messages of the input; they count once", given)
	for i := range r.Turns {
		t := &r.Turns[i]
		t.Context.Parts = []rollout.ContextPart{{From: given, To: t.Message}}
	}
}

func identity(in *format.File, r *rollout.Rollout, v format.Value) {
	agent := cmp.Or(v.Path("agent_ref", "name").String(), v.Get("_ng_environment_server").String())
	r.Instance = format.FirstID(v, "instance_id", "task_id", "problem_id", "id", "uuid")
	for _, m := range []format.Value{v.Get("metadata"), v.Path("responses_create_params", "metadata")} {
		if r.Instance == "" {
			r.Instance = format.Identifier(m.Get("instance_id"))
		}
	}
	if r.Instance == "" {
		r.Instance = format.Identifier(v.Path("_ng_task_id", "task_id"))
	}
	task, n := v.Get("_ng_task_index"), v.Get("_ng_rollout_index")
	if task.IsNull() {
		return
	}
	r.Group = strings.TrimPrefix(agent+"/task-"+format.Identifier(task), "/")
	given := v.Get("responses_create_params")
	in.Task = format.TaskOf(r.Instance, v.Get("_ng_task_id"), given.Get("instructions"), given.Get("input"))
	if i, ok := n.Int(); ok && i >= 0 {
		r.Index = i
		r.ID = r.Group + "/rollout-" + format.Identifier(n)
	}
}

func outcome(in *format.File, r *rollout.Rollout, v, response format.Value) {
	r.Outcome.Reward = in.Reward(v.Get("reward"))
	r.Outcome.Resolved = in.Resolved(v.Get("resolved"))
	r.Outcome.Submission = format.Text(v.Get("model_patch"))
	if r.Outcome.Submission == nil {
		r.Outcome.Submission = format.Text(v.Path("metadata", "model_patch"))
	}
	r.ExitStatus = response.Get("status").String()
	yes := func(key string) bool { return v.Get(key).True() }
	r.Status = format.ResponseStatus(r.ExitStatus)
	switch {
	case yes("truncated") || yes("agent_timed_out") || yes("container_timed_out"):
		r.Status = rollout.StatusTruncated
	case r.Status == rollout.StatusUnknown && yes("terminated"):
		r.Status = rollout.StatusCompleted
	}
	grading(in, r, v)
	if v.Path("instance_config", "mask_sample").True() || yes("mask_sample") {
		detail := cmp.Or(v.Get("error_kind").String(), v.Get("failure_kind").String(), v.Get("failure_class").String())
		r.Failure = &rollout.Failure{Reason: "masked_by_framework", Detail: detail}
		if r.Status == rollout.StatusCompleted {
			r.Status = rollout.StatusFailed
		}
		in.Note("masked_by_framework", 0, "the framework dropped this sample (mask_sample)")
	}
}

// gradingErrors are keys under which resource servers report that the grading failed, with
// a reward of 0.
var gradingErrors = []string{"judge_error", "judge_generation_error", "verifier_error", "exception_type"}

// grading marks a run as failed if its grading failed. The reward stays as recorded; it is
// the same for every such run.
func grading(in *format.File, r *rollout.Rollout, v format.Value) {
	for _, key := range gradingErrors {
		detail, ok := v.Get(key).Text()
		if !ok || detail == "" || r.Outcome.Reward == nil || *r.Outcome.Reward > 0 {
			continue
		}
		r.Status, r.Failure = rollout.StatusFailed, &rollout.Failure{Reason: key, Detail: detail}
		in.Note("grading_failed", 0, "the grading ended with an error (%s), and the reward beside it is what every such run has: the run counts as failed", key)
		return
	}
}
