package frameworks

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// autoGen reads the model contexts of AutoGen: lists of messages, records with them, and
// the result of save_state of an agent or a team; each agent of a team is a rollout.
func autoGen() []format.Importer {
	d := thread.Dialect{Name: "autogen", Is: isAutoGen, Add: addAutoGen, List: "messages"}
	state := format.Importer{Name: "autogen", Stateless: true, Match: func(v format.Value, _ *format.File) bool {
		return v.Path("llm_context", "messages").Kind() == jsonscan.Array || v.Get("type").Is("TeamState") && v.Get("agent_states").Kind() == jsonscan.Object
	}, Read: readAutoGenState}
	return append(d.Importers(), state)
}

var autoGenKinds = map[string]rollout.Role{
	"SystemMessage": rollout.RoleSystem, "UserMessage": rollout.RoleUser, "AssistantMessage": rollout.RoleAssistant, "FunctionExecutionResultMessage": rollout.RoleTool,
}

func isAutoGen(v format.Value) bool {
	return autoGenKinds[v.Get("type").Word()] != "" && v.Get("content").Kind() != jsonscan.Absent && v.Get("role").Kind() == jsonscan.Absent
}

func readAutoGenState(in *format.File, v format.Value) error {
	if v.Get("agent_states").Kind() != jsonscan.Object {
		return readAutoGenAgent(in, "", v)
	}
	for name, x := range v.Get("agent_states").Members() {
		if inner := x.Get("agent_state"); inner.Kind() == jsonscan.Object {
			x = inner
		}
		if x.Path("llm_context", "messages").Kind() != jsonscan.Array {
			continue // a manager, or an agent without a model
		}
		if err := in.Failed(readAutoGenAgent(in, name, x)); err != nil {
			return err
		}
	}
	return nil
}

func readAutoGenAgent(in *format.File, name string, v format.Value) error {
	t := thread.New(in)
	list := v.Path("llm_context", "messages")
	if list.Len() == 0 {
		return nil
	}
	for _, x := range list.Items() {
		addAutoGen(t, x)
	}
	if name != "" {
		t.Rollout.ID = name
		format.KeepText(&t.Rollout.Metadata, "agent", name)
	}
	return t.Emit(true) // system messages belong to the agent and are not in its context
}

func addAutoGen(t *thread.Thread, v format.Value) {
	kind, body := v.Get("type").Word(), v.Get("content")
	role, ok := autoGenKinds[kind]
	if !ok {
		t.Unknown("/type", kind)
	}
	m := rollout.Message{Role: role}
	if s := v.Get("source").String(); role == rollout.RoleUser && s != "user" {
		m.Name = s
	}
	if s, ok := body.Text(); ok && role != rollout.RoleTool {
		m.Content = s
	} else if body.Kind() != jsonscan.Array {
		t.In.Wrong(t.In.Want(body, t.At(), "/content", "a text or a list"))
	}
	switch role {
	case rollout.RoleTool:
		for _, x := range body.Items() {
			s := t.Words(x, "content", "/content")
			t.Say(rollout.Message{Role: role, ToolCallID: x.Get("call_id").String(), Content: s})
		}
		return
	case rollout.RoleAssistant:
		for _, c := range body.Items() {
			if c.Get("name").Kind() != jsonscan.String {
				t.Unknown("/content", format.Shape(c))
			}
			m.ToolCalls = append(m.ToolCalls, t.Call(c.Get("id").String(), c.Get("name").Word(), c.Get("arguments")))
		}
		// Beside calls the thought is the content, as it was sampled and is sent again. Only the
		// client of Anthropic's API puts thinking there.
		if s, ok := v.Get("thought").Text(); ok && m.ToolCalls != nil {
			m.Content = s
			t.In.Note("thought_beside_calls", t.At(), "AutoGen keeps what was said beside calls as a thought; it is read as the content")
		} else if ok {
			m.Reasoning = s
		}
	default:
		for _, x := range body.Items() {
			s, ok := x.Text()
			if !ok {
				t.Unknown("/content", "image")
			}
			m.Content += s
		}
	}
	t.Say(m)
}
