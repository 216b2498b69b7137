package rollout

import "strconv"

func (e *encoder) message(m *Message) {
	e.b = append(e.b, '{')
	e.key("role")
	e.text(string(m.Role), "/role")
	e.str("name", m.Name)
	e.key("content")
	switch {
	case m.Parts != nil:
		e.b = append(e.b, '[')
		for i := range m.Parts {
			e.comma(i)
			e.part(&m.Parts[i])
		}
		e.b = append(e.b, ']')
	case m.NoContent:
		e.b = append(e.b, "null"...)
		if m.Content != "" {
			e.fail("/content", "NoContent is set and the content is not empty")
		}
	default:
		e.text(m.Content, "/content")
	}
	e.str("reasoning", m.Reasoning)
	if len(m.ToolCalls) > 0 {
		e.key("tool_calls")
		e.b = append(e.b, '[')
		for i := range m.ToolCalls {
			e.comma(i)
			e.toolCall(&m.ToolCalls[i])
		}
		e.b = append(e.b, ']')
	}
	e.str("tool_call_id", m.ToolCallID)
	if m.Sampled != SampledUnknown || m.Role == RoleAssistant {
		e.enum("sampled", m.Sampled)
	}
	known := []string{"role", "content", "sampled"}
	for _, f := range []struct {
		name string
		set  bool
	}{{"name", m.Name != ""}, {"tool_call_id", m.ToolCallID != ""}, {"tool_calls", len(m.ToolCalls) > 0}, {"reasoning", m.Reasoning != ""}} {
		if f.set {
			known = append(known, f.name)
		}
	}
	e.extra(m.Extra, known)
	e.b = append(e.b, '}')
}

func (e *encoder) part(p *Part) {
	if p.Raw != nil {
		e.raw(p.Raw, "/content")
		return
	}
	e.b = append(e.b, '{')
	e.key("type")
	e.text(p.Type, "/content/type")
	if p.IsText() {
		e.key("text")
		e.text(p.Text, "/content/text")
	}
	e.b = append(e.b, '}')
}

func (e *encoder) toolCall(c *ToolCall) {
	e.b = append(e.b, '{')
	e.str("id", c.ID)
	if !c.Flat {
		e.key("function")
		e.b = append(e.b, '{')
	}
	e.key("name")
	e.text(c.Name, "/tool_calls/name")
	switch {
	case c.ArgumentsText:
		e.key("arguments")
		e.text(c.Arguments, "/tool_calls/arguments")
	case c.Arguments != "":
		e.key("arguments")
		e.raw([]byte(c.Arguments), "/tool_calls/arguments")
	}
	known := []string{"name", "arguments"}
	if c.ID != "" {
		known = append(known, "id")
	}
	rest := c.Extra
	if !c.Flat {
		e.rest(c.Extra, "function", "name", "arguments")
		e.b = append(e.b, '}')
		known = known[2:]
		if _, ok := rest["function"]; ok {
			rest = without(rest, "function")
		}
	}
	e.extra(rest, known)
	e.b = append(e.b, '}')
}

func (e *encoder) turn(t *Turn) {
	e.b = append(e.b, '{')
	e.str("id", t.ID)
	if t.Message >= 0 {
		e.int("message", t.Message)
	}
	e.int("step", t.Step)
	e.context(&t.Context)
	if t.Prompt.Captured() {
		e.key("prompt_ids")
		e.b = append(e.b, '{')
		if b, ok := t.Prompt.Base.Get(); ok {
			e.int("base", b)
			e.int("keep", t.Prompt.Keep)
		}
		e.ids("add", t.Prompt.Add)
		e.b = append(e.b, '}')
	}
	if t.Output != nil {
		e.ids("output_ids", t.Output)
	}
	if t.Logprobs != nil {
		if len(t.Logprobs) != len(t.Output) {
			e.fail("/logprobs", "%d logprobs for %d output ids", len(t.Logprobs), len(t.Output))
		}
		e.key("logprobs")
		e.b = append(e.b, '[')
		for i, f := range t.Logprobs {
			e.comma(i)
			e.float(float64(f), 32, "/logprobs/"+strconv.Itoa(i))
		}
		e.b = append(e.b, ']')
	}
	e.str("finish_reason", t.FinishReason)
	e.str("stop_string", t.StopString)
	e.version(t)
	e.sampling(t)
	e.str("incomplete", t.Incomplete)
	e.str("agent", t.Agent)
	known := []string{"message", "step", "context", "prompt_ids", "output_ids", "logprobs", "version"}
	if t.FinishReason != "" {
		known = append(known, "finish_reason")
	}
	if t.StopString != "" {
		known = append(known, "stop_string")
	}
	if t.Incomplete != "" {
		known = append(known, "incomplete")
	}
	rest := t.Extra
	if _, ok := rest["sampling"]; ok && t.Sampling != nil {
		rest = without(rest, "sampling")
	}
	e.extra(rest, known)
	e.b = append(e.b, '}')
}

func (e *encoder) version(t *Turn) {
	switch {
	case t.Versions != nil:
		e.key("version")
		e.b = append(e.b, '[')
		for i, run := range t.Versions {
			e.comma(i)
			e.b = strconv.AppendInt(append(e.b, '['), int64(run.From), 10)
			e.b = strconv.AppendInt(append(e.b, ','), int64(run.Version), 10)
			e.b = append(e.b, ']')
		}
		e.b = append(e.b, ']')
	case t.Version != nil:
		e.int("version", int(*t.Version))
	}
}

func (e *encoder) sampling(t *Turn) {
	s := t.Sampling
	if s == nil {
		return
	}
	e.key("sampling")
	e.b = append(e.b, '{')
	for _, x := range []struct {
		key   string
		value *float32
	}{{"temperature", s.Temperature}, {"top_p", s.TopP}, {"min_p", s.MinP}} {
		if x.value != nil {
			e.key(x.key)
			e.float(float64(*x.value), 32, "/sampling/"+x.key)
		}
	}
	if s.TopK != nil {
		e.int("top_k", int(*s.TopK))
	}
	if s.Seed != nil {
		e.int("seed", int(*s.Seed))
	}
	var known []string
	for _, x := range []struct {
		key string
		set bool
	}{{"temperature", s.Temperature != nil}, {"top_p", s.TopP != nil}, {"min_p", s.MinP != nil}, {"top_k", s.TopK != nil}, {"seed", s.Seed != nil}} {
		if x.set {
			known = append(known, x.key)
		}
	}
	e.rest(t.Extra, "sampling", known...)
	e.b = append(e.b, '}')
}

func (e *encoder) ids(k string, ids []TokenID) {
	e.key(k)
	e.b = append(e.b, '[')
	for i, id := range ids {
		e.comma(i)
		e.b = strconv.AppendInt(e.b, int64(id), 10)
	}
	e.b = append(e.b, ']')
}

func (e *encoder) context(c *Context) {
	switch {
	case c.Unknown:
		e.key("context")
		e.b = append(e.b, `"unknown"`...)
		if c.Parts != nil {
			e.fail("/context", "the context is unknown and has parts")
		}
	case c.Parts != nil:
		e.key("context")
		e.b = append(e.b, '[')
		for i, p := range c.Parts {
			e.comma(i)
			e.b = append(e.b, '{')
			e.int("from", p.From)
			e.int("to", p.To)
			if p.Message != nil {
				e.key("message")
				e.message(p.Message)
			}
			e.b = append(e.b, '}')
		}
		e.b = append(e.b, ']')
	}
}
