package traj

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// The Agent Data Protocol: "content" is a list of observations and actions,
// told by class_. Schema 1.3 and later link calls and results by tool_call_id
// and keep reasoning apart.

func isADP(v value, _ *fileReader) bool {
	c := v.Get("content")
	if c.Kind() != jsonscan.Array {
		return false
	}
	for _, x := range c.Items() {
		return x.Get("class_").Kind() == jsonscan.String
	}
	return v.Get("details").Kind() == jsonscan.Object && v.Get("id").Kind() != jsonscan.Absent
}

func readADP(j *fileReader, v value) error {
	if err := j.wantList(v.Get("content"), "/content"); err != nil {
		return err
	}
	r := &rollout.Rollout{ID: identifier(v.Get("id")), Index: noIndex}
	for i, x := range v.Get("content").Items() {
		m, err := j.adpMessage(x, i)
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, m)
	}
	r.Turns = turns(r.Messages)
	j.leftover(r, v, "id", "content")
	j.noteParts(r)
	return j.emit(r)
}

func (j *fileReader) adpMessage(x value, i int) (rollout.Message, error) {
	at := rollout.At(i)
	m := rollout.Message{}
	m.Reasoning = x.Get("reasoning_content").String()
	if !x.Get("reward").IsNull() {
		keep(&m.Extra, "reward", x.Get("reward"))
	}
	id := x.Get("tool_call_id").String()
	body := x.Get("content")
	switch class := x.Get("class_").String(); class {
	case "text_observation":
		j.adpSource(&m, x)
	case "web_observation":
		j.adpSource(&m, x)
		body = x.Get("html")
		if body.IsNull() {
			body = x.Get("axtree")
		}
		if !x.Get("image_observation").IsNull() {
			j.note("images", at, "a screenshot is referred to, not kept")
		}
	case "json_observation":
		j.adpSource(&m, x)
		m.Content = string(body.Clone())
		return m, nil
	case "image_observation":
		j.adpSource(&m, x)
		var o object
		o.text("type", "image")
		if !body.IsNull() {
			o.raw("image", body.Clone())
		}
		m.Parts = []rollout.Part{{Type: "image", Raw: o.end()}}
		return m, nil
	case "api_action":
		m.Role, m.Sampled = rollout.RoleAssistant, rollout.SampledByPolicy
		body = x.Get("description")
		c := rollout.ToolCall{ID: id, Name: x.Get("function").String()}
		if c.Name == "" {
			return m, j.fail(at, "/function", "the action has no function")
		}
		c.Arguments = "{}"
		if kw := x.Get("kwargs"); !kw.IsNull() {
			setArguments(&c, kw)
		}
		m.ToolCalls = []rollout.ToolCall{c}
	case "code_action":
		m.Role, m.Sampled = rollout.RoleAssistant, rollout.SampledByPolicy
		body = x.Get("description")
		code := x.Get("content")
		if code.Kind() != jsonscan.String {
			return m, j.want(code, at, "/content", "a string of code")
		}
		c := rollout.ToolCall{ID: id, Name: x.Get("language").String(), Arguments: `{"code":` + string(code.Raw()) + `}`}
		if c.Name == "" {
			return m, j.fail(at, "/language", "the code has no language")
		}
		m.ToolCalls = []rollout.ToolCall{c}
	case "message_action":
		m.Role, m.Sampled = rollout.RoleAssistant, rollout.SampledByPolicy
		if thought, ok := x.Get("description").Text(); ok && thought != "" {
			keep(&m.Extra, "description", x.Get("description"))
		}
	case "":
		return m, j.fail(at, "/class_", "the item has no class_")
	default:
		return m, j.fail(at, "/class_", "unknown class %q", class)
	}
	if body.IsNull() {
		m.NoContent = true
		return m, nil
	}
	return m, j.content(&m, body, i)
}

// adpSource gives an observation its role.
func (j *fileReader) adpSource(m *rollout.Message, x value) {
	switch x.Get("source").String() {
	case "user":
		m.Role = rollout.RoleUser
	case "agent":
		m.Role, m.Sampled = rollout.RoleAssistant, rollout.SampledOtherAgent
	default:
		m.Role = rollout.RoleTool
		m.ToolCallID = x.Get("tool_call_id").String()
	}
	m.Name = x.Get("name").String()
}
