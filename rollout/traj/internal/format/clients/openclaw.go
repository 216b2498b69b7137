package clients

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// openClaw reads the sessions of OpenClaw and of pi, which it runs:
// ~/.openclaw/agents/*/sessions/*.jsonl and ~/.pi/agent/sessions/**.jsonl.
func openClaw() format.Importer {
	return format.Importer{Name: "openclaw-session", Match: isOpenClaw, Fold: func(in *format.File) format.Folder {
		return &openClawSession{chain: newChain(in)}
	}}
}

// openClawAsides are types of records about a session that are not shown to the model.
var openClawAsides = []string{"model_change", "thinking_level_change", "custom", "label", "session_info"}

func isOpenClaw(v format.Value, _ *format.File) bool {
	if v.Get("timestamp").Kind() != jsonscan.String {
		return false
	}
	switch kind := v.Get("type").Word(); kind {
	case "session":
		return v.Get("id").Kind() == jsonscan.String && v.Get("cwd").Kind() == jsonscan.String
	case "message":
		m := v.Get("message")
		return m.Get("role").Kind() == jsonscan.String && m.Get("timestamp").Kind() == jsonscan.Number
	case "compaction", "branch_summary":
		return v.Get("summary").Kind() == jsonscan.String
	default:
		return slices.Contains(append(openClawAsides, "custom_message"), kind) && v.Get("parentId").Kind() != jsonscan.Absent
	}
}

type openClawSession struct {
	*chain
}

func (s *openClawSession) Add(v format.Value) error {
	kind, t := v.Get("type").Word(), s.t
	if kind == "session" {
		if id := v.Get("id").String(); t.Rollout.ID == "" {
			t.Rollout.ID = id
		}
		return nil
	}
	id, parent := v.Get("id").String(), v.Get("parentId").String()
	if id == "" { // first version: a record continues from the previous one
		parent = s.leaf
	}
	l := &link{}
	return s.add(id, parent, l, func() {
		switch kind {
		case "message":
			s.message(v.Get("message"), l)
		case "custom_message": // written by an extension in place of the user
			openClawContent(t, rollout.Message{Role: rollout.RoleUser}, v.Get("content"))
		case "compaction":
			l.lost = "the session was compacted, and the words around the summary are the client's"
		case "branch_summary":
			l.lost = "a branch was summarized in words that the session does not hold"
		default:
			if !slices.Contains(openClawAsides, kind) {
				t.Unknown("/type", kind)
			}
		}
	})
}

func (s *openClawSession) message(m format.Value, l *link) {
	t := s.t
	if m.Get("__openclaw").Kind() == jsonscan.Object {
		l.lost = "OpenClaw of 2026 sends more than its sessions hold: the time, what runs, and a context of its own"
	}
	switch role := m.Get("role").Word(); role {
	case "user":
		if s.unanswered() {
			l.lost = "a call without a result was shown with one that the client wrote"
		}
		openClawContent(t, rollout.Message{Role: rollout.RoleUser}, m.Get("content"))
	case "toolResult":
		openClawContent(t, rollout.Message{Role: rollout.RoleTool, ToolCallID: m.Get("toolCallId").String()}, m.Get("content"))
	case "assistant":
		openClawReply(t, m, l)
	case "bashExecution":
		if !m.Get("excludeFromContext").True() {
			l.lost = "a command of the user was shown in words that the session does not hold"
		}
	case "custom", "hookMessage":
		openClawContent(t, rollout.Message{Role: rollout.RoleUser}, m.Get("content"))
	case "branchSummary", "compactionSummary":
		l.lost = "a summary was shown in words that the session does not hold"
	default:
		t.Unknown("/message/role", role)
	}
}

// unanswered reports whether the last reply shown has calls without results.
func (s *openClawSession) unanswered() bool {
	results := 0
	for i := len(s.shown) - 1; i >= 0; i-- {
		for k := s.shown[i].To - 1; k >= s.shown[i].From; k-- {
			switch m := &s.t.Rollout.Messages[k]; m.Role {
			case rollout.RoleTool:
				results++
			case rollout.RoleAssistant:
				return results < len(m.ToolCalls)
			default:
				return false
			}
		}
	}
	return false
}

// sent returns the time of a reply, 0 if unknown.
func sent(v format.Value) float64 {
	f, _ := v.Get("timestamp").Float()
	return f
}

// unsentSince is a time in milliseconds: pi's versions of a month before do not send
// replies that failed or were stopped.
const unsentSince = 1772323200000

// openClawReply adds a reply. A reply that failed before any content was not sent later.
func openClawReply(t *thread.Thread, v format.Value, l *link) {
	m := rollout.Message{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy}
	var thoughts []string
	for _, b := range t.Items(v, "content", "/message") {
		switch kind := b.Get("type").Word(); kind {
		case "text":
			m.Content += t.Words(b, "text", "/message/content")
		case "thinking":
			if b.Get("redacted").True() {
				t.In.NoteRedacted(len(t.Rollout.Messages))
			} else if s := t.Words(b, "thinking", "/message/content"); s != "" {
				thoughts = append(thoughts, s)
			}
		case "toolCall":
			m.ToolCalls = append(m.ToolCalls, t.Call(b.Get("id").String(), b.Get("name").Word(), b.Get("arguments")))
		default:
			t.Unknown("/message/content", kind)
		}
	}
	m.Reasoning = strings.Join(thoughts, "\n")
	at := len(t.Rollout.Messages)
	switch why := v.Get("stopReason").Word(); why {
	case "error", "aborted":
		if m.Content == "" && m.Reasoning == "" && m.ToolCalls == nil {
			return
		}
		// Earlier versions sent the part received of such a reply to some providers.
		if l.hidden = sent(v) >= unsentSince; !l.hidden {
			l.lost = "a reply failed or was stopped, and whether later ones saw it depends on the version of the client"
		}
		t.Cut[at] = "the reply failed or was stopped (" + why + ")"
	case "toolUse":
		t.End("tool_calls")
	default:
		t.End(why)
	}
	if p := v.Get("provider"); p.Is("openclaw") { // a notice of the gateway
		m.Sampled = rollout.SampledScripted
		delete(t.Cut, at)
	}
	t.Say(m)
}

// openClawContent adds a message whose content is text.
func openClawContent(t *thread.Thread, m rollout.Message, body format.Value) {
	if s, ok := body.Text(); ok {
		m.Content = s
		t.Say(m)
		return
	}
	t.Need(body, jsonscan.Array, "/message/content", "a text or a list of blocks")
	var texts []string
	for _, b := range body.Items() {
		if !b.Get("type").Is("text") {
			t.Unknown("/message/content", b.Get("type").Word())
		}
		texts = append(texts, t.Words(b, "text", "/message/content"))
	}
	if m.Role == rollout.RoleTool {
		texts = []string{strings.Join(texts, "\n")}
	}
	t.SayTexts(m, texts)
}

func (s *openClawSession) Finish() error { return s.finish() }
