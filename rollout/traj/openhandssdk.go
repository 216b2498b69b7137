package traj

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// The OpenHands agent SDK writes events told by "kind", one a line; a file is
// one conversation. Actions of one model response share llm_response_id.

func isSDKEvent(v value, _ *job) bool {
	kind := v.Get("kind").String()
	return (strings.HasSuffix(kind, "Event") || strings.HasSuffix(kind, "Observation") || strings.HasPrefix(kind, "Condensation")) &&
		v.Get("id").Kind() == jsonscan.String && v.Get("source").Kind() == jsonscan.String
}

type sdkRun struct {
	j         *job
	r         *rollout.Rollout
	responses map[string]int // response id → message
	calls     map[string]bool
	condensed bool
}

func foldSDKEvents(j *job) folder {
	return &sdkRun{j: j, r: &rollout.Rollout{Index: noIndex, Turns: []rollout.Turn{}}, responses: map[string]int{}, calls: map[string]bool{}}
}

func (x *sdkRun) add(v value) error {
	i := len(x.r.Messages)
	if x.r.ID == "" {
		x.r.ID = v.Get("id").String()
	}
	switch kind := v.Get("kind").String(); kind {
	case "SystemPromptEvent":
		m := rollout.Message{Role: rollout.RoleSystem}
		body := v.Get("system_prompt")
		if body.Kind() == jsonscan.Object {
			body = body.Get("text")
		}
		if err := x.j.content(&m, body, i); err != nil {
			return err
		}
		x.r.Messages = append(x.r.Messages, m)
		x.r.Tools = tools(v.Get("tools"))
	case "MessageEvent":
		m, err := x.j.chatMessage(v.Get("llm_message"), i)
		if err != nil {
			return err
		}
		if m.Role == rollout.RoleAssistant {
			x.turn(m, v)
			return nil
		}
		x.r.Messages = append(x.r.Messages, m)
	case "ActionEvent":
		return x.action(v)
	case "ObservationEvent", "AgentErrorEvent", "UserRejectObservation":
		return x.observation(v)
	case "Condensation":
		x.condensed = true
		x.j.note("condensed", rollout.At(i), "the history was condensed here: what the model saw afterwards is not the messages before")
	case "ConversationStateUpdateEvent", "PauseEvent", "CondensationRequest", "CondensationSummaryEvent":
	default:
		x.j.note("event_unknown", rollout.At(i), "an event of kind %q was left in the dump", kind)
	}
	return nil
}

func (x *sdkRun) turn(m rollout.Message, v value) {
	id := v.Get("llm_response_id").String()
	m.Sampled = rollout.SampledByPolicy
	if id != "" {
		x.responses[id] = len(x.r.Messages)
	}
	x.r.Turns = append(x.r.Turns, rollout.Turn{ID: id, Message: len(x.r.Messages), Step: len(x.r.Turns), Context: rollout.Context{Unknown: x.condensed}})
	x.r.Messages = append(x.r.Messages, m)
}

func (x *sdkRun) action(v value) error {
	i, joins := x.responses[v.Get("llm_response_id").String()]
	if !joins {
		i = len(x.r.Messages)
		m := rollout.Message{Role: rollout.RoleAssistant, Reasoning: v.Get("reasoning_content").String()}
		if err := x.j.content(&m, v.Get("thought"), i); err != nil {
			return err
		}
		m.NoContent = false
		if plainParts(m.Parts) {
			m.Parts = nil
		}
		if m.Reasoning == "" {
			for _, b := range v.Get("thinking_blocks").Items() {
				m.Reasoning += b.Get("thinking").String()
			}
		}
		x.turn(m, v)
	}
	call := v.Get("tool_call")
	c := rollout.ToolCall{ID: firstID(v, "tool_call_id"), Name: firstID(v, "tool_name")}
	arguments := call.Get("arguments")
	if f := call.Get("function"); f.Kind() == jsonscan.Object {
		arguments = f.Get("arguments")
		c.Name = f.Get("name").String()
	} else if n := call.Get("name").String(); n != "" {
		c.Name = n
	}
	if c.Name == "" {
		return x.j.fail(rollout.At(i), "/tool_call", "the action names no tool")
	}
	setArguments(&c, arguments)
	x.calls[c.ID] = true
	x.r.Messages[i].ToolCalls = append(x.r.Messages[i].ToolCalls, c)
	return nil
}

func (x *sdkRun) observation(v value) error {
	i := len(x.r.Messages)
	m := rollout.Message{Role: rollout.RoleTool, ToolCallID: v.Get("tool_call_id").String(), Name: v.Get("tool_name").String()}
	body := v.Path("observation", "content")
	for _, key := range []string{"error", "rejection_reason"} {
		if body.Kind() == jsonscan.Absent {
			body = v.Get(key)
		}
	}
	if err := x.j.content(&m, body, i); err != nil {
		return err
	}
	if !x.calls[m.ToolCallID] {
		x.j.note("result_without_call", rollout.At(i), "the action %q that this result answers is not in the file", m.ToolCallID)
	}
	x.r.Messages = append(x.r.Messages, m)
	return nil
}

func (x *sdkRun) finish() error {
	x.j.noteImages(x.r)
	return x.j.emit(x.r)
}
