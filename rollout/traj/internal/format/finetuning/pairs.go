package finetuning

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

var preferencePairs = [][2]string{{"chosen", "rejected"}, {"accepted", "rejected"}, {"preferred_output", "non_preferred_output"}, {"preferred", "dispreferred"},
	{"chosen_response", "rejected_response"}, {"response_chosen", "response_rejected"}, {"messages", "rejected_messages"}, {"messages", "rejected_response"}, {"response", "rejected_response"}}

func preferencePair(v format.Value) (pair [2]string, is bool) {
	for _, p := range preferencePairs {
		if !v.Get(p[0]).IsNull() && !v.Get(p[1]).IsNull() {
			return p, true
		}
	}
	return pair, false
}

// Preference refuses pairs of a preferred and a rejected reply.
func Preference() format.Importer {
	return format.Importer{Name: "preference", Match: isPreference, Read: readPreference, Stateless: true}
}

func isPreference(v format.Value, _ *format.File) bool {
	_, is := preferencePair(v)
	return is
}

// readPreference returns an error: a preference says neither that the policy sampled the
// replies nor what they are worth.
func readPreference(in *format.File, v format.Value) error {
	pair, is := preferencePair(v)
	if !is {
		return in.Want(v.Get("chosen"), 0, "/chosen", "a preferred reply beside a rejected one")
	}
	w := in.Where
	w.Field = "/" + pair[1]
	return rollout.Errorf(rollout.KindFormat, w, "the record is a preference pair (%s, %s): neither reply is known to be sampled by the policy", pair[0], pair[1]).
		WithFix("keep it for a preference trainer, or write the replies as rollouts with rewards of their own")
}

// PromptCompletion reads a prompt with a sampled completion.
func PromptCompletion() format.Importer {
	return format.Importer{Name: "prompt-completion", Match: isPromptCompletion, Read: readPromptCompletion, Stateless: true}
}

func isPromptCompletion(v format.Value, _ *format.File) bool {
	said := func(x format.Value) bool {
		return x.Kind() == jsonscan.String || x.Kind() == jsonscan.Array || x.Kind() == jsonscan.Object
	}
	return said(v.Get("prompt")) && said(v.Get("completion")) && v.Get("messages").IsNull()
}

// renderedMarks begin messages in prompts that a chat template rendered.
var renderedMarks = []string{"<|im_start|>", "<|start_header_id|>", "<start_of_turn>", "<|turn>", "[INST]", "<|user|>", "<|User|>", "<｜User｜>", "<|start|>", "<|im_user|>"}

// readPromptCompletion reads a prompt and its completion: each a list of messages, one
// message, or a text of the user or the assistant.
func readPromptCompletion(in *format.File, v format.Value) error {
	r := &rollout.Rollout{
		ID: format.FirstID(v, "traj_id", "rollout_id", "id", "uuid"), Instance: format.FirstID(v, "instance_id", "task_id", "example_id", "prompt_id"), Index: format.NoIndex,
		Outcome: in.Outcome(v),
	}
	prompt, err := side(in, v, "prompt", rollout.RoleUser, 0)
	if err != nil {
		return err
	}
	format.MarkReplies(prompt, rollout.SampledPrefilled)
	r.Messages = prompt
	if _, err := systemPrompt(in, r, v); err != nil {
		return err
	}
	n := len(r.Messages)
	completion, err := side(in, v, "completion", rollout.RoleAssistant, n)
	if err != nil {
		return err
	}
	format.MarkReplies(completion, rollout.SampledByPolicy)
	r.Messages = append(r.Messages, completion...)
	media(in, r, v)
	if r.Turns = format.TurnsOf(r.Messages); len(r.Turns) == 0 {
		return in.Fail(rollout.At(n), "/completion", "the completion holds no reply of an assistant")
	}
	if len(r.Turns) == 1 {
		in.Capture(&r.Turns[0], v, r.Turns[0].Message)
	}
	if first := r.Turns[0].Message; first == n && n > 0 {
		in.ContinuesPrefill(&r.Turns[0], r.Messages[n-1].Role == rollout.RoleAssistant)
	}
	defs := in.Inner(v.Get("tools"), "/tools")
	r.Tools = format.Tools(defs)
	in.TemplateKwargs(r, v)
	opinion(in, r, v)
	for _, key := range []string{"finish_reason", "stop_reason"} {
		if why := v.Get(key).String(); slices.Contains(format.ReplyEnds, why) {
			format.EndLast(r, why)
			r.Status = format.StatusOf(why)
		}
	}
	if t := format.Temperature(v.Get("temperature")); t != nil && *t >= 0 {
		r.Temperature = t
	}
	in.Leftover(r, v, slices.Concat(systemKeys, opinionKeys, []string{"prompt", "completion", "reward", "resolved", "id", "instance_id", "tools", "chat_template_kwargs"})...)
	in.NoteParts(r)
	in.EmptyReplies(r)
	return in.Emit(r)
}

// asMessages parses a text that is JSON of messages, as tables hold them; other values are
// returned unchanged.
func asMessages(in *format.File, x format.Value) format.Value {
	s, ok := x.Text()
	if !ok || !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "{") {
		return x
	}
	inner, err := in.ParseInner(x, "")
	if err != nil {
		return x
	}
	list := []format.Value{inner}
	if inner.Kind() == jsonscan.Array {
		list = format.Elements(inner)
	}
	for _, m := range list {
		if m.Get("role").Kind() != jsonscan.String || m.Get("content").Kind() == jsonscan.Absent && m.Get("tool_calls").Kind() == jsonscan.Absent {
			return x
		}
	}
	if len(list) == 0 {
		return x
	}
	return inner
}

// side reads the prompt or the completion; its messages begin at index i of the rollout.
func side(in *format.File, v format.Value, key string, role rollout.Role, i int) ([]rollout.Message, error) {
	x := asMessages(in, v.Get(key))
	switch x.Kind() {
	case jsonscan.String:
		s := in.Text(x, rollout.At(i), "/"+key)
		for _, mark := range renderedMarks {
			if strings.Contains(s, mark) {
				return nil, in.Fail(rollout.At(i), "/"+key, "the %s is text that a chat template wrote (%q), not what was said", key, mark)
			}
		}
		return []rollout.Message{{Role: role, Content: s}}, nil
	case jsonscan.Object:
		m, err := chatEntry(in, x, i)
		return []rollout.Message{m}, err
	}
	out, _, err := chatOrBlocks(in, x, "/"+key, format.HoldsBlocks(x))
	return out, err
}
