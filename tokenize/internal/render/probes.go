package render

import "github.com/turnpack/turnpack/rollout"

// ProbeTools are the tools of probe conversations; the functions below make their messages.
var ProbeTools = []rollout.Tool{rollout.Tool(`{"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}`)}

// User returns a user message.
func User(text string) rollout.Message {
	return rollout.Message{Role: rollout.RoleUser, Content: text}
}

// Assistant returns a sampled reply.
func Assistant(text string) rollout.Message {
	return rollout.Message{Role: rollout.RoleAssistant, Content: text, Sampled: rollout.SampledByPolicy}
}

// Thinking returns a sampled reply with reasoning.
func Thinking(reasoning, text string) rollout.Message {
	m := Assistant(text)
	m.Reasoning = reasoning
	return m
}

// Calling returns a sampled reply without content, with one call of ProbeTools for each id.
func Calling(reasoning string, ids ...string) rollout.Message {
	m := Thinking(reasoning, "")
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, rollout.ToolCall{ID: id, Name: "bash", Arguments: `{"command": "probe ` + id + `"}`})
	}
	return m
}

// Answering returns the result of the call with that id.
func Answering(id, text string) rollout.Message {
	return rollout.Message{Role: rollout.RoleTool, Name: "bash", ToolCallID: id, Content: text}
}
