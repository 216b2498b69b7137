package traj

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// OpenHands V0 writes a stream of events: actions of agent and user, and
// observations. The interface exports it as one JSON list; the evaluation
// harness puts it under "history" of one JSON line per instance.

func isEvent(v value) bool {
	return v.Get("role").Kind() == jsonscan.Absent && v.Get("kind").Kind() == jsonscan.Absent &&
		(v.Get("action").Kind() == jsonscan.String || v.Get("observation").Kind() == jsonscan.String)
}

func isEventList(v value, j *job) bool { return j.inList && isEvent(v) }

func isOpenHandsOutput(v value, _ *job) bool {
	h := v.Get("history")
	if h.Kind() == jsonscan.Absent {
		return false
	}
	for _, first := range h.Items() {
		if first.Kind() == jsonscan.Array {
			for _, e := range first.Items() {
				return isEvent(e)
			}
		}
		return isEvent(first)
	}
	known := 0
	for _, key := range []string{"instance_id", "instruction", "metadata", "metrics", "git_patch", "test_result"} {
		if v.Get(key).Kind() != jsonscan.Absent {
			known++
		}
	}
	return known >= 3
}

// eventRun makes messages of events. Actions that carry the same model response
// are one turn; their calls come from the response, not from the normalised
// arguments of the action.
type eventRun struct {
	j         *job
	r         *rollout.Rollout
	responses map[string]bool
	condensed bool
	finished  bool
}

func newEventRun(j *job) *eventRun {
	return &eventRun{j: j, r: &rollout.Rollout{Index: noIndex, Turns: []rollout.Turn{}}, responses: map[string]bool{}}
}

func (x *eventRun) add(v value) error {
	if v.Kind() == jsonscan.Array { // an action and its observation as a pair
		for _, e := range v.Items() {
			if err := x.add(e); err != nil {
				return err
			}
		}
		return nil
	}
	i := len(x.r.Messages)
	if v.Kind() != jsonscan.Object {
		return x.j.want(v, rollout.At(i), "/history", "an event object")
	}
	if o, ok := v.Get("observation").Text(); ok {
		return x.observation(o, v)
	}
	switch action := v.Get("action").String(); action {
	case "", "null", "recall", "change_agent_state":
		return nil
	case "condensation":
		x.condensed = true
		x.j.note("condensed", rollout.At(i), "the history was condensed here: what the model saw afterwards is not the messages before")
		return nil
	case "system":
		return x.text(rollout.RoleSystem, field(v, "content"))
	case "message":
		if source := v.Get("source"); source.Is("agent") || source.Is("environment") {
			break
		}
		return x.text(rollout.RoleUser, field(v, "content"))
	}
	return x.action(v)
}

// field is an argument of an action; old files keep arguments on the event.
func field(v value, key string) value {
	if a := v.Path("args", key); a.Kind() != jsonscan.Absent {
		return a
	}
	return v.Get(key)
}

func (x *eventRun) text(role rollout.Role, body value) error {
	m := rollout.Message{Role: role}
	if err := x.j.content(&m, body, len(x.r.Messages)); err != nil {
		return err
	}
	x.r.Messages = append(x.r.Messages, m)
	return nil
}

func (x *eventRun) action(v value) error {
	i := len(x.r.Messages)
	if v.Get("action").Is("finish") {
		x.finished = true
	}
	meta := v.Get("tool_call_metadata")
	if response := meta.Get("model_response"); response.Kind() == jsonscan.Object {
		id := response.Get("id").String()
		if id != "" && x.responses[id] {
			return nil // another call of a response that was taken
		}
		x.responses[id] = true
		m, err := x.j.chatMessage(firstChoice(response).Get("message"), i)
		if err != nil {
			return err
		}
		m.Role = rollout.RoleAssistant
		t := rollout.Turn{ID: id, FinishReason: firstChoice(response).Get("finish_reason").String()}
		if err := x.j.capture(&t, response, i); err != nil {
			return err
		}
		x.turn(m, t)
		return nil
	}
	m := rollout.Message{Role: rollout.RoleAssistant}
	body := value{}
	for _, key := range []string{"content", "thought", "final_thought"} {
		if v.Get("action").Is("message") != (key == "content") {
			continue
		}
		if b := field(v, key); b.Kind() == jsonscan.String && (body.Kind() == jsonscan.Absent || body.Is("")) {
			body = b
		}
	}
	if body.Kind() == jsonscan.String {
		if err := x.j.content(&m, body, i); err != nil {
			return err
		}
	}
	x.j.note("reply_not_recorded", rollout.At(i), "the %s action keeps no model response: the message is its text, the call is lost", v.Get("action").String())
	x.turn(m, rollout.Turn{})
	return nil
}

func (x *eventRun) turn(m rollout.Message, t rollout.Turn) {
	m.Sampled = rollout.SampledByPolicy
	t.Message, t.Step, t.Context.Unknown = len(x.r.Messages), len(x.r.Turns), x.condensed
	x.r.Messages = append(x.r.Messages, m)
	x.r.Turns = append(x.r.Turns, t)
}

func (x *eventRun) observation(kind string, v value) error {
	switch kind {
	case "null", "agent_state_changed", "recall":
		return nil
	}
	if err := x.text(rollout.RoleUser, v.Get("content")); err != nil {
		return err
	}
	if id, ok := v.Path("tool_call_metadata", "tool_call_id").Text(); ok {
		m := &x.r.Messages[len(x.r.Messages)-1]
		m.Role, m.ToolCallID = rollout.RoleTool, id
		m.Name = v.Path("tool_call_metadata", "function_name").String()
	}
	return nil
}

// done closes the run.
func (x *eventRun) done() *rollout.Rollout {
	if x.finished && x.r.Status == rollout.StatusUnknown {
		x.r.Status = rollout.StatusCompleted
	}
	return x.r
}

type eventList struct{ *eventRun }

func foldEvents(j *job) folder { return eventList{newEventRun(j)} }

func (f eventList) finish() error {
	f.j.note("context_not_recorded", 0, "events are what happened, not what the model saw: condensed history is not marked in older files")
	return f.j.emit(f.done())
}

func readOpenHandsOutput(j *job, v value) error {
	x := newEventRun(j)
	for _, e := range v.Get("history").Items() {
		if err := x.add(e); err != nil {
			return err
		}
	}
	r := x.r
	r.Instance = identifier(v.Get("instance_id"))
	if issue := v.Get("issue"); r.Instance == "" && issue.Kind() == jsonscan.Object {
		r.Instance = issue.Get("owner").String() + "/" + issue.Get("repo").String() + "#" + identifier(issue.Get("number"))
	}
	if detail, ok := v.Get("error").Text(); ok && detail != "" {
		r.ExitStatus, _, _ = strings.Cut(detail, ":")
		r.Outcome.Reason = detail
		if strings.Contains(detail, "maximum iteration") || strings.Contains(detail, "maximum budget") {
			r.Status = rollout.StatusTruncated
		}
	}
	r.Outcome.Submission = text(v.Path("test_result", "git_patch"))
	if r.Outcome.Submission == nil {
		r.Outcome.Submission = text(v.Get("git_patch"))
	}
	if b := boolean(v.Get("success")); b != nil {
		r.Outcome.Resolved = b
		j.note("resolved_by_opinion", 0, "resolved is the resolver's own opinion (success), not a test")
	}
	r.Temperature = temperature(v.Path("metadata", "llm_config", "temperature"))
	j.leftover(r, v, "instance_id", "history", "error", "test_result", "git_patch", "success", "instance", "instruction", "issue", "metadata")
	if x := v.Path("metadata", "llm_config", "model"); !x.IsNull() {
		keep(&r.Metadata, "model", x)
	}
	return j.emit(x.done())
}
