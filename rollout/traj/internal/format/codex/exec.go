package codex

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Exec reads the output of codex exec --json. It says what was done, but neither the calls
// as the model wrote them nor what it saw, so none of it is known to be sampled.
func Exec() format.Importer {
	return format.Importer{Name: "codex", Match: matchExec, Fold: func(in *format.File) format.Folder {
		return &stream{in: in, r: &rollout.Rollout{Index: format.NoIndex}}
	}}
}

func matchExec(v format.Value, _ *format.File) bool {
	switch kind := v.Get("type").Word(); kind {
	case "thread.started":
		return v.Get("thread_id").Kind() == jsonscan.String
	case "turn.started":
		return v.Len() <= 2
	case "item.started", "item.updated", "item.completed":
		return v.Path("item", "type").Kind() == jsonscan.String
	}
	return false
}

type stream struct {
	in       *format.File
	r        *rollout.Rollout
	thinking string
}

func (x *stream) Add(v format.Value) error {
	switch v.Get("type").Word() {
	case "thread.started":
		x.r.ID = v.Get("thread_id").String()
	case "turn.completed":
		x.r.Status = rollout.StatusCompleted
	case "turn.failed", "error":
		x.r.Status = rollout.StatusFailed
		x.r.ExitStatus = v.Path("error", "message").String() + v.Get("message").String()
	case "turn.started", "item.started", "item.updated":
	case "item.completed":
		return x.item(v.Get("item"))
	default:
		x.in.Note("event_unknown", 0, "an event of type %q is not understood", v.Get("type").String())
	}
	return nil
}

func (x *stream) item(p format.Value) error {
	i := len(x.r.Messages)
	kind := p.Get("type").Word()
	m := rollout.Message{Role: rollout.RoleAssistant, Reasoning: x.thinking}
	switch kind {
	case "reasoning":
		x.thinking = strings.TrimPrefix(x.thinking+"\n"+p.Get("text").String(), "\n")
		return nil
	case "error":
		x.in.Note("error_event", rollout.At(i), "%s", p.Get("message").String())
		return nil
	case "agent_message", "assistant_message":
		s, ok := p.Get("text").Text()
		if !ok {
			return x.in.Fail(rollout.At(i), "/item/text", "the message has no text: %s", format.Shape(p))
		}
		m.Content = s
		x.r.Messages = append(x.r.Messages, m)
	default:
		var o format.Object
		var result format.Value
		for key, y := range p.Members() {
			switch key {
			case "id", "type", "status", "exit_code":
			case "aggregated_output", "result":
				result = y
			default:
				o.Raw(key, y.Clone())
			}
		}
		id := format.Identifier(p.Get("id"))
		m.ToolCalls = []rollout.ToolCall{{ID: id, Name: kind, Arguments: string(o.End())}}
		x.r.Messages = append(x.r.Messages, m, rollout.Message{Role: rollout.RoleTool, ToolCallID: id, Content: format.PlainText(result)})
	}
	x.thinking = ""
	return nil
}

func (x *stream) Finish() error {
	if len(x.r.Messages) == 0 {
		return nil
	}
	x.in.Note("replies_not_recorded", 0, "codex exec --json tells what was done, not the calls that the model wrote nor what it saw: nothing is trained; read the rollout file of the session in ~/.codex/sessions")
	return x.in.Emit(x.r)
}
