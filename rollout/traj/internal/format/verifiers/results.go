package verifiers

import (
	"cmp"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Results reads lines of results.jsonl.
func Results() format.Importer {
	return format.Importer{Name: "verifiers", Match: isResult, Read: readResult, Stateless: true}
}

func isResult(v format.Value, _ *format.File) bool {
	if v.Get("example_id").IsNull() || v.Get("prompt").Kind() == jsonscan.Absent || v.Get("completion").Kind() == jsonscan.Absent {
		return false
	}
	for _, key := range []string{"is_completed", "is_truncated", "stop_condition", "metrics", "timing", "generation_ms", "task"} {
		if v.Get(key).Kind() != jsonscan.Absent {
			return true
		}
	}
	return false
}

func readResult(in *format.File, v format.Value) error {
	example := format.Identifier(v.Get("example_id"))
	r := &rollout.Rollout{
		Index:      format.NoIndex,
		Group:      "example-" + example,
		Instance:   cmp.Or(format.Identifier(v.Path("info", "instance_id")), "example-"+example),
		ExitStatus: v.Get("stop_condition").String(),
		Outcome:    rollout.Outcome{Reward: in.Reward(v.Get("reward"))},
	}
	if env := v.Get("task").String(); env != "" {
		r.Group = env + "/" + r.Group
	}
	for _, defs := range []format.Value{v.Get("tool_defs"), v.Get("tools"), v.Path("info", "tool_defs"), v.Path("info", "oai_tools")} { // the last of older versions
		if r.Tools == nil {
			r.Tools = format.FunctionTools(defs)
		}
	}
	in.Task = format.TaskOf(r.Group, v.Get("prompt"), v.Get("answer"))
	ended(in, r, v)
	var err error
	if steps := v.Get("trajectory"); steps.Kind() == jsonscan.Array && steps.Len() > 0 {
		err = joined(in, r, steps)
	} else {
		err = twoLists(in, r, v)
	}
	if err != nil {
		return err
	}
	if t := format.Temperature(v.Path("sampling_args", "temperature")); t != nil && *t >= 0 {
		r.Temperature = t
	}
	for _, settings := range []format.Value{v, v.Get("sampling_args")} {
		if err := in.TemplateKwargs(r, settings); err != nil {
			return err
		}
	}
	r.Outcome.Resolved = in.Resolved(v.Get("resolved"))
	in.Leftover(r, v, "chat_template_kwargs", "template_kwargs", "resolved", "example_id", "prompt", "completion", "reward", "tool_defs", "tools", "stop_condition", "trajectory", "task", "is_completed", "is_truncated", "error", "error_chain", "long_error_chain")
	in.NoteParts(r)
	in.EmptyReplies(r)
	return in.Emit(r)
}

// ended tells how the run did.
func ended(in *format.File, r *rollout.Rollout, v format.Value) {
	yes := func(key string) bool { b, _ := v.Get(key).Bool(); return b }
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

// list reads one side: messages or, of completion models, text.
func list(in *format.File, v format.Value, key string, role rollout.Role) ([]rollout.Message, error) {
	x := v.Get(key)
	if s, ok := x.Text(); ok {
		return []rollout.Message{{Role: role, Content: s}}, nil
	}
	if x.IsNull() {
		return nil, nil
	}
	return in.ChatMessages(x, "/"+key)
}

// twoLists reads a prompt and all that came after it.
func twoLists(in *format.File, r *rollout.Rollout, v format.Value) error {
	prompt, err := list(in, v, "prompt", rollout.RoleUser)
	if err != nil {
		return err
	}
	format.MarkReplies(prompt, rollout.SampledPrefilled)
	completion, err := list(in, v, "completion", rollout.RoleAssistant)
	if err != nil {
		return err
	}
	format.MarkReplies(completion, rollout.SampledByPolicy)
	r.Messages = append(prompt, completion...)
	if r.Turns = format.TurnsOf(r.Messages); len(r.Turns) == 0 && r.Failure == nil {
		return in.Fail(rollout.At(len(prompt)), "/completion", "the completion holds no reply, and the run tells no error")
	}
	if cut, _ := v.Get("is_truncated").Bool(); cut && len(r.Turns) > 0 {
		format.EndLast(r, "length")
	}
	return nil
}

// joined reads the steps of a trajectory, each a call.
func joined(in *format.File, r *rollout.Rollout, steps format.Value) error {
	r.Turns = []rollout.Turn{}
	join := format.NewCallJoin(r)
	for i, s := range steps.Items() {
		prompt, err := list(in, s, "prompt", rollout.RoleUser)
		if err != nil {
			return err
		}
		format.MarkReplies(prompt, rollout.SampledPrefilled)
		reply, err := list(in, s, "completion", rollout.RoleAssistant)
		if err != nil {
			return err
		}
		if len(reply) != 1 || reply[0].Role != rollout.RoleAssistant {
			return in.Fail(rollout.At(len(prompt)), "/trajectory/completion", "step %d holds %d messages, expected the reply of one call", i, len(reply))
		}
		reply[0].Sampled = rollout.SampledByPolicy
		t := rollout.Turn{Message: len(prompt), Step: i, ID: s.Path("response", "id").String(), FinishReason: s.Path("response", "message", "finish_reason").String()}
		if err := in.CaptureIDs(&t, s.Path("tokens", "prompt_ids"), s.Path("tokens", "completion_ids"), s.Path("tokens", "completion_logprobs")); err != nil {
			return err
		}
		if b, _ := s.Get("is_truncated").Bool(); b && t.FinishReason == "" {
			t.FinishReason = "length"
		}
		join.Add(append(prompt, reply...), []rollout.Turn{t})
	}
	return nil
}
