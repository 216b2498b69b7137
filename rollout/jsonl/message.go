package jsonl

import (
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

var messageObject = func() *object[rollout.Message] {
	o := newObject(func(m *rollout.Message) *raws { return &m.Extra },
		always("role", func(m *rollout.Message) *string { return (*string)(&m.Role) }, texts),
		filled("name", func(m *rollout.Message) *string { return &m.Name }),
		field[rollout.Message]{key: "content", own: true, read: readContent, write: writeContent},
		reasoning("reasoning", true),
		reasoning("reasoning_content", false),
		reasoning("thinking", false),
		toolCallsField(),
		filled("tool_call_id", func(m *rollout.Message) *string { return &m.ToolCallID }),
		sampledField(),
	)
	o.done = func(d *decoder, v jsonscan.Value, m *rollout.Message) {
		m.NoContent = v.Get("content").IsNull()
		if m.Reasoning != "" {
			delete(m.Extra, "reasoning") // it was empty; another spelling has the text
		}
		if m.Role == "" {
			d.fail(rollout.KindInput, v, "/role", "the message has no role")
		}
	}
	return o
}()

// reasoning is the thinking text under one of its keys; only the first key is written. A
// "thinking" that is not a string is a setting.
func reasoning(key string, written bool) field[rollout.Message] {
	f := filled(key, func(m *rollout.Message) *string { return &m.Reasoning })
	read := f.read
	f.read = func(d *decoder, m *rollout.Message, v jsonscan.Value, at string) bool {
		if m.Reasoning != "" || key == "thinking" && v.Kind() != jsonscan.String {
			return false
		}
		return read(d, m, v, at)
	}
	if !written {
		f.write = nil
	}
	return f
}

func sampledField() field[rollout.Message] {
	f := always("sampled", func(m *rollout.Message) *rollout.Sampled { return &m.Sampled }, enumCodec[rollout.Sampled]())
	write := f.write
	f.write = func(e *encoder, m *rollout.Message, at string) bool {
		return (m.Sampled != rollout.SampledUnknown || m.Role == rollout.RoleAssistant) && write(e, m, at)
	}
	return f
}

func readContent(d *decoder, m *rollout.Message, v jsonscan.Value, at string) bool {
	switch v.Kind() {
	case jsonscan.Null:
	case jsonscan.String:
		m.Content = d.text(v, at)
	case jsonscan.Array:
		m.Parts = []rollout.Part{}
		d.list(v, at, d.lim.Messages, func(_ int, x jsonscan.Value) { m.Parts = append(m.Parts, d.part(x, at)) })
		m.Content = rollout.JoinText(m.Parts)
	default:
		d.want(v, at, "a string, null or a list of parts")
	}
	return true
}

func (d *decoder) part(v jsonscan.Value, at string) rollout.Part {
	p := rollout.Part{Raw: v.Clone()}
	switch v.Kind() {
	case jsonscan.String:
		p.Type, p.Text = "text", d.text(v, at)
	case jsonscan.Object:
		p.Type = v.Get("type").String()
		if t := v.Get("text"); p.IsText() && !t.IsNull() {
			p.Text = d.text(t, "/content/text")
		}
	default:
		d.want(v, at, "a part: an object or a string")
	}
	return p
}

func writeContent(e *encoder, m *rollout.Message, at string) bool {
	e.key("content")
	switch {
	case m.Parts != nil:
		e.list(len(m.Parts), func(i int) { e.part(&m.Parts[i], at) })
	case m.NoContent:
		e.b = append(e.b, "null"...)
		if m.Content != "" {
			e.fail(at, "NoContent is set and the content is not empty")
		}
	default:
		e.text(m.Content, at)
	}
	return true
}

func (e *encoder) part(p *rollout.Part, at string) {
	if p.Raw != nil {
		e.raw(p.Raw, at)
		return
	}
	e.b = append(e.b, `{"type":`...)
	e.text(p.Type, at)
	if p.IsText() {
		e.key("text")
		e.text(p.Text, at)
	}
	e.b = append(e.b, '}')
}

// toolCallsField is the list of calls, each either nested (name in a "function" object) or
// flat. Extra keeps a null or empty list.
func toolCallsField() field[rollout.Message] {
	f := entries("tool_calls", func(m *rollout.Message) *[]rollout.ToolCall { return &m.ToolCalls }, func(l *Limits) int { return l.Messages }, nil,
		func(_ int, v jsonscan.Value) rollout.ToolCall {
			return rollout.ToolCall{Flat: v.Get("function").Kind() != jsonscan.Object}
		}, callObject)
	read, write := f.read, f.write
	f.own = false
	f.read = func(d *decoder, m *rollout.Message, v jsonscan.Value, at string) bool {
		return !v.IsNull() && (v.Kind() != jsonscan.Array || v.Len() > 0) && read(d, m, v, at)
	}
	f.write = func(e *encoder, m *rollout.Message, at string) bool {
		return len(m.ToolCalls) > 0 && write(e, m, at)
	}
	return f
}

func callObject(c *rollout.ToolCall) *object[rollout.ToolCall] {
	if c.Flat {
		return flatCall
	}
	return nestedCall
}

var flatCall, nestedCall = func() (flat, nested *object[rollout.ToolCall]) {
	extra := func(c *rollout.ToolCall) *raws { return &c.Extra }
	self := func(c *rollout.ToolCall) *rollout.ToolCall { return c }
	id := filled("id", func(c *rollout.ToolCall) *string { return &c.ID })
	name := always("name", func(c *rollout.ToolCall) *string { return &c.Name }, texts)
	arguments := field[rollout.ToolCall]{key: "arguments", own: true, read: readArguments, write: writeArguments}
	flat = newObject(extra, id, name, arguments)
	nested = newObject(extra, id, inner("function", false, self, self, newObject(nil, name, arguments), extra))
	flat.done = func(d *decoder, v jsonscan.Value, _ *rollout.ToolCall) { d.named(v, v) }
	nested.done = func(d *decoder, v jsonscan.Value, _ *rollout.ToolCall) { d.named(v, v.Get("function")) }
	return flat, nested
}()

func (d *decoder) named(call, function jsonscan.Value) {
	if function.Get("name").Kind() == jsonscan.Absent {
		d.fail(rollout.KindInput, call, "", "the tool call has no name")
	}
}

func readArguments(d *decoder, c *rollout.ToolCall, v jsonscan.Value, at string) bool {
	if c.ArgumentsText = v.Kind() == jsonscan.String; c.ArgumentsText {
		c.Arguments = d.text(v, at)
	} else {
		c.Arguments = string(v.Clone())
	}
	return true
}

func writeArguments(e *encoder, c *rollout.ToolCall, at string) bool {
	switch {
	case c.ArgumentsText:
		e.key("arguments")
		e.text(c.Arguments, at)
	case c.Arguments != "":
		e.key("arguments")
		e.raw([]byte(c.Arguments), at)
	}
	return true
}
