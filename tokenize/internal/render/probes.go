package render

import "github.com/turnpack/turnpack/rollout"

// Messages of probe conversations.

var ProbeTools = []rollout.Tool{rollout.Tool(`{"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}`)}

func User(text string) rollout.Message {
	return rollout.Message{Role: rollout.RoleUser, Content: text}
}

func Assistant(text string) rollout.Message {
	return rollout.Message{Role: rollout.RoleAssistant, Content: text, Sampled: rollout.SampledByPolicy}
}

func Thinking(reasoning, text string) rollout.Message {
	m := Assistant(text)
	m.Reasoning = reasoning
	return m
}

func Calling(reasoning string, ids ...string) rollout.Message {
	m := Thinking(reasoning, "")
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, rollout.ToolCall{ID: id, Name: "bash", Arguments: `{"command": "probe ` + id + `"}`})
	}
	return m
}

func Answering(id, text string) rollout.Message {
	return rollout.Message{Role: rollout.RoleTool, Name: "bash", ToolCallID: id, Content: text}
}
