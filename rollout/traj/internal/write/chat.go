package write

import (
	"bytes"
	"fmt"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// lossNote returns a note about what a written format cannot hold.
func lossNote(code string, m rollout.Index, format string, args ...any) rollout.Note {
	return rollout.Note{Code: code, Message: m, Text: fmt.Sprintf(format, args...)}
}

// Chat appends r as one line of OpenAI chat JSONL, without the newline: messages, tools,
// template variables, ids and outcome. The notes name what this format cannot hold: token
// ids, contexts, exit messages and sampled marks.
func Chat(dst []byte, r *rollout.Rollout) ([]byte, []rollout.Note, error) {
	if r == nil {
		return dst, nil, r.Validate()
	}
	var lost []rollout.Note
	var o format.Object
	o.Some("id", r.ID)
	o.Some("instance_id", r.Instance)
	var messages [][]byte
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role == rollout.RoleExit {
			lost = append(lost, lossNote("exit_message", rollout.At(i), "no chat knows the role exit; the message is left out"))
			continue
		}
		if m.Role == rollout.RoleAssistant && m.Sampled != rollout.SampledByPolicy {
			lost = append(lost, lossNote("sampled_mark", rollout.At(i), "the message was %s; a chat cannot say so", m.Sampled))
		}
		messages = append(messages, chatObject(m))
	}
	o.Raw("messages", format.Array(messages))
	if len(r.Tools) > 0 {
		o.Raw("tools", toolList(r))
	}
	putTemplateKwargs(&o, r)
	putOutcome(&o, r)
	if err := o.Err(); err != nil {
		return dst, nil, err
	}
	for i := range r.Turns {
		t := &r.Turns[i]
		if t.Output != nil || t.Prompt.Captured() {
			lost = append(lost, lossNote("tokens", rollout.At(t.Message), "turn %d has token ids, which a chat cannot hold", i))
		}
		if t.Context.Unknown || t.Context.Parts != nil {
			lost = append(lost, lossNote("context", rollout.At(t.Message), "turn %d saw something else than the history", i))
		}
	}
	return append(dst, o.End()...), lost, nil
}

func toolList(r *rollout.Rollout) []byte {
	items := make([][]byte, len(r.Tools))
	for i, t := range r.Tools {
		items[i] = oneLine(t)
	}
	return format.Array(items)
}

func putTemplateKwargs(o *format.Object, r *rollout.Rollout) {
	if len(r.TemplateKwargs) > 0 {
		o.Any("chat_template_kwargs", r.TemplateKwargs)
	}
}

func putOutcome(o *format.Object, r *rollout.Rollout) {
	if b := r.Outcome.Resolved; b != nil {
		o.Any("resolved", *b)
	}
	if f := r.Outcome.Reward; f != nil {
		o.Any("reward", *f)
	}
	if s := r.Outcome.Submission; s != nil {
		o.Text("patch", *s)
	}
	o.Some("exit_status", r.ExitStatus)
}

func chatObject(m *rollout.Message) []byte {
	var o format.Object
	role := string(m.Role)
	o.Text("role", role)
	o.Some("name", m.Name)
	o.Raw("content", contentJSON(m))
	o.Some("reasoning_content", m.Reasoning)
	if len(m.ToolCalls) > 0 {
		var calls [][]byte
		for _, c := range m.ToolCalls {
			var call, f format.Object
			call.Some("id", c.ID)
			call.Text("type", "function")
			f.Text("name", c.Name)
			if c.ArgumentsText || c.Arguments == "" {
				f.Text("arguments", c.Arguments)
			} else {
				f.Raw("arguments", oneLine([]byte(c.Arguments)))
			}
			call.Raw("function", f.End())
			calls = append(calls, call.End())
		}
		o.Raw("tool_calls", format.Array(calls))
	}
	o.Some("tool_call_id", m.ToolCallID)
	return o.End()
}

func contentJSON(m *rollout.Message) []byte {
	switch {
	case m.Parts != nil:
		items := make([][]byte, len(m.Parts))
		for i, p := range m.Parts {
			if p.Raw != nil {
				items[i] = oneLine(p.Raw)
				continue
			}
			var o format.Object
			o.Text("type", p.Type)
			if p.IsText() {
				o.Text("text", p.Text)
			}
			items[i] = o.End()
		}
		return format.Array(items)
	case m.NoContent:
		return []byte("null")
	}
	return format.Quote(m.Content)
}

// oneLine returns JSON without line breaks; literals stay as they are.
func oneLine(b []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, b)
}
