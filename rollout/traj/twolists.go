package traj

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Records of two texts or lists of messages: a prompt with the completion that was
// sampled for it, and pairs of a preferred and a rejected reply.

var preferencePairs = [][2]string{{"chosen", "rejected"}, {"accepted", "rejected"}, {"preferred_output", "non_preferred_output"}, {"preferred", "dispreferred"}}

func preferencePair(v value) (pair [2]string, is bool) {
	for _, p := range preferencePairs {
		if !v.Get(p[0]).IsNull() && !v.Get(p[1]).IsNull() {
			return p, true
		}
	}
	return pair, false
}

func isPreference(v value, _ *fileReader) bool {
	_, is := preferencePair(v)
	return is
}

// readPreference refuses a pair: that one reply was preferred says neither that the
// policy sampled them nor what they are worth.
func readPreference(j *fileReader, v value) error {
	pair, is := preferencePair(v)
	if !is {
		return j.want(v.Get("chosen"), 0, "/chosen", "a preferred reply beside a rejected one")
	}
	w := j.where
	w.Field = "/" + pair[1]
	return rollout.Errorf(rollout.KindFormat, w, "the record is a preference pair (%s, %s): neither reply is known to be sampled by the policy", pair[0], pair[1]).
		WithFix("keep it for a preference trainer, or write the replies as rollouts with rewards of their own")
}

func isPromptCompletion(v value, _ *fileReader) bool {
	said := func(x value) bool {
		return x.Kind() == jsonscan.String || x.Kind() == jsonscan.Array || x.Kind() == jsonscan.Object
	}
	return said(v.Get("prompt")) && said(v.Get("completion")) && v.Get("messages").IsNull()
}

// renderedMarks begin messages in prompts that a chat template wrote.
var renderedMarks = []string{"<|im_start|>", "<|start_header_id|>", "<start_of_turn>", "<|turn>", "[INST]", "<|user|>", "<|User|>", "<｜User｜>", "<|start|>", "<|im_user|>"}

// readPromptCompletion reads a prompt and what was sampled for it: each a list of
// messages, one message, or a text that a user or the assistant said.
func readPromptCompletion(j *fileReader, v value) error {
	r := &rollout.Rollout{
		ID: firstID(v, "traj_id", "rollout_id", "id", "uuid"), Instance: firstID(v, "instance_id", "task_id", "example_id", "prompt_id"), Index: noIndex,
		Outcome: rollout.Outcome{Reward: j.reward(v.Get("reward")), Resolved: j.resolved(v.Get("resolved"))},
	}
	prompt, err := j.half(v, "prompt", rollout.RoleUser, 0)
	if err != nil {
		return err
	}
	sampleAll(prompt, rollout.SampledPrefilled)
	r.Messages = prompt
	if _, err := j.systemPrompt(r, v); err != nil {
		return err
	}
	n := len(r.Messages)
	completion, err := j.half(v, "completion", rollout.RoleAssistant, n)
	if err != nil {
		return err
	}
	sampleAll(completion, rollout.SampledByPolicy)
	r.Messages = append(r.Messages, completion...)
	if err := j.media(r, v); err != nil {
		return err
	}
	if r.Turns = turns(r.Messages); len(r.Turns) == 0 {
		return j.fail(rollout.At(n), "/completion", "the completion holds no reply of an assistant")
	}
	if len(r.Turns) == 1 {
		j.capture(&r.Turns[0], v, r.Turns[0].Message)
	}
	if first := r.Turns[0].Message; first == n && n > 0 {
		j.continued(&r.Turns[0], r.Messages[n-1].Role == rollout.RoleAssistant)
	}
	defs, err := j.inner(v.Get("tools"), "/tools")
	if err != nil {
		return err
	}
	r.Tools = tools(defs)
	if err := j.templateKwargs(r, v); err != nil {
		return err
	}
	if label := v.Get("label"); label.Kind() == jsonscan.Bool && r.Outcome.Resolved == nil {
		r.Outcome.Resolved = boolean(label)
		j.note("label_as_outcome", 0, "the label of an unpaired preference is read as resolved: somebody's opinion, not a test")
	}
	for _, key := range []string{"finish_reason", "stop_reason"} {
		if why := v.Get(key).String(); contains(replyEnds, why) {
			lastEnded(r, why)
			r.Status = statusOf(why)
		}
	}
	if t := temperature(v.Get("temperature")); t != nil && *t >= 0 {
		r.Temperature = t
	}
	j.leftover(r, v, append(systemKeys, "prompt", "completion", "reward", "resolved", "id", "instance_id", "tools", "chat_template_kwargs", "label")...)
	j.noteParts(r)
	j.emptyReplies(r)
	return j.emit(r)
}

// half reads one side, whose messages begin at place i of the rollout.
func (j *fileReader) half(v value, key string, role rollout.Role, i int) ([]rollout.Message, error) {
	x := v.Get(key)
	switch x.Kind() {
	case jsonscan.String:
		s := j.text(x, rollout.At(i), "/"+key)
		for _, mark := range renderedMarks {
			if strings.Contains(s, mark) {
				return nil, j.fail(rollout.At(i), "/"+key, "the %s is text that a chat template wrote (%q), not what was said", key, mark)
			}
		}
		return []rollout.Message{{Role: role, Content: s}}, nil
	case jsonscan.Object:
		m, err := j.chatEntry(x, i)
		return []rollout.Message{m}, err
	}
	out, _, err := j.chatOrBlocks(x, "/"+key, holdsBlocks(x))
	return out, err
}
