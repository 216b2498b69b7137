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

// QwenCode reads the sessions of Qwen Code, ~/.qwen/projects/*/chats/*.jsonl: records with
// contents of Gemini's API that name their parents.
func QwenCode() format.Importer {
	return format.Importer{Name: "qwen-code", Match: isQwenCode, Fold: func(in *format.File) format.Folder {
		s := &qwenSession{newChain(in)}
		s.t.Shown = qwenShown
		return s
	}}
}

// qwenShown returns the text that is sent to engines with OpenAI's API.
func qwenShown(response format.Value) string {
	for _, key := range []string{"output", "error"} {
		if s, ok := response.Get(key).Text(); ok {
			return s
		}
	}
	return format.PlainText(response)
}

// qwenAsides are subtypes of system records that are not shown to the model.
var qwenAsides = []string{
	"session_notes", "slash_command", "ui_telemetry", "at_command", "attribution_snapshot", "background_task_completed", "custom_title", "parent_session", "session_source",
	"session_execution_engine", "omni_recall", "session_model", "session_approval_mode", "rewind", "agent_launch_prompt", "agent_retry", "agent_session_ready",
	"file_history_snapshot", "user_text_elements", "session_artifact_event", "session_artifact_snapshot", "session_sources_snapshot", "branch_checkpoint", "goal_state",
	"goal_runtime", "goal_turn_end", "turn_result",
}

func isQwenCode(v format.Value, _ *format.File) bool {
	if v.Get("uuid").Kind() != jsonscan.String || v.Get("sessionId").Kind() != jsonscan.String {
		return false
	}
	switch v.Get("type").Word() {
	case "tool_result":
		return true
	case "user", "assistant":
		return v.Path("message", "parts").Kind() == jsonscan.Array || v.Get("usageMetadata").Kind() == jsonscan.Object
	case "system":
		kind := v.Get("subtype").Word()
		return v.Get("systemPayload").Kind() == jsonscan.Object || kind == "chat_compression" || kind == "agent_bootstrap" || v.Get("userType").Kind() == jsonscan.Absent && slices.Contains(qwenAsides, kind)
	}
	return false
}

type qwenSession struct{ *chain }

func (s *qwenSession) Add(v format.Value) error {
	t := s.t
	t.Rollout.ID = cmp.Or(t.Rollout.ID, v.Get("sessionId").String())
	l := &link{}
	return s.add(v.Get("uuid").String(), v.Get("parentUuid").String(), l, func() {
		switch kind := v.Get("type").Word(); kind {
		case "user", "assistant", "tool_result":
			if v.Get("message").IsNull() {
				return // only usage
			}
			s.content(v.Get("message"), rollout.SampledByPolicy)
		case "system":
			s.system(v, l)
		default:
			t.Unknown("/type", kind)
		}
	})
}

// content adds a content. A reply with nothing but thoughts stays as it was written.
func (s *qwenSession) content(v format.Value, why rollout.Sampled) {
	t, m := s.t, rollout.Message{Role: rollout.RoleUser}
	t.Need(v.Get("parts"), jsonscan.Array, "/message/parts", "a list of parts")
	switch role := v.Get("role").Word(); role {
	case "model":
		m.Role, m.Sampled = rollout.RoleAssistant, why
	case "user", "tool", "function":
	default:
		t.Unknown("/message/role", role)
	}
	thread.ContentParts(t, m, v.Get("parts"))
}

func (s *qwenSession) system(v format.Value, l *link) {
	t, payload := s.t, v.Get("systemPayload")
	switch kind := v.Get("subtype").Word(); kind {
	case "chat_compression", "agent_bootstrap":
		list := payload.Get("compressedHistory")
		if kind == "agent_bootstrap" {
			list = payload.Get("history")
			if s := payload.Get("systemInstruction"); !s.IsNull() {
				t.Prompt(s)
			}
		}
		if list.Kind() != jsonscan.Array {
			l.lost = "the history was compressed, and what was left is not recorded"
			return
		}
		l.resets = true
		for _, x := range list.Items() {
			s.content(x, rollout.SampledCopied)
		}
		return
	default:
		if !slices.Contains(qwenAsides, kind) && !strings.HasPrefix(kind, "managed_session_") {
			l.lost = "a record of kind " + kind + " is not understood"
			t.In.Note("event_unknown", t.At(), "a record of kind %q is not understood", kind)
		}
		return
	}
}

func (s *qwenSession) Finish() error {
	s.t.In.Note("startup_not_recorded", 0, "the first messages that the model saw, which tell its environment, are in no session")
	return s.finish()
}
