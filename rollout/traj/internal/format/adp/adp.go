package adp

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Importer reads trajectories of any version of the schema.
func Importer() format.Importer {
	return format.Importer{Name: "adp", Match: match, Read: read, Stateless: true}
}

func match(v format.Value, _ *format.File) bool {
	c := v.Get("content")
	return c.First().Get("class_").Kind() == jsonscan.String ||
		c.Kind() == jsonscan.Array && c.Len() == 0 && v.Get("details").Kind() == jsonscan.Object && v.Get("id").Kind() != jsonscan.Absent
}

func read(in *format.File, v format.Value) error {
	in.WantList(v.Get("content"), "/content")
	r := &rollout.Rollout{ID: format.Identifier(v.Get("id")), Index: format.NoIndex}
	for i, x := range v.Get("content").Items() {
		m, err := message(in, x, i)
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, m)
	}
	r.Turns = format.TurnsOf(r.Messages)
	in.Leftover(r, v, "id", "content")
	in.NoteParts(r)
	return in.Emit(r)
}

func message(in *format.File, x format.Value, i int) (rollout.Message, error) {
	at := rollout.At(i)
	m := rollout.Message{}
	m.Reasoning = x.Get("reasoning_content").String()
	format.KeepAny(&m.Extra, "reward", x.Get("reward"))
	id := x.Get("tool_call_id").String()
	body := x.Get("content")
	switch class := x.Get("class_").String(); class {
	case "text_observation":
		setRole(in, &m, x)
	case "web_observation":
		setRole(in, &m, x)
		body = x.Get("html")
		if body.IsNull() {
			body = x.Get("axtree")
		}
		if !x.Get("image_observation").IsNull() {
			in.Note("images", at, "a screenshot is referred to, not kept")
		}
	case "json_observation":
		setRole(in, &m, x)
		m.Content = string(body.Clone())
		return m, nil
	case "image_observation":
		setRole(in, &m, x)
		var o format.Object
		o.Text("type", "image")
		if !body.IsNull() {
			o.Raw("image", body.Clone())
		}
		m.Parts = []rollout.Part{{Type: "image", Raw: o.End()}}
		return m, nil
	case "api_action":
		m.Role, m.Sampled = rollout.RoleAssistant, rollout.SampledByPolicy
		body = x.Get("description")
		c := rollout.ToolCall{ID: id, Name: x.Get("function").String()}
		if c.Name == "" {
			return m, in.Fail(at, "/function", "the action has no function")
		}
		c.Arguments = "{}"
		if kw := x.Get("kwargs"); !kw.IsNull() {
			format.SetArguments(&c, kw)
		}
		m.ToolCalls = []rollout.ToolCall{c}
	case "code_action":
		m.Role, m.Sampled = rollout.RoleAssistant, rollout.SampledByPolicy
		body = x.Get("description")
		code := x.Get("content")
		if code.Kind() != jsonscan.String {
			return m, in.Want(code, at, "/content", "a string of code")
		}
		c := rollout.ToolCall{ID: id, Name: x.Get("language").String(), Arguments: `{"code":` + string(code.Raw()) + `}`}
		if c.Name == "" {
			return m, in.Fail(at, "/language", "the code has no language")
		}
		m.ToolCalls = []rollout.ToolCall{c}
	case "message_action":
		m.Role, m.Sampled = rollout.RoleAssistant, rollout.SampledByPolicy
		if thought, ok := x.Get("description").Text(); ok && thought != "" {
			format.Keep(&m.Extra, "description", x.Get("description"))
		}
	case "":
		return m, in.Fail(at, "/class_", "the item has no class_")
	default:
		return m, in.Fail(at, "/class_", "unknown class %q", class)
	}
	if body.IsNull() {
		m.NoContent = true
		return m, nil
	}
	return m, in.Content(&m, body, i)
}

// setRole sets the role of an observation from its source.
func setRole(in *format.File, m *rollout.Message, x format.Value) {
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
