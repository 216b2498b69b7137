package traj

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// ShareGPT-like conversations: {from, value} or {role, content}.

func isShareGPT(v value, _ *job) bool { return v.Get("conversations").Kind() == jsonscan.Array }

var shareRoles = map[string]rollout.Role{
	"human": rollout.RoleUser, "user": rollout.RoleUser,
	"gpt": rollout.RoleAssistant, "assistant": rollout.RoleAssistant, "model": rollout.RoleAssistant, "chatgpt": rollout.RoleAssistant, "bing": rollout.RoleAssistant, "bard": rollout.RoleAssistant,
	"system": rollout.RoleSystem, "developer": rollout.RoleDeveloper,
	"observation": rollout.RoleTool, "function": rollout.RoleTool, "tool": rollout.RoleTool, "function_response": rollout.RoleTool,
}

// scriptedBytes is the longest opening reply that is taken for a canned "OK".
const scriptedBytes = 80

func readShareGPT(j *job, v value) error {
	if err := j.wantList(v.Get("conversations"), "/conversations"); err != nil {
		return err
	}
	r := &rollout.Rollout{
		ID:       firstID(v, "id", "uuid"),
		Instance: identifier(v.Get("instance_id")),
		Index:    noIndex,
		Outcome:  rollout.Outcome{Reward: j.reward(v.Get("reward"))},
		Tools:    j.shareTools(v.Get("tools")),
	}
	if s, ok := v.Get("system").Text(); ok && s != "" {
		r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleSystem, Content: s})
	}
	for _, x := range v.Get("conversations").Items() {
		i := len(r.Messages)
		m, err := j.shareMessage(x, i)
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, m)
	}
	j.episode(r, v)
	r.Turns = turns(r.Messages)
	j.cannedReply(r)
	j.leftover(r, v, "id", "instance_id", "conversations", "reward", "system", "tools")
	return j.emit(r)
}

func (j *job) shareTools(v value) []rollout.Tool {
	inner, err := j.inner(v, "/tools")
	if err != nil {
		if s := v.String(); s != "" {
			j.note("tools_unreadable", 0, "%s", err)
		}
		return nil
	}
	return functionTools(inner)
}

func (j *job) shareMessage(x value, i int) (rollout.Message, error) {
	word := firstID(x, "from", "role")
	role, known := shareRoles[word]
	switch {
	case known || x.Kind() != jsonscan.Object:
	case word == "function_call":
		role = rollout.RoleAssistant
	case word == "":
		return rollout.Message{}, j.fail(rollout.At(i), "/from", "the message says neither from nor role")
	default:
		return rollout.Message{}, j.fail(rollout.At(i), "/from", "unknown speaker %q", word)
	}
	body := x.Get("value")
	if body.Kind() == jsonscan.Absent {
		body = x.Get("content")
	}
	m, err := j.message(x, i, role, body)
	if err != nil {
		return m, err
	}
	drop(&m.Extra, "from", "value", "loss", "weight", "train")
	if word == "function_call" {
		if err := j.shareCall(&m, i); err != nil {
			return m, err
		}
	}
	if m.Role == rollout.RoleAssistant {
		m.Sampled = rollout.SampledByPolicy
		// The published AgentTuning sets mark replies that are not to be trained.
		train := x.Get("loss")
		if b, ok := train.Bool(); ok && !b {
			m.Sampled = rollout.SampledScripted
		} else if n, ok := train.Float(); ok && n == 0 {
			m.Sampled = rollout.SampledScripted
		}
		j.weigh(&m, x, i)
	}
	return m, nil
}

// shareCall reads a message that is one call as JSON text.
func (j *job) shareCall(m *rollout.Message, i int) error {
	var d jsonscan.Doc
	v, err := d.Parse([]byte(m.Content), jsonscan.Options{Depth: j.r.opt.Limits.Depth})
	if err != nil || v.Get("name").Kind() != jsonscan.String {
		j.note("call_unreadable", rollout.At(i), "the function_call message is not a JSON object with a name; it was kept as text")
		return nil
	}
	c := rollout.ToolCall{Name: v.Get("name").String(), Flat: true}
	setArguments(&c, v.Get("arguments"))
	m.ToolCalls = []rollout.ToolCall{c}
	m.Content, m.NoContent = "", true
	return nil
}

// cannedReply points at a short opening "OK" that a script wrote in some sets.
// The mark that would prove it is lost, so it stays counted as sampled.
func (j *job) cannedReply(r *rollout.Rollout) {
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
