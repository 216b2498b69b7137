package trainers

import (
	"strconv"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Slime reads the samples of debug rollout files, converted from a pickle to JSON.
func Slime() format.Importer {
	return format.Importer{Name: "slime", Match: isSlime, Read: readSlime, Stateless: true}
}

func isSlime(v format.Value, _ *format.File) bool {
	return v.Get("tokens").Kind() == jsonscan.Array && v.Get("response_length").Kind() == jsonscan.Number && v.Get("response").Kind() == jsonscan.String
}

func readSlime(in *format.File, v format.Value) error {
	ids, bad, ok := v.Get("tokens").AppendInt32(nil)
	if !ok {
		return in.Fail(0, "/tokens", "found %.40s, expected ids of tokens", bad.Raw())
	}
	n, ok := v.Get("response_length").Int()
	if !ok || n < 0 || n > len(ids) {
		return in.Fail(0, "/response_length", "the response has %.20s of %d tokens", v.Get("response_length").Raw(), len(ids))
	}
	given := len(ids) - n
	s := &sequence{ids: ids, sampled: make([]bool, len(ids))}
	if mask := v.Get("loss_mask"); mask.IsNull() {
		for i := given; i < len(ids); i++ {
			s.sampled[i] = true
		}
	} else {
		if mask.Len() != n {
			return in.Fail(0, "/loss_mask", "found %d entries for %d tokens of the response", mask.Len(), n)
		}
		copy(s.sampled[given:], marks(mask, 0))
	}
	if lp := v.Get("rollout_log_probs"); !lp.IsNull() && lp.Len() > 0 {
		values, bad, ok := lp.AppendFloat32(make([]float32, given, len(ids)))
		if !ok || len(values) != len(ids) {
			return in.Fail(0, "/rollout_log_probs", "found %d for %d tokens of the response (%.20s)", lp.Len(), n, bad.Raw())
		}
		s.logprobs = values
	}
	r := &rollout.Rollout{Index: format.NoIndex, ExitStatus: v.Get("status").String(), Instance: format.FirstID(v.Get("metadata"), "instance_id", "task_id")}
	if g := v.Get("group_index"); !g.IsNull() {
		r.Group = "group-" + format.Identifier(g)
		in.Task = format.TaskOf("slime", v.Get("prompt"))
	} else {
		r.Group = s.group()
	}
	s.turns(in, r)
	slimeMessages(in, r, v)
	slimeOutcome(in, r, v)
	in.Leftover(r, v, "tokens", "response", "response_length", "loss_mask", "rollout_log_probs", "prompt", "reward", "status", "group_index", "weight_versions", "apply_chat_template_kwargs",
		"rollout_top_p_token_ids", "rollout_top_p_token_offsets", "rollout_routed_experts", "teacher_log_probs", "spec_info", "prefix_cache_info", "non_generation_time")
	in.NoteParts(r)
	in.Record = format.Value{} // index and status are also keys of the native format
	return in.Emit(r)
}

// slimeMessages sets the messages of a sample if the prompt has messages and one reply
// followed; a prompt that is text was rendered by a template.
func slimeMessages(in *format.File, r *rollout.Rollout, v format.Value) {
	prompt := v.Get("prompt")
	if prompt.Kind() != jsonscan.Array || prompt.Len() == 0 || len(r.Turns) != 1 {
		return
	}
	messages := in.ChatMessages(prompt, "/prompt")
	format.MarkReplies(messages, rollout.SampledPrefilled)
	r.Turns[0].Message = len(messages)
	r.Messages = append(messages, rollout.Message{Role: rollout.RoleAssistant, Content: v.Get("response").String(), Sampled: rollout.SampledByPolicy})
	defs := v.Path("metadata", "tools")
	for name, x := range v.Get("apply_chat_template_kwargs").Members() {
		if name == "tools" {
			defs = x
			continue
		}
		format.Keep(&r.TemplateKwargs, name, x)
	}
	r.Tools = format.FunctionTools(in.Inner(defs, "/metadata/tools"))
}

func slimeOutcome(in *format.File, r *rollout.Rollout, v format.Value) {
	if x := v.Get("reward"); x.Kind() == jsonscan.Object { // a reward model with several scores
		r.Outcome.Reward = format.Number(x.Get("score"))
		if r.Outcome.Reward == nil {
			in.Note("outcome_unreadable", 0, "the reward is an object without a score; none was taken")
		}
		format.Keep(&r.Metadata, "reward", x)
	} else {
		r.Outcome.Reward = in.Reward(x)
	}
	last := &r.Turns[len(r.Turns)-1]
	switch r.ExitStatus {
	case "completed":
		r.Status = rollout.StatusCompleted
	case "truncated":
		r.Status, last.FinishReason = rollout.StatusTruncated, "length"
	case "aborted":
		r.Status, last.FinishReason = rollout.StatusAborted, "abort"
	case "failed":
		r.Status = rollout.StatusFailed
	}
	if v.Get("remove_sample").True() {
		r.Failure = &rollout.Failure{Reason: "masked_by_framework"}
		in.Note("masked_by_framework", 0, "the framework dropped this sample (remove_sample)")
	}
	version, same := "", true
	for _, x := range v.Get("weight_versions").Items() {
		w := format.Identifier(x)
		same = same && (version == "" || w == version)
		version = w
	}
	if n, err := strconv.ParseInt(version, 10, 32); err == nil && n >= 0 && same {
		for i := range r.Turns {
			r.Turns[i].Version = new(int32(n))
		}
	} else if version != "" && !same {
		in.Note("version_not_known", 0, "the sample was sampled by several versions of the policy, and which sampled a turn is not recorded")
	}
}
