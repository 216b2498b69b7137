package traj

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// ShareGPT-like conversations: {from, value} or {role, content}.

func isShareGPT(v value, _ *fileReader) bool {
	list, key := shareList(v)
	if key == "conversations" {
		return list.Kind() == jsonscan.Array || list.Kind() == jsonscan.String
	}
	for _, first := range list.Items() {
		return first.Get("from").Kind() == jsonscan.String
	}
	return false
}

// shareList is the conversation of a record and its key; LMSYS writes the singular.
func shareList(v value) (list value, key string) {
	if list = v.Get("conversations"); list.Kind() != jsonscan.Absent {
		return list, "conversations"
	}
	return v.Get("conversation"), "conversation"
}

// scriptedBytes is the longest opening reply that is taken for a canned "OK".
const scriptedBytes = 80

func readShareGPT(j *fileReader, v value) error {
	list, key := shareList(v)
	if key == "conversation" && list.IsNull() {
		key = "conversations"
	}
	list, err := j.inner(list, "/"+key)
	if err != nil {
		return err
	}
	if err := j.wantList(list, "/"+key); err != nil {
		return err
	}
	r := &rollout.Rollout{
		ID:       firstID(v, "id", "uuid"),
		Instance: identifier(v.Get("instance_id")),
		Index:    noIndex,
		Outcome:  rollout.Outcome{Reward: j.reward(v.Get("reward"))},
		Tools:    j.shareTools(v.Get("tools")),
	}
	for _, x := range list.Items() {
		m, err := j.shareMessage(x, len(r.Messages))
		if err != nil {
			return err
		}
		r.Messages = said(r.Messages, m, firstID(x, "from", "role"))
	}
	if _, err := j.systemPrompt(r, v); err != nil {
		return err
	}
	if err := j.media(r, v); err != nil {
		return err
	}
	j.episode(r, v)
	r.Turns = turns(r.Messages)
	j.cannedReply(r)
	j.emptyReplies(r)
	j.leftover(r, v, append(systemKeys, "id", "instance_id", key, "reward", "tools")...)
	return j.emit(r)
}

func (j *fileReader) shareTools(v value) []rollout.Tool {
	inner, err := j.inner(v, "/tools")
	if err != nil {
		if s := v.String(); s != "" {
			j.note("tools_unreadable", 0, "%s", err)
		}
		return nil
	}
	return functionTools(inner)
}

func (j *fileReader) shareMessage(x value, i int) (rollout.Message, error) {
	word := firstID(x, "from", "role")
	if x.Kind() == jsonscan.Object && word == "" {
		return rollout.Message{}, j.fail(rollout.At(i), "/from", "the message says neither from nor role")
	}
	role, err := j.speaker(word, i, "/from")
	if err != nil && x.Kind() == jsonscan.Object {
		return rollout.Message{}, err
	}
	body := bodyOf(x, "value", "content", "text")
	read := j.message
	if contains(callRoles, word) {
		read = j.callMessage
	}
	m, err := read(x, i, role, body)
	if err != nil {
		return m, err
	}
	drop(&m.Extra, "from", "value", "text", "loss", "weight", "train")
	if m.Role == rollout.RoleAssistant {
		m.Sampled = rollout.SampledByPolicy
		// The published AgentTuning sets mark replies that are not to be trained.
		train := x.Get("loss")
		if b, ok := train.Bool(); ok && !b {
			m.Sampled = rollout.SampledScripted
		} else if n, ok := train.Float(); ok && n == 0 {
			m.Sampled = rollout.SampledScripted
		}
		j.applyTrainFlag(&m, x, i)
	}
	return m, nil
}

// cannedReply points at a short opening "OK" that a script wrote in some sets.
// The mark that would prove it is lost, so it stays counted as sampled.
func (j *fileReader) cannedReply(r *rollout.Rollout) {
	if len(r.Turns) < 2 {
		return
	}
	i := r.Turns[0].Message
	m := &r.Messages[i]
	start := strings.ToLower(strings.TrimSpace(m.Content))
	if i <= 1 && len(m.Content) <= scriptedBytes && (strings.HasPrefix(start, "ok") || strings.HasPrefix(start, "i've understood")) {
		j.note("perhaps_scripted", rollout.At(i), "the first reply looks like a canned one; the set does not mark it, so it counts as sampled")
	}
}
