package traj

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// The OpenHands agent SDK writes events told by "kind", one a line or one a
// file; a file or folder is one conversation. Actions of one model response
// share llm_response_id.

func isSDKEvent(v value, _ *fileReader) bool {
	return hasSDKKind(v) && v.Get("id").Kind() == jsonscan.String && v.Get("source").Kind() == jsonscan.String
}

func hasSDKKind(v value) bool {
	kind := v.Get("kind").String()
	return strings.HasSuffix(kind, "Event") || strings.HasSuffix(kind, "Observation") || strings.HasPrefix(kind, "Condensation")
}

type sdkRun struct {
	j         *fileReader
	r         *rollout.Rollout
	responses map[string]int // response id → message
	view      *eventView
	known     bool            // an event was met
	last      string          // id of the event before
	seen      map[string]bool // ids of events
}

func foldSDKEvents(j *fileReader) folder { return newSDKRun(j) }

func newSDKRun(j *fileReader) *sdkRun {
	r := &rollout.Rollout{Index: noIndex, Turns: []rollout.Turn{}}
	return &sdkRun{j: j, r: r, responses: map[string]int{}, view: newEventView(r), seen: map[string]bool{}}
}

func (x *sdkRun) add(v value) error {
	if !hasSDKKind(v) {
		x.j.unknownEvent(v, len(x.r.Messages))
		return nil
	}
	x.known = true
	x.follow(v)
	x.loop(v)
	if x.r.ID == "" {
		x.r.ID = v.Get("id").String()
	}
	message, err := x.event(v)
	if err == nil && message != outside {
		x.view.add(v.Get("id"), message)
	}
	return err
}

// sdkRoot is the parent of an event before which there is none.
const sdkRoot = "__root__"

// follow notes an event that goes on from another one than the event before:
// somebody went back, and the events after that place were left out. Where the
// one before is not in the record, it is an excerpt.
func (x *sdkRun) follow(v value) {
	id, parent := v.Get("id").String(), v.Get("parent_id").String()
	if x.last != "" && parent != "" && parent != x.last && (x.seen[parent] || parent == sdkRoot) && !x.view.branched {
		x.view.branched = true
		x.j.note("branched", rollout.At(len(x.r.Messages)), "the conversation goes on from an earlier place here: what the model saw from here on is not known")
	}
	x.last, x.seen[id] = id, true
}

// loop follows thinking loops, as the SDK's view tells them from the events.
func (x *sdkRun) loop(v value) {
	switch v.Get("kind").String() {
	case "ActionEvent":
		if v.Get("thinking_blocks").Len() > 0 {
			x.view.think()
		}
	case "ObservationEvent", "AgentErrorEvent", "UserRejectObservation":
	default:
		x.view.loop = 0
	}
}

// event reads one event and returns the message it stands for.
func (x *sdkRun) event(v value) (message int, err error) {
	i := len(x.r.Messages)
	switch kind := v.Get("kind").String(); kind {
	case "SystemPromptEvent":
		return i, x.system(v)
	case "MessageEvent":
		m, err := x.j.chatMessage(v.Get("llm_message"), i)
		if err != nil {
			return i, err
		}
		if m.Role == rollout.RoleAssistant {
			if m.Reasoning == "" {
				m.Reasoning = sdkReasoning(v.Get("llm_message"))
			}
			x.turn(m, v)
			return i, nil
		}
		x.r.Messages = append(x.r.Messages, m)
		return i, x.extend(v.Get("extended_content"))
	case "ActionEvent":
		return x.action(v)
	case "ObservationEvent", "AgentErrorEvent", "UserRejectObservation":
		return i, x.observation(v)
	case "Condensation":
		x.view.condense(v)
		x.view.noteCondensed(x.j)
	case "TokenEvent":
		return outside, x.tokens(v)
	case "ConversationErrorEvent":
		x.r.Status = rollout.StatusFailed
		x.r.Failure = &rollout.Failure{Reason: firstWord(v.Get("code").String(), "conversation_error"), Detail: v.Get("detail").String()}
	case "ConversationStateUpdateEvent", "PauseEvent", "InterruptEvent", "HookExecutionEvent", "SecurityAnalysisEvent", "StreamingDeltaEvent", "CondensationRequest", "CondensationSummaryEvent":
	default:
		x.j.note("event_unknown", rollout.At(i), "an event of kind %q was left in the dump", kind)
	}
	return outside, nil
}

func (x *sdkRun) system(v value) error {
	i := len(x.r.Messages)
	m := rollout.Message{Role: rollout.RoleSystem}
	body := v.Get("system_prompt")
	if body.Kind() == jsonscan.Object {
		body = body.Get("text")
	}
	if err := x.j.content(&m, body, i); err != nil {
		return err
	}
	x.r.Messages = append(x.r.Messages, m)
	if err := x.j.objectOrNothing(v.Get("dynamic_context"), rollout.At(i), "/dynamic_context"); err != nil {
		return err
	}
	if text := v.Path("dynamic_context", "text"); !text.IsNull() {
		x.r.Messages[i].Content += x.j.text(text, rollout.At(i), "/dynamic_context/text")
	}
	x.r.Tools = x.tools(v.Get("tools"))
	return nil
}

// tools reads tool definitions: those sent to the model, or the SDK's own, whose
// parameters are not recorded.
func (x *sdkRun) tools(list value) []rollout.Tool {
	var out []rollout.Tool
	missing := 0
	for _, t := range list.Items() {
		kind := t.Get("kind").String()
		if t.Get("type").Is("function") || kind == "" {
			out = append(out, t.Clone())
			continue
		}
		missing++
		name := firstID(t, "title", "name")
		if name == "" {
			name = strings.ToLower(strings.TrimSuffix(kind, "Tool"))
		}
		var f, o object
		f.text("name", name)
		if d := t.Get("description"); !d.IsNull() {
			f.raw("description", d.Clone())
		}
		o.text("type", "function")
		o.raw("function", f.end())
		out = append(out, o.end())
	}
	if missing > 0 {
		x.j.note("tools_not_recorded", 0, "the parameters of %d tools are not in the events; a completion log has them", missing)
	}
	return out
}

// extend appends texts that the agent's context added to the last message.
func (x *sdkRun) extend(list value) error {
	i := len(x.r.Messages) - 1
	if err := x.j.listOrNothing(list, rollout.At(i), "/extended_content"); err != nil || list.Len() == 0 {
		return err
	}
	var more rollout.Message
	if err := x.j.content(&more, list, i); err != nil {
		return err
	}
	addParts(&x.r.Messages[i], more.Parts...)
	return nil
}

func textPart(s string) rollout.Part {
	var o object
	o.text("type", "text")
	o.text("text", s)
	return rollout.Part{Type: "text", Text: s, Raw: o.end()}
}

// tokens gives the latest turn its ids, which follow its actions and their
// results.
func (x *sdkRun) tokens(v value) error {
	if len(x.r.Turns) == 0 {
		return nil
	}
	t := &x.r.Turns[len(x.r.Turns)-1]
	if t.Output != nil {
		return nil
	}
	x.j.capture(t, v, t.Message)
	return nil
}

func (x *sdkRun) turn(m rollout.Message, v value) {
	id := v.Get("llm_response_id").String()
	m.Sampled = rollout.SampledByPolicy
	if id != "" {
		x.responses[id] = len(x.r.Messages)
	}
	x.r.Turns = append(x.r.Turns, rollout.Turn{ID: id, Message: len(x.r.Messages), Step: len(x.r.Turns), Context: x.view.context()})
	x.r.Messages = append(x.r.Messages, m)
}

// sdkReasoning is the readable thinking of an action or message, under the name
// of the interface that it came through.
func sdkReasoning(v value) string {
	text := v.Get("reasoning_content").String()
	if text == "" {
		for _, b := range v.Get("thinking_blocks").Items() {
			text += b.Get("thinking").String()
		}
	}
	return firstWord(text, summary(v.Get("responses_reasoning_item")))
}

func (x *sdkRun) action(v value) (int, error) {
	i, joins := x.responses[v.Get("llm_response_id").String()]
	joins = joins && latest(x.r, i)
	if !joins {
		i = len(x.r.Messages)
	}
	call := v.Get("tool_call")
	if call.Kind() != jsonscan.Object {
		return i, x.j.want(call, rollout.At(i), "/tool_call", "an object")
	}
	c := rollout.ToolCall{ID: firstID(v, "tool_call_id"), Name: firstID(v, "tool_name")}
	arguments := call.Get("arguments")
	if f := call.Get("function"); f.Kind() == jsonscan.Object {
		arguments = f.Get("arguments")
		c.Name = f.Get("name").String()
	} else if n := call.Get("name").String(); n != "" {
		c.Name = n
	}
	if c.Name == "" {
		return i, x.j.fail(rollout.At(i), "/tool_call", "the action names no tool")
	}
	setArguments(&c, arguments)
	if !joins {
		m := rollout.Message{Role: rollout.RoleAssistant, Reasoning: sdkReasoning(v)}
		if err := x.j.content(&m, v.Get("thought"), i); err != nil {
			return i, err
		}
		m.NoContent = false
		if plainParts(m.Parts) {
			m.Parts = nil
		}
		x.turn(m, v)
	}
	x.r.Messages[i].ToolCalls = append(x.r.Messages[i].ToolCalls, c)
	return i, nil
}

func (x *sdkRun) observation(v value) error {
	i := len(x.r.Messages)
	m := rollout.Message{Role: rollout.RoleTool, ToolCallID: identifier(v.Get("tool_call_id")), Name: v.Get("tool_name").String()}
	if err := x.j.content(&m, x.result(v), i); err != nil {
		return err
	}
	if reason, ok := v.Get("rejection_reason").Text(); ok {
		m.Content, m.NoContent = "Action rejected: "+reason, false // as the SDK tells the model
	}
	x.r.Messages = append(x.r.Messages, m)
	return x.extend(v.Get("extended_content"))
}

// result is what a tool gave back: content, or in the first versions a text under
// a name of the tool's own. An agent's error has neither.
func (x *sdkRun) result(v value) value {
	o := v.Get("observation")
	if o.Kind() != jsonscan.Object {
		return v.Get("error")
	}
	if body := o.Get("content"); !body.IsNull() {
		return body
	}
	for _, key := range []string{"output", "error", "message", "text"} {
		if body := o.Get(key); body.Kind() == jsonscan.String && !body.Is("") {
			return body
		}
	}
	x.j.note("result_not_recorded", rollout.At(len(x.r.Messages)), "the observation (%s) holds no text; what the model was shown is not in the record", o.Get("kind").String())
	return value{}
}

func (x *sdkRun) finish() error {
	if !x.known {
		return x.j.noEvent()
	}
	return x.j.emit(x.done())
}

// met reports whether there was an event.
func (x *sdkRun) met() bool { return x.known }

// done closes the run.
func (x *sdkRun) done() *rollout.Rollout {
	x.j.noteParts(x.r)
	x.j.orphans(x.r)
	return x.r
}
