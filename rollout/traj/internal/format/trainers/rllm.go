package trainers

import (
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// RLLM reads episodes, with one trajectory per agent.
func RLLM() format.Importer {
	return format.Importer{Name: "rllm", Match: isRLLM, Read: readRLLM, Stateless: true}
}

func isRLLM(v format.Value, _ *format.File) bool {
	for _, t := range v.Get("trajectories").Items() {
		return t.Get("steps").Kind() == jsonscan.Array
	}
	return v.Get("trajectories").Kind() == jsonscan.Array && v.Get("is_correct").Kind() == jsonscan.Bool
}

func readRLLM(in *format.File, v format.Value) error {
	in.WantList(v.Get("trajectories"), "/trajectories")
	id := v.Get("id").String()
	task, number, _ := strings.Cut(id, ":")
	for k, x := range v.Get("trajectories").Items() {
		r := &rollout.Rollout{Index: format.NoIndex, Instance: task, Group: task, Turns: []rollout.Turn{}, ExitStatus: v.Get("termination_reason").String()}
		if name := x.Get("name").String(); name != "" && v.Get("trajectories").Len() > 1 {
			r.Group += "/" + name
		}
		if r.ID = x.Get("uid").String(); r.ID == "" {
			r.ID = id + "/" + strconv.Itoa(k)
		}
		if n, err := strconv.Atoi(number); err == nil && n >= 0 && v.Get("trajectories").Len() == 1 {
			r.Index = n
		}
		err := trajectory(in, r, x)
		if err == nil {
			r.Outcome.Reward = in.Reward(x.Get("reward"))
			r.Outcome.Resolved = in.Resolved(v.Get("is_correct"))
			switch strings.ToLower(r.ExitStatus) {
			case "env_done":
				r.Status = rollout.StatusCompleted
			case "max_prompt_length_exceeded", "max_response_length_exceeded", "max_turns_exceeded", "timeout":
				r.Status = rollout.StatusTruncated
			case "error":
				r.Status = rollout.StatusFailed
			}
			in.NoteParts(r)
			in.Record = x
			err = in.Emit(r)
		}
		if err = in.Failed(err); err != nil {
			return err
		}
	}
	return nil
}

// trajectory reads the steps, each a call: the conversation with its reply at the end.
func trajectory(in *format.File, r *rollout.Rollout, v format.Value) error {
	steps := v.Get("steps")
	in.WantList(steps, "/steps")
	join := format.NewCallJoin(r)
	for i, s := range steps.Items() {
		t := rollout.Turn{Message: -1, Step: i, ID: s.Get("id").String(), FinishReason: s.Path("model_output", "finish_reason").String(), Version: format.Version(s.Get("weight_version"))}
		var messages []rollout.Message
		if list := s.Get("chat_completions"); !list.IsNull() && (list.Kind() != jsonscan.Array || list.Len() > 0) {
			messages = in.ChatMessages(list, "/steps/chat_completions")
		}
		format.MarkReplies(messages, rollout.SampledPrefilled)
		if n := len(messages); n > 0 {
			if messages[n-1].Role != rollout.RoleAssistant {
				return in.Fail(rollout.At(n-1), "/steps/chat_completions", "step %d ends with a message of %s, expected its reply", i, messages[n-1].Role)
			}
			messages[n-1].Sampled = rollout.SampledByPolicy
			t.Message = n - 1
		}
		if err := in.CaptureIDs(&t, s.Get("prompt_ids"), s.Get("response_ids"), emptyAsNone(s.Get("logprobs"))); err != nil {
			return err
		}
		switch {
		case messages != nil:
			join.Add(messages, []rollout.Turn{t})
		case t.Output != nil:
			r.Turns = append(r.Turns, t)
		default:
			return in.Fail(0, "/steps/chat_completions", "step %d holds neither messages nor ids: %s", i, format.Shape(s))
		}
	}
	return nil
}

func emptyAsNone(v format.Value) format.Value {
	if v.Len() == 0 {
		return format.Value{}
	}
	return v
}
