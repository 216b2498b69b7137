package openhands

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// ReadBaseState reads base_state.json beside the folder of events, if f collects events of
// the agent SDK.
func ReadBaseState(f format.Folder) error {
	x, ok := f.(*sdkRun)
	if !ok || x.in.Settings.Alone {
		return nil
	}
	v, err := x.in.NeighbourJSON(filepath.Join("..", "base_state.json"))
	if err != nil || v.Kind() == jsonscan.Absent {
		return err
	}
	if id := v.Get("id").String(); id != "" {
		x.r.ID = id
	}
	x.state(v.Get("execution_status").String())
	x.r.Temperature = format.Temperature(v.Path("agent", "llm", "temperature"))
	x.in.TemplateKwargs(x.r, v.Path("agent", "llm"))
	format.KeepAny(&x.r.Metadata, "model", v.Path("agent", "llm", "model"))
	return nil
}

// state reads an execution status of the conversation; the last one counts. Only an error
// event says whether an error was a limit.
func (x *sdkRun) state(word string) {
	switch word {
	case "running":
		x.resetEnding()
		return
	case "finished":
		x.resetEnding()
		x.r.Status = rollout.StatusCompleted
	case "error":
		if x.r.Status == rollout.StatusTruncated {
			return
		}
		x.r.Status = rollout.StatusFailed
	case "stuck":
		x.r.Status = rollout.StatusAborted
	}
	x.r.ExitStatus = word
}

// resetEnding resets the ending, because the run continued.
func (x *sdkRun) resetEnding() {
	x.finished, x.r.Status, x.r.ExitStatus, x.r.Failure, x.r.Outcome.Reason = false, rollout.StatusUnknown, "", nil, ""
}

// failed reads an error event. Two codes are limits of the policy.
func (x *sdkRun) failed(v format.Value) {
	code, detail := v.Get("code").String(), v.Get("detail").String()
	x.resetEnding()
	if code == "MaxIterationsReached" || code == "LLMContextWindowExceedError" {
		x.r.Status, x.r.ExitStatus, x.r.Outcome.Reason = rollout.StatusTruncated, code, detail
		return
	}
	x.r.Status = rollout.StatusFailed
	x.r.Failure = &rollout.Failure{Reason: cmp.Or(code, "conversation_error"), Detail: detail}
}

// SDKEvents reads the events of the agent SDK.
func SDKEvents() format.Importer {
	return format.Importer{Name: "openhands-sdk-events", Match: IsSDKEvent, Fold: foldSDKEvents}
}

// IsSDKEvent reports whether v is an event of the agent SDK.
func IsSDKEvent(v format.Value, _ *format.File) bool {
	return hasSDKKind(v) && v.Get("id").Kind() == jsonscan.String && v.Get("source").Kind() == jsonscan.String
}

func hasSDKKind(v format.Value) bool {
	kind := v.Get("kind").String()
	return strings.HasSuffix(kind, "Event") || strings.HasSuffix(kind, "Observation") || strings.HasPrefix(kind, "Condensation")
}

type sdkRun struct {
	conversation
	last string          // id of the previous event
	seen map[string]bool // ids of events read
	// finished is true if the last call was one of the finish tool.
	finished bool
}

func foldSDKEvents(in *format.File) format.Folder { return newSDKRun(in) }

func newSDKRun(in *format.File) *sdkRun {
	return &sdkRun{conversation: newConversation(in), seen: map[string]bool{}}
}

func (x *sdkRun) Add(v format.Value) error {
	if !hasSDKKind(v) {
		unknownEvent(x.in, v, len(x.r.Messages))
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

// sdkRoot is the parent id of the first event.
const sdkRoot = "__root__"

// follow handles an event whose parent is not the previous event: somebody went back, and
// the events in between do not count. If the parent is not in the record, the record is an
// excerpt.
func (x *sdkRun) follow(v format.Value) {
	id, parent := v.Get("id").String(), v.Get("parent_id").String()
	x.view.merges = x.view.merges || parent != ""
	if x.last != "" && parent != "" && parent != x.last && (x.seen[parent] || parent == sdkRoot) && !x.view.branched {
		x.view.branched = true
		x.in.Note("branched", rollout.At(len(x.r.Messages)), "the conversation goes on from an earlier place here: what the model saw from here on is not known")
	}
	x.last, x.seen[id] = id, true
}

// loop tracks thinking loops by the rules of the SDK's view.
func (x *sdkRun) loop(v format.Value) {
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

// event reads one event and returns the index of its message, or unseen or outside.
func (x *sdkRun) event(v format.Value) (message int, err error) {
	i := len(x.r.Messages)
	switch kind := v.Get("kind").String(); kind {
	case "SystemPromptEvent":
		return i, x.system(v)
	case "MessageEvent":
		m, err := x.in.ChatMessage(v.Get("llm_message"), i)
		if err != nil {
			return i, err
		}
		if m.Role == rollout.RoleAssistant {
			if m.Reasoning == "" {
				m.Reasoning = sdkReasoning(v.Get("llm_message"))
			}
			x.turn(m, rollout.Turn{ID: v.Get("llm_response_id").String()})
			return i, nil
		}
		x.resetEnding()
		x.r.Messages = append(x.r.Messages, m)
		return i, x.extend(v.Get("extended_content"))
	case "ActionEvent":
		return x.action(v)
	case "ObservationEvent", "AgentErrorEvent", "UserRejectObservation":
		return i, x.observation(v)
	case "Condensation":
		x.view.condense(v)
		x.view.noteCondensed(x.in)
	case "TokenEvent":
		x.tokens(v)
	case "ConversationErrorEvent":
		x.failed(v)
	case "ConversationStateUpdateEvent":
		switch {
		case v.Get("key").Is("execution_status"):
			x.state(v.Get("value").String())
		case v.Get("key").Is("full_state"):
			x.state(v.Path("value", "execution_status").String())
		}
	case "PauseEvent", "InterruptEvent", "HookExecutionEvent", "SecurityAnalysisEvent", "StreamingDeltaEvent", "CondensationRequest", "CondensationSummaryEvent":
	default:
		x.in.Note("event_unknown", rollout.At(i), "an event of kind %q was left in the dump", kind)
	}
	return outside, nil
}

func (x *sdkRun) system(v format.Value) error {
	i := len(x.r.Messages)
	m := rollout.Message{Role: rollout.RoleSystem}
	body := v.Get("system_prompt")
	if body.Kind() == jsonscan.Object {
		body = body.Get("text")
	}
	if err := x.in.Content(&m, body, i); err != nil {
		return err
	}
	x.r.Messages = append(x.r.Messages, m)
	x.in.ObjectOrNull(v.Get("dynamic_context"), rollout.At(i), "/dynamic_context")
	if text := v.Path("dynamic_context", "text"); !text.IsNull() {
		x.r.Messages[i].Content += x.in.Text(text, rollout.At(i), "/dynamic_context/text")
	}
	x.r.Tools = x.tools(v.Get("tools"))
	return nil
}

// tools returns tool definitions: those sent to the model, or the SDK's own, whose
// parameters are not recorded.
func (x *sdkRun) tools(list format.Value) []rollout.Tool {
	var out []rollout.Tool
	missing := 0
	for _, t := range list.Items() {
		kind := t.Get("kind").String()
		if t.Get("type").Is("function") || kind == "" {
			out = append(out, t.Clone())
			continue
		}
		missing++
		name := format.FirstID(t, "title", "name")
		if name == "" {
			name = strings.ToLower(strings.TrimSuffix(kind, "Tool"))
		}
		var f format.Object
		f.Text("name", name)
		if d := t.Get("description"); !d.IsNull() {
			f.Raw("description", d.Clone())
		}
		out = append(out, format.Function(&f))
	}
	if missing > 0 {
		x.in.Note("tools_not_recorded", 0, "the parameters of %d tools are not in the events; a completion log has them", missing)
	}
	return out
}

// extend appends texts from the agent's context to the last message.
func (x *sdkRun) extend(list format.Value) error {
	i := len(x.r.Messages) - 1
	if x.in.ListOrNull(list, rollout.At(i), "/extended_content"); list.Len() == 0 {
		return nil
	}
	var more rollout.Message
	if err := x.in.Content(&more, list, i); err != nil {
		return err
	}
	format.AddParts(&x.r.Messages[i], more.Parts...)
	return nil
}

// tokens adds token ids to the latest turn; they are recorded after its actions and
// results.
func (x *sdkRun) tokens(v format.Value) {
	if n := len(x.r.Turns) - 1; n >= 0 && x.r.Turns[n].Output == nil {
		x.in.Capture(&x.r.Turns[n], v, x.r.Turns[n].Message)
	}
}

// sdkReasoning returns the readable reasoning of an action or message, under the keys of
// any of the APIs.
func sdkReasoning(v format.Value) string {
	text := v.Get("reasoning_content").String()
	if text == "" {
		for _, b := range v.Get("thinking_blocks").Items() {
			text += b.Get("thinking").String()
		}
	}
	return cmp.Or(text, format.Summary(v.Get("responses_reasoning_item")))
}

func (x *sdkRun) action(v format.Value) (int, error) {
	x.resetEnding()
	i, open := x.reply(v.Get("llm_response_id").String())
	if !open {
		i = len(x.r.Messages)
	}
	call := v.Get("tool_call")
	if call.Kind() != jsonscan.Object {
		return i, x.in.Want(call, rollout.At(i), "/tool_call", "an object")
	}
	c := rollout.ToolCall{ID: format.FirstID(v, "tool_call_id"), Name: format.FirstID(v, "tool_name")}
	arguments := call.Get("arguments")
	if f := call.Get("function"); f.Kind() == jsonscan.Object {
		arguments = f.Get("arguments")
		c.Name = f.Get("name").String()
	} else if n := call.Get("name").String(); n != "" {
		c.Name = n
	}
	if c.Name == "" {
		return i, x.in.Fail(rollout.At(i), "/tool_call", "the action names no tool")
	}
	format.SetArguments(&c, arguments)
	if !open {
		m := rollout.Message{Role: rollout.RoleAssistant, Reasoning: sdkReasoning(v)}
		if err := x.in.Content(&m, v.Get("thought"), i); err != nil {
			return i, err
		}
		m.NoContent = false
		if format.PlainParts(m.Parts) {
			m.Parts = nil
		}
		x.turn(m, rollout.Turn{ID: v.Get("llm_response_id").String()})
	}
	x.r.Messages[i].ToolCalls = append(x.r.Messages[i].ToolCalls, c)
	if t := &x.r.Turns[len(x.r.Turns)-1]; strings.Contains(c.Arguments, `"_openhands_malformed_tool_call"`) && t.Incomplete == "" {
		t.Incomplete = "the arguments of a call could not be read, and the SDK recorded its own in their place"
		x.in.Note("incomplete", rollout.At(i), "%s: the reply is context and never trained", t.Incomplete)
	}
	return i, nil
}

func (x *sdkRun) observation(v format.Value) error {
	if v.Path("observation", "metadata").Len() > 0 || v.Path("observation", "is_error").True() {
		x.added++
	}
	i := len(x.r.Messages)
	m := rollout.Message{Role: rollout.RoleTool, ToolCallID: format.Identifier(v.Get("tool_call_id")), Name: v.Get("tool_name").String()}
	if err := x.in.Content(&m, x.result(v), i); err != nil {
		return err
	}
	if reason, ok := v.Get("rejection_reason").Text(); ok {
		m.Content, m.NoContent = "Action rejected: "+reason, false // the SDK's wording to the model
	}
	x.r.Messages = append(x.r.Messages, m)
	x.finished = x.finished || v.Path("observation", "kind").Is("FinishObservation")
	return x.extend(v.Get("extended_content"))
}

// result returns the result of a tool: content, or in the first versions a text under a key
// of the tool. An agent's error has neither.
func (x *sdkRun) result(v format.Value) format.Value {
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
	x.in.Note("result_not_recorded", rollout.At(len(x.r.Messages)), "the observation (%s) holds no text; what the model was shown is not in the record", o.Get("kind").String())
	return format.Value{}
}

func (x *sdkRun) Finish() error {
	if !x.known {
		return noEvent(x.in)
	}
	return x.in.Emit(x.done())
}

// done returns the rollout.
func (x *sdkRun) done() *rollout.Rollout {
	x.in.NoteParts(x.r)
	x.in.UnlinkResults(x.r)
	x.noteAdded()
	if x.finished && x.r.Status == rollout.StatusUnknown {
		x.r.Status = rollout.StatusCompleted
	}
	return x.r
}
