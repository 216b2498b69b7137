package verifiers

import (
	"cmp"
	"encoding/hex"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Results reads lines of results.jsonl.
func Results() format.Importer {
	return format.Importer{Name: "verifiers", Match: isResult, Read: readResult, Stateless: true}
}

func isResult(v format.Value, _ *format.File) bool {
	if v.Get("prompt").Kind() == jsonscan.Absent || v.Get("completion").Kind() == jsonscan.Absent {
		return false
	}
	if isSample(v) || !v.Get("generation_ms").IsNull() && !v.Get("scoring_ms").IsNull() {
		return true
	}
	if v.Get("example_id").IsNull() {
		return false
	}
	for _, key := range []string{"is_completed", "is_truncated", "stop_condition", "metrics", "timing", "generation_ms", "task"} {
		if v.Get(key).Kind() != jsonscan.Absent {
			return true
		}
	}
	return false
}

// isSample reports whether v is a row of the samples table that prime-rl sends to its
// platform.
func isSample(v format.Value) bool {
	return !v.Get("run_id").IsNull() && !v.Get("problem_id").IsNull() && !v.Get("sample_id").IsNull()
}

// member returns a list or an object, which samples hold as JSON text, "" if empty.
func member(in *format.File, v format.Value, key string) format.Value {
	x := v.Get(key)
	if s, ok := x.Text(); !ok || !isSample(v) {
		return x
	} else if s == "" {
		return format.Value{}
	}
	return in.Inner(x, "/"+key)
}

// example returns the task of a record. Ids of results before September 2025 assume that
// the rollouts of an example are adjacent, which they are not; the task's content names it
// then.
func example(v format.Value) string {
	if isSample(v) {
		return format.Identifier(v.Get("problem_id"))
	}
	if id := format.Identifier(v.Get("example_id")); id != "" {
		return id
	}
	task := format.TaskOf("", v.Get("prompt"), v.Get("answer"), v.Get("info"))
	return hex.EncodeToString(task[:8])
}

func readResult(in *format.File, v format.Value) error {
	info := member(in, v, "info")
	if episode := info.Get("native_wrapper"); episode.Kind() == jsonscan.Object { // the whole episode; the rest is a summary
		return readEpisode(in, episode)
	}
	id := "example-" + example(v)
	r := &rollout.Rollout{
		Index:      format.NoIndex,
		Group:      id,
		Instance:   cmp.Or(format.Identifier(info.Get("instance_id")), id),
		ExitStatus: v.Get("stop_condition").String(),
		Outcome:    rollout.Outcome{Reward: in.Reward(v.Get("reward"))},
	}
	env := v.Get("task").String()
	if isSample(v) {
		env = v.Get("env_name").String()
		step := format.Identifier(v.Get("run_id")) + "/step-" + format.Identifier(v.Get("step"))
		r.ID = step + "/" + format.Identifier(v.Get("sample_id"))
		r.Group += "/" + step // each step samples a problem again
	}
	if env != "" {
		r.Group = env + "/" + r.Group
	}
	for _, defs := range []format.Value{v.Get("tool_defs"), v.Get("tools"), info.Get("tool_defs"), info.Get("oai_tools")} { // the last: older versions
		if r.Tools == nil {
			r.Tools = format.FunctionTools(defs)
		}
	}
	in.Task = format.TaskOf(r.Group, v.Get("prompt"), v.Get("answer"))
	ended(in, r, v)
	steps := member(in, v, "trajectory")
	branches := 0 // samples: lists of messages; the completion repeats the last
	for _, s := range steps.Items() {
		if s.Get("messages").Kind() == jsonscan.Array {
			branches++
		}
	}
	var err error
	if steps.Len() > branches {
		err = joined(in, r, steps)
	} else {
		err = twoLists(in, r, v)
	}
	if err != nil {
		return err
	}
	if branches > 1 {
		in.Note("branches_left_out", 0, "%d branches before the one that the completion holds were left out", branches-1)
	}
	if t := format.Temperature(v.Path("sampling_args", "temperature")); t != nil && *t >= 0 {
		r.Temperature = t
	}
	for _, settings := range []format.Value{v, v.Get("sampling_args")} {
		in.TemplateKwargs(r, settings)
	}
	r.Outcome.Resolved = in.Resolved(v.Get("resolved"))
	in.Leftover(r, v, "chat_template_kwargs", "template_kwargs", "resolved", "example_id", "problem_id", "sample_id", "env_name", "prompt", "completion", "reward", "tool_defs", "tools", "stop_condition", "trajectory", "task", "is_completed", "is_truncated", "error", "error_chain", "long_error_chain")
	in.NoteParts(r)
	in.EmptyReplies(r)
	return in.Emit(r)
}

// ended sets the status and the failure of a run.
func ended(in *format.File, r *rollout.Rollout, v format.Value) {
	yes := func(key string) bool { return v.Get(key).True() }
	switch e := v.Get("error"); {
	case !e.IsNull():
		detail := cmp.Or(e.Get("error_chain_repr").String(), e.Get("message").String(), format.PlainText(e))
		r.Status = rollout.StatusFailed
		r.Failure = &rollout.Failure{Reason: "error", Detail: detail}
		if r.Outcome.Reward != nil {
			r.Outcome.Reward = nil
			in.Note("reward_unfounded", 0, "the run ended with an error, and the reward beside it is what every such run has; none was taken")
		}
	case yes("is_truncated"):
		r.Status = rollout.StatusTruncated
	case yes("is_completed"):
		r.Status = rollout.StatusCompleted
	}
}

// list reads the prompt or the completion: messages or, for completion models, text.
func list(in *format.File, v format.Value, key string, role rollout.Role) []rollout.Message {
	x := member(in, v, key)
	if s, ok := x.Text(); ok {
		return []rollout.Message{{Role: role, Content: s}}
	}
	if x.IsNull() {
		return nil
	}
	return in.ChatMessages(x, "/"+key)
}

// twoLists reads a prompt and everything after it.
func twoLists(in *format.File, r *rollout.Rollout, v format.Value) error {
	prompt := list(in, v, "prompt", rollout.RoleUser)
	format.MarkReplies(prompt, rollout.SampledPrefilled)
	completion := list(in, v, "completion", rollout.RoleAssistant)
	format.MarkReplies(completion, rollout.SampledByPolicy)
	r.Messages = append(prompt, completion...)
	if r.Turns = format.TurnsOf(r.Messages); len(r.Turns) == 0 && r.Failure == nil {
		return in.Fail(rollout.At(len(prompt)), "/completion", "the completion holds no reply, and the run tells no error")
	}
	if v.Get("is_truncated").True() && len(r.Turns) > 0 {
		format.EndLast(r, "length")
	}
	return nil
}

// joined reads the steps of a trajectory, each a call.
func joined(in *format.File, r *rollout.Rollout, steps format.Value) error {
	r.Turns = []rollout.Turn{}
	join := format.NewCallJoin(r)
	for i, s := range steps.Items() {
		prompt := list(in, s, "prompt", rollout.RoleUser)
		format.MarkReplies(prompt, rollout.SampledPrefilled)
		reply := list(in, s, "completion", rollout.RoleAssistant)
		if len(reply) != 1 || reply[0].Role != rollout.RoleAssistant {
			return in.Fail(rollout.At(len(prompt)), "/trajectory/completion", "step %d holds %d messages, expected the reply of one call", i, len(reply))
		}
		reply[0].Sampled = rollout.SampledByPolicy
		t := rollout.Turn{Message: len(prompt), Step: i, ID: s.Path("response", "id").String(), FinishReason: s.Path("response", "message", "finish_reason").String()}
		if err := in.CaptureIDs(&t, s.Path("tokens", "prompt_ids"), s.Path("tokens", "completion_ids"), s.Path("tokens", "completion_logprobs")); err != nil {
			return err
		}
		if s.Get("is_truncated").True() && t.FinishReason == "" {
			t.FinishReason = "length"
		}
		join.Add(append(prompt, reply...), []rollout.Turn{t})
	}
	return nil
}
