package frameworks

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// langChain reads the messages of LangChain as written by messages_to_dict, dumpd or the
// models themselves; also in a state or checkpoint of LangGraph, and in a prompt.
func langChain() []format.Importer {
	return thread.Dialect{Name: "langchain", Is: isLangChain, Add: addLangChain, List: "messages", Call: langChainState}.Importers()
}

// langChainState finds the messages in a state or checkpoint of LangGraph, or in a prompt.
func langChainState(v format.Value) (c thread.Call, is bool) {
	for _, x := range []format.Value{v.Get("values"), v.Get("channel_values"), v.Path("checkpoint", "channel_values"), v.Get("kwargs")} {
		if x.Get("messages").Kind() == jsonscan.Array {
			return thread.Call{Request: x, Plain: true}, true
		}
	}
	return c, false
}

// langChainRoles maps message types to roles.
var langChainRoles = map[string]rollout.Role{
	"human": rollout.RoleUser, "HumanMessage": rollout.RoleUser, "ai": rollout.RoleAssistant, "AIMessage": rollout.RoleAssistant, "AIMessageChunk": rollout.RoleAssistant,
	"system": rollout.RoleSystem, "SystemMessage": rollout.RoleSystem, "tool": rollout.RoleTool, "ToolMessage": rollout.RoleTool, "HumanMessageChunk": rollout.RoleUser,
	"SystemMessageChunk": rollout.RoleSystem, "ToolMessageChunk": rollout.RoleTool, "FunctionMessageChunk": rollout.RoleTool,
	"function": rollout.RoleTool, "FunctionMessage": rollout.RoleTool, "ChatMessage": "", "ChatMessageChunk": "", "chat": "", "RemoveMessage": "", "remove": "",
}

// langChainParts returns the type of a message and its fields.
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
	kind, fields, ok := langChainParts(v)
	if !ok || fields != v {
		return ok
	}
	return v.Get("role").Kind() == jsonscan.Absent && (v.Get("additional_kwargs").Kind() == jsonscan.Object || strings.ToLower(kind) == kind)
}

func addLangChain(t *thread.Thread, v format.Value) {
	kind, x, ok := langChainParts(v)
	if !ok {
		t.Unknown("/type", kind)
	}
	role := langChainRoles[kind]
	if role == "" {
		if !strings.HasPrefix(strings.ToLower(kind), "chat") {
			t.Unknown("/type", kind)
		}
		role = t.Speaker(x.Get("role").Word())
	}
	m := rollout.Message{Role: role, ToolCallID: x.Get("tool_call_id").String()}
	if s := x.Get("name").String(); s != "" && role != rollout.RoleTool {
		m.Name = s
	}
	body := x.Get("content")
	if role == rollout.RoleAssistant {
		m.Sampled = rollout.SampledByPolicy
		if x.Get("example").True() {
			m.Sampled = rollout.SampledDemonstration
		}
		reason := x.Path("response_metadata", "finish_reason").String()
		if reason == "" {
			reason = x.Path("response_metadata", "stop_reason").String()
		}
		t.End(reason)
		t.Unseen[len(t.Rollout.Messages)] = t.Lost != ""
		if body.Kind() == jsonscan.Array {
			langChainReply(t, m, x)
			return
		}
		langChainCalls(t, &m, x)
	}
	if text, ok := bareTexts(body); ok {
		m.Content = text
		t.Say(m)
		return
	}
	t.Blocks(m, body)
}

// langChainCalls reads the calls and the reasoning beside the content.
func langChainCalls(t *thread.Thread, m *rollout.Message, x format.Value) {
	more := x.Get("additional_kwargs")
	for _, list := range []string{"tool_calls", "invalid_tool_calls"} { // invalid_tool_calls have arguments that are not JSON
		for _, c := range x.Get(list).Items() {
			m.ToolCalls = append(m.ToolCalls, t.Call(c.Get("id").String(), c.Get("name").Word(), c.Get("args")))
		}
	}
	if len(m.ToolCalls) == 0 {
		for _, c := range more.Get("tool_calls").Items() {
			m.ToolCalls = append(m.ToolCalls, t.Call(c.Get("id").String(), c.Path("function", "name").Word(), c.Path("function", "arguments")))
		}
	}
	if f := more.Get("function_call"); len(m.ToolCalls) == 0 && f.Kind() == jsonscan.Object { // the first function calling API
		m.ToolCalls = append(m.ToolCalls, t.Call("", f.Get("name").Word(), f.Get("arguments")))
	}
	for _, key := range []string{"reasoning_content", "reasoning", "thinking", "reasoning_details"} {
		if s, ok := format.Thinking(more.Get(key)); ok && m.Reasoning == "" {
			m.Reasoning = s
		}
	}
	if m.Reasoning == "" && more.Path("reasoning", "summary").Kind() == jsonscan.Array {
		t.In.NoteRedacted(len(t.Rollout.Messages)) // a summary written by another model
	}
}

// langChainReply adds a reply whose content is a list: texts, and blocks written by
// providers or by LangChain. The blocks repeat the calls.
func langChainReply(t *thread.Thread, m rollout.Message, x format.Value) {
	langChainCalls(t, &m, x)
	beside := len(m.ToolCalls) > 0
	var texts, thoughts []string
	for _, b := range x.Get("content").Items() {
		if s, ok := b.Text(); ok {
			texts = append(texts, s)
			continue
		}
		kind := b.Get("type").Word()
		switch kind {
		case "text", "output_text":
			texts = append(texts, t.Words(b, "text", "/content"))
		case "thinking", "reasoning":
			s, ok := format.Thinking(b.Get(kind))
			if !ok {
				s, ok = format.Thinking(b.Get("content")) // Responses API, beside its summary
			}
			switch {
			case ok:
				thoughts = append(thoughts, s)
			case kind == "reasoning" && b.Get("reasoning").IsNull():
				t.In.NoteRedacted(len(t.Rollout.Messages))
			default:
				t.In.Wrong(t.In.Want(b.Get(kind), t.At(), "/content/"+kind, "a text"))
			}
		case "reasoning_content": // Bedrock
			s := t.Words(b.Get("reasoning_content"), "text", "/content/reasoning_content")
			thoughts = append(thoughts, s)
		case "redacted_thinking":
			t.In.NoteRedacted(len(t.Rollout.Messages))
		case "tool_use", "tool_call", "function_call", "input_json_delta":
			if beside || kind == "input_json_delta" {
				continue
			}
			id, arguments := b.Get("id"), b.Get("args")
			switch kind {
			case "tool_use":
				arguments = b.Get("input")
			case "function_call":
				id, arguments = b.Get("call_id"), b.Get("arguments")
			}
			m.ToolCalls = append(m.ToolCalls, t.Call(id.String(), b.Get("name").Word(), arguments))
		default:
			t.Unknown("/content", kind)
		}
	}
	m.Content = strings.Join(texts, "")
	if thoughts != nil {
		m.Reasoning = strings.Join(thoughts, "\n")
	}
	t.Say(m)
}

// bareTexts joins a list of nothing but strings.
func bareTexts(v format.Value) (text string, ok bool) {
	for _, x := range v.Items() {
		s, is := x.Text()
		if !is {
			return "", false
		}
		text += s
	}
	return text, v.Kind() == jsonscan.Array
}
