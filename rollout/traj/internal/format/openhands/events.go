package openhands

import (
	"bytes"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// IsEvent reports whether v is an event of V0.
func IsEvent(v format.Value) bool {
	return v.Get("role").Kind() == jsonscan.Absent && v.Get("kind").Kind() == jsonscan.Absent &&
		(v.Get("action").Kind() == jsonscan.String || v.Get("observation").Kind() == jsonscan.String)
}

// Events reads lists of the events of V0.
func Events() format.Importer {
	return format.Importer{Name: "openhands-events", Match: isEventList, Fold: foldEvents}
}

func isEventList(v format.Value, in *format.File) bool { return in.InList && IsEvent(v) }

// Output reads lines of the evaluation harness, with events of either kind.
func Output() format.Importer {
	return format.Importer{Name: "openhands-output", Match: isOpenHandsOutput, Read: readOpenHandsOutput, Stateless: true}
}

func isOpenHandsOutput(v format.Value, in *format.File) bool {
	h := v.Get("history")
	if h.Kind() == jsonscan.Absent {
		return false
	}
	first := h.First()
	if first.Kind() == jsonscan.Array {
		first = first.First()
	}
	if IsEvent(first) || IsSDKEvent(first, in) {
		return true
	}
	known := 0
	for _, key := range []string{"instance_id", "instruction", "metadata", "metrics", "git_patch", "test_result"} {
		if v.Get(key).Kind() != jsonscan.Absent {
			known++
		}
	}
	return known >= 3
}

// conversation is a rollout under construction from events.
type conversation struct {
	in        *format.File
	r         *rollout.Rollout
	view      *eventView
	responses map[string]int // response id → message
	known     bool           // at least one event was read
	added     int            // results to which their tool adds when they are shown
}

// noteAdded notes the results whose additions are not shown.
func (x *conversation) noteAdded() {
	if x.added > 0 {
		x.in.Note("additions_not_shown", 0, "%d results were shown to the model with lines of their tool's own (the exit code, the directory, that there was an error), which are no part of the recorded text", x.added)
	}
}

func newConversation(in *format.File) conversation {
	r := &rollout.Rollout{Index: format.NoIndex, Turns: []rollout.Turn{}}
	return conversation{in: in, r: r, view: newEventView(r), responses: map[string]int{}}
}

// turn adds a reply and its turn.
func (x *conversation) turn(m rollout.Message, t rollout.Turn) {
	m.Sampled = rollout.SampledByPolicy
	t.Message, t.Step, t.Context = len(x.r.Messages), len(x.r.Turns), x.view.context()
	if t.ID != "" {
		x.responses[t.ID] = t.Message
	}
	x.r.Messages = append(x.r.Messages, m)
	x.r.Turns = append(x.r.Turns, t)
}

// reply returns the message of a response. open is true if no other reply follows it:
// events of one response are adjacent, and the same id after another reply comes from an
// engine that repeats ids.
func (x *conversation) reply(response string) (message int, open bool) {
	message, known := x.responses[response]
	return message, known && x.r.Turns[len(x.r.Turns)-1].Message == message
}

// hasEvents reports whether an event was read.
func (x *conversation) hasEvents() bool { return x.known }

// eventRun converts V0 events to messages. Actions with the same model response are one
// turn; their calls come from the response, not from the normalized arguments of the
// action.
type eventRun struct {
	conversation
	finished bool
	depth    int // number of nested sub-agents at work
	theirs   int // number of events of sub-agents
}

func newEventRun(in *format.File) *eventRun {
	x := &eventRun{conversation: newConversation(in)}
	x.view.batched = true
	return x
}

func (x *eventRun) Add(v format.Value) error {
	if v.Kind() == jsonscan.Array { // an action and its observation as a pair
		for _, e := range v.Items() {
			if err := x.Add(e); err != nil {
				return err
			}
		}
		return nil
	}
	if v.Kind() != jsonscan.Object {
		return x.in.Want(v, rollout.At(len(x.r.Messages)), "/history", "an event object")
	}
	if !IsEvent(v) {
		unknownEvent(x.in, v, len(x.r.Messages))
		return nil
	}
	x.known = true
	if x.delegated(v) {
		return nil
	}
	message, err := x.event(v)
	if err == nil && message != outside {
		x.view.add(v.Get("id"), message)
	}
	return err
}

// unknownEvent notes a value among events that is not an event.
func unknownEvent(in *format.File, v format.Value, message int) {
	in.Note("event_unknown", rollout.At(message), "%s is no event; it was left in the dump", format.Shape(v))
}

// noEvent returns the error for a record in which no value is an event.
func noEvent(in *format.File) error {
	found := "nothing"
	if len(in.Notes) > 0 {
		found = in.Notes[0].Text
	}
	return rollout.Errorf(rollout.KindFormat, in.Where, "expected a list of events, found none: %s", found).
		WithFix("leave the format out, or name another")
}

// delegated reports whether an event belongs to a sub-agent: these are between the action
// that delegates and its observation, and the agent sees none of them.
func (x *eventRun) delegated(v format.Value) bool {
	theirs := x.depth > 0
	switch {
	case v.Get("action").Is("delegate"):
		x.depth++
	case theirs && v.Get("observation").Is("delegate"):
		x.depth--
		theirs = x.depth > 0
	}
	if theirs {
		x.theirs++
	}
	return theirs
}

// Results of event for events that are no message.
const (
	unseen  = -1 // counted in the history by condensations
	outside = -2 // not part of the history
)

// event reads one event and returns the index of its message, or unseen or outside.
func (x *eventRun) event(v format.Value) (message int, err error) {
	i := len(x.r.Messages)
	if o, ok := v.Get("observation").Text(); ok {
		return x.observation(o, v)
	}
	source := v.Get("source")
	switch action := v.Get("action").String(); action {
	case "", "null", "change_agent_state", "condensation_request":
		return outside, nil
	case "recall":
		return unseen, nil
	case "condensation":
		x.view.condense(v.Get("args"))
		x.view.noteCondensed(x.in)
		return outside, nil
	case "system":
		x.view.rooted = i == 0
		if x.tools(field(v, "tools"), i); x.in.Broken() {
			return i, nil
		}
		return i, x.text(rollout.RoleSystem, field(v, "content"))
	case "message":
		if n := field(v, "image_urls").Len(); n > 0 {
			x.in.Note("images", rollout.At(i), "%d images of the message were left in the dump", n)
		}
		if !source.Is("agent") && !source.Is("environment") {
			return i, x.text(rollout.RoleUser, field(v, "content"))
		}
	default:
		if source.Is("user") {
			return x.userAction(action, v)
		}
	}
	return x.action(v)
}

// userAction adds an action of the user, such as a command.
func (x *eventRun) userAction(action string, v format.Value) (int, error) {
	i := len(x.r.Messages)
	x.in.Note("user_action", rollout.At(i), "the user did this %s, not the model", action)
	body := field(v, "command")
	if body.Kind() != jsonscan.String {
		body = v.Get("message")
	}
	return i, x.text(rollout.RoleUser, body)
}

// tools reads the definitions in the system action. A reopened conversation may have
// others; the first ones are rendered.
func (x *eventRun) tools(list format.Value, i int) {
	x.in.ListOrNull(list, rollout.At(i), "/args/tools")
	defs := format.FunctionTools(list)
	switch {
	case x.r.Tools == nil:
		x.r.Tools = defs
	case len(defs) > 0 && !slices.EqualFunc(defs, x.r.Tools, func(a, b rollout.Tool) bool { return bytes.Equal(a, b) }):
		x.view.branched = true // contexts from here on cannot be rendered
		x.in.Note("tools_differ", rollout.At(i), "a later system message comes with other tools than the first: what the model saw from here on cannot be rendered")
	}
}

// field returns an argument of an action; old files have arguments on the event itself.
func field(v format.Value, key string) format.Value {
	if a := v.Path("args", key); a.Kind() != jsonscan.Absent {
		return a
	}
	return v.Get(key)
}

func (x *eventRun) text(role rollout.Role, body format.Value) error {
	m := rollout.Message{Role: role}
	if err := x.in.Content(&m, body, len(x.r.Messages)); err != nil {
		return err
	}
	x.r.Messages = append(x.r.Messages, m)
	return nil
}

func (x *eventRun) action(v format.Value) (int, error) {
	i := len(x.r.Messages)
	if v.Get("action").Is("finish") {
		x.finished = true
	}
	meta := v.Get("tool_call_metadata")
	if response := meta.Get("model_response"); response.Kind() == jsonscan.Object {
		id := response.Get("id").String()
		if first, open := x.reply(id); open {
			return first, nil // another call of the same response
		}
		m, err := x.in.ChatMessage(format.FirstChoice(response).Get("message"), i)
		if err != nil {
			return i, err
		}
		m.Role = rollout.RoleAssistant
		choice := format.FirstChoice(response)
		t := rollout.Turn{ID: id, FinishReason: choice.Get("finish_reason").String(), StopString: format.StopString(choice)}
		x.in.Capture(&t, response, i)
		if v.Get("action").Is("finish") { // it has no result; later calls show it as text
			said := rollout.Message{Role: m.Role, Content: m.Content, Sampled: rollout.SampledByPolicy}
			if thought := field(v, "thought").String(); thought != "" && thought != said.Content {
				said.Content = thought + "\n" + said.Content
			}
			x.view.said[i] = &said
		}
		x.turn(m, t)
		return i, nil
	}
	m := rollout.Message{Role: rollout.RoleAssistant}
	body := format.Value{}
	for _, key := range []string{"content", "thought", "final_thought"} {
		if v.Get("action").Is("message") != (key == "content") {
			continue
		}
		if b := field(v, key); b.Kind() == jsonscan.String && (body.Kind() == jsonscan.Absent || body.Is("")) {
			body = b
		}
	}
	if body.Kind() == jsonscan.String {
		if err := x.in.Content(&m, body, i); err != nil {
			return i, err
		}
	}
	if v.Get("source").Is("environment") {
		m.Sampled = rollout.SampledScripted
		x.r.Messages = append(x.r.Messages, m)
		return i, nil
	}
	if kind := v.Get("action").String(); kind != "message" {
		x.in.Note("reply_not_recorded", rollout.At(i), "the %s action keeps no model response: the message is its text, the call is lost, so that it is context and never trained", kind)
		x.turn(m, rollout.Turn{Incomplete: "the call of the reply is not recorded"})
		return i, nil
	}
	x.in.Note("reply_not_recorded", rollout.At(i), "the message action keeps no model response: the message is its text")
	x.turn(m, rollout.Turn{})
	return i, nil
}

func (x *eventRun) observation(kind string, v format.Value) (int, error) {
	i := len(x.r.Messages)
	switch kind {
	case "null", "agent_state_changed":
		return outside, nil
	case "recall":
		return unseen, nil
	}
	if err := x.text(rollout.RoleUser, v.Get("content")); err != nil {
		return i, err
	}
	if v.Path("extras", "metadata").Len() > 0 {
		x.added++
	}
	if id, ok := v.Path("tool_call_metadata", "tool_call_id").Text(); ok {
		m := &x.r.Messages[i]
		m.Role, m.ToolCallID = rollout.RoleTool, id
		m.Name = v.Path("tool_call_metadata", "function_name").String()
	}
	return i, nil
}

// done returns the rollout.
func (x *eventRun) done() *rollout.Rollout {
	x.in.UnlinkResults(x.r)
	x.noteAdded()
	if x.theirs > 0 {
		x.in.Note("other_agents", 0, "%d events of sub-agents were left in the dump: the agent sees only what they returned", x.theirs)
	}
	if x.finished && x.r.Status == rollout.StatusUnknown {
		x.r.Status = rollout.StatusCompleted
	}
	return x.r
}

type eventList struct{ *eventRun }

func foldEvents(in *format.File) format.Folder { return eventList{newEventRun(in)} }

func (f eventList) Finish() error {
	if !f.known {
		return noEvent(f.in)
	}
	f.in.Note("context_not_recorded", 0, "events are what happened, not what the model saw: condensed history is not marked in older files")
	return f.in.Emit(f.done())
}

// openHandsError sets the ending of a run that an error ended: a limit, a loop that the
// harness stopped, or a failure.
func openHandsError(r *rollout.Rollout, detail string) {
	r.ExitStatus, _, _ = strings.Cut(detail, ":")
	r.Outcome.Reason = detail
	has := func(s string) bool { return strings.Contains(detail, s) }
	switch {
	case has("maximum iteration"), has("maximum budget"), has("ContextWindowExceed"):
		r.Status, r.Failure = rollout.StatusTruncated, nil
	case has("AgentStuckInLoop"), has("conversation got stuck"):
		r.Status, r.Failure = rollout.StatusAborted, nil
	default:
		r.Status = rollout.StatusFailed
		r.Failure = &rollout.Failure{Reason: r.ExitStatus, Detail: detail}
	}
}

func readOpenHandsOutput(in *format.File, v format.Value) error {
	history := v.Get("history")
	if history.Kind() == jsonscan.Absent {
		return in.Want(history, 0, "/history", "a list")
	}
	in.ListOrNull(history, 0, "/history")
	var x interface {
		Add(v format.Value) error
		hasEvents() bool
		done() *rollout.Rollout
	} = newEventRun(in)
	for i, e := range history.Items() {
		if i == 0 && IsSDKEvent(e, in) {
			x = newSDKRun(in)
		}
		if err := x.Add(e); err != nil {
			return err
		}
	}
	if history.Len() > 0 && !x.hasEvents() {
		return noEvent(in)
	}
	r := x.done()
	r.ID = "" // it was an event's id
	r.Instance = format.Identifier(v.Get("instance_id"))
	if issue := v.Get("issue"); r.Instance == "" && issue.Kind() == jsonscan.Object {
		r.Instance = issue.Get("owner").String() + "/" + issue.Get("repo").String() + "#" + format.Identifier(issue.Get("number"))
	}
	if detail, ok := v.Get("error").Text(); ok && detail != "" {
		openHandsError(r, detail)
	}
	r.Outcome.Submission = format.Text(v.Path("test_result", "git_patch"))
	if r.Outcome.Submission == nil {
		r.Outcome.Submission = format.Text(v.Get("git_patch"))
	}
	for _, report := range []format.Value{v.Get("report"), v.Path("test_result", "report")} { // OpenHands' evaluation
		if r.Outcome.Verdict == rollout.VerdictUnknown {
			r.Outcome.Resolved, r.Outcome.Verdict = format.Graded(report)
		}
	}
	if b := format.Boolean(v.Get("success")); b != nil && r.Outcome.Verdict == rollout.VerdictUnknown {
		r.Outcome.Resolved = b
		in.Note("resolved_by_opinion", 0, "resolved is the resolver's own opinion (success), not a test")
	}
	llm := v.Path("metadata", "llm_config")
	if llm.IsNull() {
		llm = v.Path("metadata", "llm") // set by the agent SDK
	}
	r.Temperature = format.Temperature(llm.Get("temperature"))
	in.TemplateKwargs(r, llm)
	in.Leftover(r, v, "instance_id", "history", "error", "test_result", "git_patch", "success", "report", "instance", "instruction", "issue", "metadata")
	format.KeepAny(&r.Metadata, "model", llm.Get("model"))
	return in.Emit(r)
}
