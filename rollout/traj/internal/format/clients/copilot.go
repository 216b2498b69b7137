package clients

import (
	"cmp"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// copilot reads the events of Copilot CLI: ~/.copilot/session-state/*/events.jsonl, and the
// output of copilot --output-format json.
func copilot() format.Importer {
	return format.Importer{Name: "copilot-cli", Match: isCopilot, Fold: func(in *format.File) format.Folder {
		return &copilotSession{t: thread.New(in), agents: map[string]*thread.Thread{}, open: map[*thread.Thread]map[string]bool{}, unknown: map[string]bool{}}
	}}
}

// copilotAreas are prefixes of event types that are not shown to the model.
var copilotAreas = []string{
	"session.", "assistant.", "tool.", "permission.", "hook.", "mcp.", "subagent.", "command.", "commands.", "capabilities.", "user_input.", "elicitation.", "sampling.",
	"external_tool.", "skills.", "custom_agents.", "extensions.", "canvas.", "binary_asset", "pending_messages.", "auto_mode", "exit_plan_mode.", "model_call", "model.",
	"background_tasks.", "factory", "fusion", "tools.", "custom_notification", "ui.", "managed_settings", "system.notification", "abort", "skill.", "result", "user.message", "system.message",
}

func isCopilot(v format.Value, _ *format.File) bool {
	kind := v.Get("type").Word()
	if v.Get("timestamp").Kind() != jsonscan.String && v.Get("id").Kind() != jsonscan.String {
		return false
	}
	return v.Get("data").Kind() == jsonscan.Object && v.Get("payload").Kind() == jsonscan.Absent &&
		slices.ContainsFunc(copilotAreas, func(area string) bool { return strings.HasPrefix(kind, area) && strings.Contains(kind, ".") })
}

type copilotSession struct {
	t       *thread.Thread
	order   []string // names of sub-agents
	agents  map[string]*thread.Thread
	open    map[*thread.Thread]map[string]bool // calls without results so far
	unknown map[string]bool
}

// of returns the thread of an event; each sub-agent has its own.
func (s *copilotSession) of(v format.Value) *thread.Thread {
	name := cmp.Or(v.Get("agentId").String(), v.Path("data", "parentToolCallId").String())
	if name == "" {
		return s.t
	}
	t := s.agents[name]
	if t == nil {
		t = thread.New(s.t.In)
		s.agents[name] = t
		s.order = append(s.order, name)
	}
	return t
}

func (s *copilotSession) Add(v format.Value) error {
	t := s.of(v)
	s.add(t, v)
	err := t.OrLose()
	t.Rollout.Notes, t.In.Notes = append(t.Rollout.Notes, t.In.Notes...), nil
	return err
}

func (s *copilotSession) add(t *thread.Thread, v format.Value) {
	data := v.Get("data")
	if data.Kind() != jsonscan.Object && !v.Get("type").Is("result") {
		t.In.Wrong(t.In.Want(data, t.At(), "/data", "an object"))
		return
	}
	switch kind := v.Get("type").Word(); kind {
	case "session.start", "session.resume":
		s.t.Rollout.ID = cmp.Or(s.t.Rollout.ID, data.Get("sessionId").String())
	case "result":
		s.t.Rollout.ID = cmp.Or(s.t.Rollout.ID, v.Get("sessionId").String())
	case "system.message":
		role := rollout.RoleSystem
		if data.Get("role").Is("developer") {
			role = "developer"
		}
		text := t.Words(data, "content", "/data")
		switch all := t.Rollout.Messages; {
		case t.In.Broken():
		case len(all) > 0 && all[0].Role == role:
			if all[0].Content != text {
				t.Lose("the system prompt changes")
			}
		case slices.ContainsFunc(all, func(m rollout.Message) bool { return m.Role == rollout.RoleAssistant }):
			t.Lose("the system prompt changes")
		default: // versions of 2026 write the first prompt before it
			t.Rollout.Messages = slices.Insert(all, 0, rollout.Message{Role: role, Content: text})
		}
	case "user.message":
		text := t.Words(data, "content", "/data")
		for _, a := range data.Get("attachments").Items() {
			if k := a.Get("type"); k.Is("blob") || strings.HasPrefix(a.Get("mimeType").String(), "image/") {
				t.Unknown("/data/attachments", "image")
			}
		}
		if sent := data.Get("transformedContent"); sent.Kind() == jsonscan.String {
			text = sent.String()
		} else {
			t.Lose("what the client puts around a prompt is not in the record")
		}
		t.Text(rollout.RoleUser, text)
	case "assistant.message":
		s.reply(t, data)
	case "tool.execution_complete":
		s.result(t, data)
	case "session.truncation", "session.compaction_complete", "session.snapshot_rewind", "session.context_cleared", "session.handoff":
		if ok, said := data.Get("success").Bool(); !said || ok {
			t.Lose("the history was cut, cleared or compacted")
		}
	case "abort":
		if n := len(t.Rollout.Messages); n > 0 && t.Rollout.Messages[n-1].Role == rollout.RoleAssistant && len(t.Rollout.Messages[n-1].ToolCalls) == 0 {
			t.Lose("the run was stopped")
		}
	case "skill.invoked":
		t.Lose("a skill was shown in words that are not recorded")
	case "system.notification":
		t.Lose("a notification was shown in words that the client chose")
	default:
		if !slices.ContainsFunc(copilotAreas, func(area string) bool { return strings.HasPrefix(kind, area) }) && !s.unknown[kind] {
			s.unknown[kind] = true
			t.In.Note("event_unknown", t.At(), "an event of type %q is not understood", kind)
			t.Lose("an event is not understood")
		}
	}
}

func (s *copilotSession) reply(t *thread.Thread, data format.Value) {
	m := rollout.Message{Role: rollout.RoleAssistant, Reasoning: data.Get("reasoningText").String()}
	if body := data.Get("content"); body.Kind() != jsonscan.Null {
		m.Content = t.Words(data, "content", "/data")
	}
	for _, c := range data.Get("toolRequests").Items() {
		t.Need(c.Get("name"), jsonscan.String, "/data/toolRequests/name", "the name of a tool")
		m.ToolCalls = append(m.ToolCalls, t.Call(c.Get("toolCallId").String(), c.Get("name").Word(), c.Get("arguments")))
		if s.open[t] == nil {
			s.open[t] = map[string]bool{}
		}
		s.open[t][c.Get("toolCallId").String()] = true
	}
	if m.Reasoning == "" && (data.Get("reasoningOpaque").Kind() == jsonscan.String || data.Get("encryptedContent").Kind() == jsonscan.String) {
		t.In.NoteRedacted(len(t.Rollout.Messages))
	}
	t.Say(m)
}

func (s *copilotSession) result(t *thread.Thread, data format.Value) {
	id := data.Get("toolCallId").String()
	if data.Get("isUserRequested").True() {
		t.Lose("a tool that the user called was shown in words that are not recorded")
		return
	}
	if !s.open[t][id] && s.open[s.t][id] {
		t = s.t
	}
	delete(s.open[t], id)
	m := rollout.Message{Role: rollout.RoleTool, ToolCallID: id}
	var ok bool
	if m.Content, ok = data.Path("result", "content").Text(); !ok {
		if m.Content, ok = data.Path("error", "message").Text(); !ok {
			t.In.Wrong(t.In.Want(data.Get("result"), t.At(), "/data/result", "the content of a result or an error"))
			return
		}
		t.Lose("an error was shown in words that are not recorded")
	}
	// Results are recorded as calls end, and sent in the order of the calls.
	all := t.Rollout.Messages
	at := len(all)
	for at > 0 && all[at-1].Role == rollout.RoleTool {
		at--
	}
	if at > 0 {
		calls := all[at-1].ToolCalls
		place := func(id string) int {
			return slices.IndexFunc(calls, func(c rollout.ToolCall) bool { return c.ID == id })
		}
		for at < len(all) && place(all[at].ToolCallID) <= place(id) {
			at++
		}
	}
	t.Rollout.Messages = slices.Insert(all, at, m)
}

func (s *copilotSession) Finish() error {
	session := s.t.Rollout.ID
	if err := s.t.Emit(true); err != nil {
		return err
	}
	for _, name := range s.order {
		t := s.agents[name]
		if len(t.Rollout.Messages) == 0 {
			continue
		}
		t.Rollout.ID = session + "/" + name
		format.KeepText(&t.Rollout.Metadata, "parent_session", session)
		if err := t.In.Failed(t.Emit(true)); err != nil {
			return err
		}
	}
	return nil
}
