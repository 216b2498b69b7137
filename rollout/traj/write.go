package traj

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// lossNote says what a written form cannot hold.
func lossNote(code string, m rollout.Index, format string, args ...any) rollout.Note {
	return rollout.Note{Code: code, Message: m, Text: fmt.Sprintf(format, args...)}
}

// object is a JSON object with keys in the order given.
type object struct{ b []byte }

func (o *object) raw(key string, v []byte) {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, quote(key)...), ':'), v...)
}

func (o *object) text(key, s string) { o.raw(key, quote(s)) }

func (o *object) some(key, s string) {
	if s != "" {
		o.text(key, s)
	}
}

func (o *object) any(key string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: key}, "cannot be written: %w", err)
	}
	o.raw(key, bytes.TrimSpace(b.Bytes()))
	return nil
}

func (o *object) end() []byte {
	if len(o.b) == 0 {
		return []byte("{}")
	}
	return append(o.b, '}')
}

func array(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

// AppendChat appends r as one line of OpenAI chat JSONL, without the newline:
// messages, tools, template variables, ids and outcome. The notes name what that form cannot hold:
// token ids, contexts, exit messages and sampled marks.
func AppendChat(dst []byte, r *rollout.Rollout) ([]byte, []rollout.Note, error) {
	if r == nil {
		return dst, nil, r.Check()
	}
	var lost []rollout.Note
	var o object
	o.some("id", r.ID)
	o.some("instance_id", r.Instance)
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
		b, err := chatObject(m)
		if err != nil {
			return dst, nil, err
		}
		messages = append(messages, b)
	}
	o.raw("messages", array(messages))
	if len(r.Tools) > 0 {
		items := make([][]byte, len(r.Tools))
		for i, t := range r.Tools {
			items[i] = oneLine(t)
		}
		o.raw("tools", array(items))
	}
	if err := o.templateKwargs(r); err != nil {
		return dst, nil, err
	}
	if err := o.outcome(r); err != nil {
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
	return append(dst, o.end()...), lost, nil
}

func (o *object) templateKwargs(r *rollout.Rollout) error {
	if len(r.TemplateKwargs) == 0 {
		return nil
	}
	return o.any("chat_template_kwargs", r.TemplateKwargs)
}

func (o *object) outcome(r *rollout.Rollout) error {
	if b := r.Outcome.Resolved; b != nil {
		if err := o.any("resolved", *b); err != nil {
			return err
		}
	}
	if f := r.Outcome.Reward; f != nil {
		if err := o.any("reward", *f); err != nil {
			return err
		}
	}
	if s := r.Outcome.Submission; s != nil {
		o.text("patch", *s)
	}
	o.some("exit_status", r.ExitStatus)
	return nil
}

func chatObject(m *rollout.Message) ([]byte, error) {
	var o object
	role := string(m.Role)
	o.text("role", role)
	o.some("name", m.Name)
	o.raw("content", contentJSON(m))
	o.some("reasoning_content", m.Reasoning)
	if len(m.ToolCalls) > 0 {
		var calls [][]byte
		for _, c := range m.ToolCalls {
			var call, f object
			call.some("id", c.ID)
			call.text("type", "function")
			f.text("name", c.Name)
			if c.ArgumentsText || c.Arguments == "" {
				f.text("arguments", c.Arguments)
			} else {
				f.raw("arguments", oneLine([]byte(c.Arguments)))
			}
			call.raw("function", f.end())
			calls = append(calls, call.end())
		}
		o.raw("tool_calls", array(calls))
	}
	o.some("tool_call_id", m.ToolCallID)
	return o.end(), nil
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
			var o object
			o.text("type", p.Type)
			if p.IsText() {
				o.text("text", p.Text)
			}
			items[i] = o.end()
		}
		return array(items)
	case m.NoContent:
		return []byte("null")
	}
	return quote(m.Content)
}

// oneLine is JSON without line breaks, its literals untouched.
func oneLine(b []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, b)
}

// atifVersion is what AppendATIF writes: the first version with all it uses.
const atifVersion = "ATIF-v1.7"

// AppendATIF appends r as one ATIF trajectory on one line, without the newline.
// An assistant message and the tool results that follow it are one step; token
// ids and log probabilities go into its metrics. The notes name what ATIF
// cannot hold.
func AppendATIF(dst []byte, r *rollout.Rollout) ([]byte, []rollout.Note, error) {
	if r == nil {
		return dst, nil, r.Check()
	}
	w := atifWriter{r: r, turn: map[int]int{}}
	for i := range r.Turns {
		w.turn[r.Turns[i].Message] = i
	}
	for i := range r.Messages {
		if err := w.message(i); err != nil {
			return dst, nil, err
		}
	}
	w.close()
	var o, agent object
	o.text("schema_version", atifVersion)
	o.text("session_id", r.ID)
	agent.text("name", metadataText(r, "agent_name", "unknown"))
	agent.text("version", metadataText(r, "agent_version", "unknown"))
	agent.some("model_name", metadataText(r, "agent_model_name", metadataText(r, "model", "")))
	if len(r.Tools) > 0 {
		items := make([][]byte, len(r.Tools))
		for i, t := range r.Tools {
			items[i] = oneLine(t)
		}
		agent.raw("tool_definitions", array(items))
	}
	var settings object
	if t := r.Temperature; t != nil {
		if err := settings.any("temperature", *t); err != nil {
			return dst, nil, err
		}
	}
	if err := settings.templateKwargs(r); err != nil {
		return dst, nil, err
	}
	if len(settings.b) > 0 {
		agent.raw("extra", settings.end())
	}
	o.raw("agent", agent.end())
	o.raw("steps", array(w.steps))
	var extra object
	extra.some("instance_id", r.Instance)
	if err := extra.outcome(r); err != nil {
		return dst, nil, err
	}
	if len(extra.b) > 0 {
		o.raw("extra", extra.end())
	}
	return append(dst, o.end()...), w.lost, nil
}

func metadataText(r *rollout.Rollout, key, otherwise string) string {
	var s string
	if json.Unmarshal(r.Metadata[key], &s) != nil || s == "" {
		return otherwise
	}
	return s
}

type atifWriter struct {
	r       *rollout.Rollout
	turn    map[int]int // message → turn
	steps   [][]byte
	open    *object // the step that takes results
	results [][]byte
	lost    []rollout.Note
}

func (w *atifWriter) close() {
	if w.open == nil {
		return
	}
	if len(w.results) > 0 {
		var o object
		o.raw("results", array(w.results))
		w.open.raw("observation", o.end())
	}
	w.steps = append(w.steps, w.open.end())
	w.open, w.results = nil, nil
}

func (w *atifWriter) begin(source string) *object {
	w.close()
	w.open = &object{}
	w.open.raw("step_id", fmt.Appendf(nil, "%d", len(w.steps)+1))
	w.open.text("source", source)
	return w.open
}

func (w *atifWriter) message(i int) error {
	m := &w.r.Messages[i]
	switch m.Role {
	case rollout.RoleSystem, rollout.RoleDeveloper:
		w.begin("system").raw("message", w.content(i))
	case rollout.RoleAssistant:
		return w.assistant(i)
	case rollout.RoleTool:
		if w.open == nil {
			w.begin("system").text("message", "")
		}
		var o object
		o.some("source_call_id", m.ToolCallID)
		o.raw("content", w.content(i))
		w.results = append(w.results, o.end())
	case rollout.RoleExit:
		w.lost = append(w.lost, lossNote("exit_message", rollout.At(i), "ATIF knows no exit message; it is left out"))
	default:
		w.begin("user").raw("message", w.content(i))
	}
	return nil
}

// content is the message body; an absent one is null only where ATIF allows it.
func (w *atifWriter) content(i int) []byte {
	m := &w.r.Messages[i]
	if m.NoContent && m.Role != rollout.RoleTool {
		return quote("")
	}
	return contentJSON(m)
}

func (w *atifWriter) assistant(i int) error {
	m := &w.r.Messages[i]
	o := w.begin("agent")
	o.raw("message", w.content(i))
	o.some("reasoning_content", m.Reasoning)
	if len(m.ToolCalls) > 0 {
		var calls [][]byte
		for k, c := range m.ToolCalls {
			var call object
			call.text("tool_call_id", firstWord(c.ID, fmt.Sprintf("call_%d_%d", i, k)))
			call.text("function_name", c.Name)
			arguments := []byte(c.Arguments)
			if c.Arguments == "" || c.Arguments == "null" { // a call without any
				arguments = []byte("{}")
			}
			var d jsonscan.Doc
			if v, err := d.Parse(arguments, jsonscan.Options{}); err != nil || v.Kind() != jsonscan.Object {
				w.lost = append(w.lost, lossNote("arguments", rollout.At(i), "the arguments of call %d are no object; their text is under the key \"text\"", k))
				var wrap object
				wrap.text("text", c.Arguments)
				arguments = wrap.end()
			}
			call.raw("arguments", oneLine(arguments))
			calls = append(calls, call.end())
		}
		o.raw("tool_calls", array(calls))
	}
	switch m.Sampled {
	case rollout.SampledByPolicy:
	case rollout.SampledCopied, rollout.SampledPrefilled, rollout.SampledDemonstration:
		o.raw("is_copied_context", []byte("true"))
		if m.Sampled != rollout.SampledCopied {
			w.lost = append(w.lost, lossNote("sampled_mark", rollout.At(i), "the message was %s; it is written as copied context", m.Sampled))
		}
	default:
		o.raw("llm_call_count", []byte("0"))
		if m.Sampled != rollout.SampledScripted {
			w.lost = append(w.lost, lossNote("sampled_mark", rollout.At(i), "the message was %s; it is written as not from a model", m.Sampled))
		}
	}
	return w.metrics(o, i)
}

func (w *atifWriter) metrics(o *object, i int) error {
	k, ok := w.turn[i]
	if !ok {
		return nil
	}
	t := &w.r.Turns[k]
	if t.Context.Unknown || t.Context.Parts != nil {
		w.lost = append(w.lost, lossNote("context", rollout.At(i), "turn %d saw something else than the history", k))
	}
	if t.Output == nil && !t.Prompt.Captured() {
		return nil
	}
	prompt, err := w.r.PromptTokens(nil, k)
	if err != nil {
		return err
	}
	var m object
	for _, f := range []struct {
		key string
		v   any
		n   int
	}{{"prompt_token_ids", prompt, len(prompt)}, {"completion_token_ids", t.Output, len(t.Output)}, {"logprobs", t.Logprobs, len(t.Logprobs)}} {
		if f.n > 0 {
			if err := m.any(f.key, f.v); err != nil {
				return err
			}
		}
	}
	o.raw("metrics", m.end())
	return nil
}
