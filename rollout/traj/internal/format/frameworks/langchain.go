package frameworks

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// langChain reads the messages of LangChain: as messages_to_dict, dumpd or the models
// themselves write them.
func langChain() []format.Importer {
	return thread.Dialect{Name: "langchain", Is: isLangChain, Add: addLangChain, List: "messages"}.Importers()
}

// langChainRoles are the types of messages.
var langChainRoles = map[string]rollout.Role{
	"human": rollout.RoleUser, "HumanMessage": rollout.RoleUser, "ai": rollout.RoleAssistant, "AIMessage": rollout.RoleAssistant, "AIMessageChunk": rollout.RoleAssistant,
	"system": rollout.RoleSystem, "SystemMessage": rollout.RoleSystem, "tool": rollout.RoleTool, "ToolMessage": rollout.RoleTool, "HumanMessageChunk": rollout.RoleUser,
	"function": rollout.RoleTool, "FunctionMessage": rollout.RoleTool, "ChatMessage": "", "chat": "", "RemoveMessage": "", "remove": "",
}

// langChainParts tells the type of a message and its fields.
func langChainParts(v format.Value) (kind string, fields format.Value, ok bool) {
	switch {
	case v.Get("lc").Kind() == jsonscan.Number && v.Get("kwargs").Kind() == jsonscan.Object:
		for _, x := range v.Get("id").Items() {
			kind = x.String() // the last is the class
		}
		fields = v.Get("kwargs")
	case v.Get("data").Kind() == jsonscan.Object:
		kind, fields = v.Get("type").Word(), v.Get("data")
	default:
		kind, fields = v.Get("type").Word(), v
	}
	_, ok = langChainRoles[kind]
	return kind, fields, ok && fields.Get("content").Kind() != jsonscan.Absent
}

func isLangChain(v format.Value) bool {
	_, fields, ok := langChainParts(v)
	return ok && (fields != v || v.Get("role").Kind() == jsonscan.Absent && v.Get("additional_kwargs").Kind() == jsonscan.Object)
}

func addLangChain(t *thread.Thread, v format.Value) error {
	kind, x, ok := langChainParts(v)
	if !ok {
		return t.Unknown("/type", kind)
	}
	role := langChainRoles[kind]
	if role == "" {
		if kind != "chat" && kind != "ChatMessage" {
			return t.Unknown("/type", kind)
		}
		var err error
		if role, err = t.In.Speaker(x.Get("role").Word(), len(t.Rollout.Messages), "/role"); err != nil {
			return err
		}
	}
	m := rollout.Message{Role: role, ToolCallID: x.Get("tool_call_id").String()}
	if s := x.Get("name").String(); s != "" && role != rollout.RoleTool {
		m.Name = s
	}
	if role == rollout.RoleAssistant {
		m.Sampled = rollout.SampledByPolicy
		more := x.Get("additional_kwargs")
		for _, c := range x.Get("tool_calls").Items() {
			m.ToolCalls = append(m.ToolCalls, t.Call(c.Get("id").String(), c.Get("name").Word(), c.Get("args")))
		}
		for _, c := range x.Get("invalid_tool_calls").Items() { // whose arguments are no JSON
			m.ToolCalls = append(m.ToolCalls, t.Call(c.Get("id").String(), c.Get("name").Word(), c.Get("args")))
		}
		if len(m.ToolCalls) == 0 {
			for _, c := range more.Get("tool_calls").Items() {
				m.ToolCalls = append(m.ToolCalls, t.Call(c.Get("id").String(), c.Path("function", "name").Word(), c.Path("function", "arguments")))
			}
		}
		m.Reasoning = more.Get("reasoning_content").String()
		reason := x.Path("response_metadata", "finish_reason").String()
		if reason == "" {
			reason = x.Path("response_metadata", "stop_reason").String()
		}
		t.End(reason)
		t.Unseen[len(t.Rollout.Messages)] = t.Lost != ""
	}
	body := x.Get("content")
	for _, b := range body.Items() {
		kind := b.Get("type").Word()
		if role == rollout.RoleAssistant && b.Kind() == jsonscan.Object && kind != "text" && kind != "tool_use" && kind != "thinking" && kind != "redacted_thinking" {
			return t.Unknown("/content", kind)
		}
	}
	if text, ok := thread.BareTexts(body); ok { // texts may stand bare in a list
		m.Content = text
		t.Rollout.Messages = append(t.Rollout.Messages, m)
		return nil
	}
	return t.In.Blocks(t.Rollout, m, body)
}
