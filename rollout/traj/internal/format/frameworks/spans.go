package frameworks

import (
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
	"github.com/turnpack/turnpack/rollout/traj/internal/format/thread"
)

// spans reads traces: each span that is a model call becomes a rollout.
func spans() []format.Importer {
	one := func(name string, match func(v format.Value) bool, read func(in *format.File, v format.Value) error) format.Importer {
		return format.Importer{Name: name, Call: true, Stateless: true, Read: read, Match: func(v format.Value, _ *format.File) bool { return match(v) }}
	}
	return []format.Importer{
		one("otel-spans", func(v format.Value) bool { return v.Get("resourceSpans").Kind() == jsonscan.Array }, readExport),
		one("otel-spans", func(v format.Value) bool {
			return isSpan(v) && (v.Get("attributes").Kind() == jsonscan.Object || v.Get("attributes").Kind() == jsonscan.Array)
		}, readSpan),
		one("langsmith", func(v format.Value) bool {
			return v.Get("run_type").Kind() == jsonscan.String && v.Get("inputs").Kind() == jsonscan.Object
		}, readLangSmith),
		one("langfuse", func(v format.Value) bool {
			return v.Get("traceId").Kind() == jsonscan.String && v.Get("type").Kind() == jsonscan.String && v.Get("input").Kind() != jsonscan.Absent && v.Get("output").Kind() != jsonscan.Absent
		}, readLangfuse),
	}
}

// isSpan reports whether v has a span id, under any of its names.
func isSpan(v format.Value) bool {
	for _, id := range []format.Value{v.Get("spanId"), v.Get("span_id"), v.Path("context", "span_id")} {
		if id.Kind() == jsonscan.String {
			return true
		}
	}
	return false
}

func readExport(in *format.File, v format.Value) error {
	for _, resource := range v.Get("resourceSpans").Items() {
		for _, scope := range resource.Get("scopeSpans").Items() {
			for _, span := range scope.Get("spans").Items() {
				if err := in.Failed(readSpan(in, span)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// readSpan reads a span by the conventions of OpenTelemetry for generative AI, or by those
// of OpenInference. A span that is not a model call gives no rollout.
func readSpan(in *format.File, v format.Value) error {
	a, err := attributes(in, v)
	if err != nil {
		return err
	}
	c := spanCall{in: in, id: format.FirstID(v, "spanId", "span_id")}
	if c.id == "" {
		c.id = v.Path("context", "span_id").String()
	}
	ai, llm := a.Get("gen_ai"), a.Get("llm")
	if ai.Path("output", "messages").IsNull() { // an event of the span may hold them
		for _, e := range v.Get("events").Items() {
			b, err := attributes(in, e)
			if err != nil {
				return err
			}
			if x := b.Get("gen_ai"); !x.Path("output", "messages").IsNull() {
				c.temperature, ai = ai.Path("request", "temperature"), x
				break
			}
		}
	}
	switch {
	case !ai.Path("output", "messages").IsNull():
		c.input, c.output, c.system = ai.Path("input", "messages"), ai.Path("output", "messages"), ai.Get("system_instructions")
		c.tools = ai.Path("tool", "definitions")
		if x := ai.Path("request", "temperature"); !x.IsNull() {
			c.temperature = x
		}
		for _, why := range format.Elements(ai.Path("response", "finish_reasons")) {
			c.end = why.String()
		}
	case !llm.Get("output_messages").IsNull():
		c.input, c.output, c.params = llm.Get("input_messages"), llm.Get("output_messages"), llm.Get("invocation_parameters")
		c.inference, c.end = llm.Get("tools"), llm.Get("finish_reason").String()
	case ai.Get("prompt").Kind() == jsonscan.Array && ai.Get("completion").Kind() == jsonscan.Array: // OpenLLMetry
		c.input, c.output, c.temperature = ai.Get("prompt"), ai.Get("completion"), ai.Path("request", "temperature")
		c.functions = llm.Path("request", "functions")
		for _, x := range c.output.Items() {
			if x.Get("finish_reason").Is("content_filter") {
				return in.Fail(0, "/attributes/gen_ai.completion", "the reply was filtered, and the span has another text in its place")
			}
		}
	case ai.Kind() == jsonscan.Object && (ai.Path("operation", "name").Is("chat") || !ai.Get("prompt").IsNull()):
		return in.Fail(0, "/attributes", "the span is a call of a model, and does not hold its messages (gen_ai.output.messages)")
	default:
		return nil
	}
	return c.read()
}

func readLangSmith(in *format.File, v format.Value) error {
	if !v.Get("run_type").Is("llm") {
		return nil // its model calls are spans of their own
	}
	inputs, outputs := v.Get("inputs"), v.Get("outputs")
	c := spanCall{in: in, id: format.FirstID(v, "id"), input: inputs.Get("messages"), output: outputs, params: v.Path("extra", "invocation_params"), tools: inputs.Get("tools")}
	c.prompt = inputs.Get("system")
	if first := c.input.First(); first.Kind() == jsonscan.Array { // one list per batch entry
		c.input = first
	}
	if first := outputs.Get("generations").First(); first.Kind() != jsonscan.Absent {
		if c.output = first; first.Kind() == jsonscan.Array {
			c.output = first.First()
		}
	}
	return c.read()
}

func readLangfuse(in *format.File, v format.Value) error {
	if !v.Get("type").Is("GENERATION") {
		return nil
	}
	c := spanCall{in: in, id: format.FirstID(v, "id"), input: v.Get("input"), output: v.Get("output"), params: v.Get("modelParameters")}
	c.parse(&c.input)
	c.prompt = c.input.Get("system")
	if list := c.input.Get("messages"); list.Kind() == jsonscan.Array {
		c.tools, c.input = c.input.Get("tools"), list
	}
	return c.read()
}

// spanCall is a model call in a trace.
type spanCall struct {
	in                            *format.File
	id                            string
	input, output, system, params format.Value
	tools, inference, temperature format.Value
	functions                     format.Value // OpenLLMetry
	prompt                        format.Value // the system prompt beside the messages
	end                           string       // finish reason, if the call records it
}

// parse replaces a text that looks like JSON by what it holds.
func (c *spanCall) parse(x *format.Value) {
	if s, ok := x.Text(); ok && (strings.HasPrefix(s, "[") || strings.HasPrefix(s, "{")) {
		*x = c.in.Inner(*x, "/attributes")
	}
}

func (c *spanCall) read() error {
	t := thread.New(c.in)
	t.Rollout.ID = c.id
	for _, x := range []*format.Value{&c.input, &c.output, &c.system, &c.params} {
		c.parse(x)
	}
	c.asked(t)
	format.MarkReplies(t.Rollout.Messages, rollout.SampledPrefilled)
	at := len(t.Rollout.Messages)
	if c.answered(t); c.in.Broken() {
		return nil
	}
	if len(t.Rollout.Messages) != at+1 || t.Rollout.Messages[at].Role != rollout.RoleAssistant {
		return c.in.Fail(rollout.At(at), "/output", "the call has %d replies, expected one", len(t.Rollout.Messages)-at)
	}
	m := &t.Rollout.Messages[at]
	m.Sampled = rollout.SampledByPolicy
	if format.Silent(m) {
		return c.in.Fail(rollout.At(at), "/output", "the reply says nothing: %s", format.Shape(c.output))
	}
	t.Ends[at] = cmp.Or(t.Ends[at], c.end)
	if c.tools.IsNull() {
		c.tools = c.params.Get("tools")
	}
	t.Tools(c.tools)
	for _, x := range c.functions.Items() {
		schema := c.in.Inner(x.Get("parameters"), "/attributes/llm.request.functions")
		t.Define(x.Get("name"), x.Get("description"), schema)
	}
	for _, x := range c.inference.Items() {
		schema := c.in.Inner(x.Path("tool", "json_schema"), "/attributes/llm.tools")
		if schema.Kind() == jsonscan.Object {
			t.Rollout.Tools = append(t.Rollout.Tools, rollout.Tool(schema.Clone()))
		}
	}
	if t.Rollout.Temperature = format.Temperature(c.temperature); t.Rollout.Temperature == nil {
		t.Rollout.Temperature = format.Temperature(c.params.Get("temperature"))
	}
	return t.Emit(false)
}

// asked adds the messages of the request.
func (c *spanCall) asked(t *thread.Thread) {
	for _, x := range c.system.Items() {
		s, ok := x.Get("content").Text()
		if !ok {
			t.Unknown("/system_instructions", x.Get("type").String())
		}
		t.Text(rollout.RoleSystem, s)
	}
	if !c.prompt.IsNull() {
		t.Prompt(c.prompt)
	}
	if s, ok := c.input.Text(); ok {
		t.Text(rollout.RoleUser, s)
		return
	}
	c.in.Need(c.input, jsonscan.Array, 0, "/input", "the messages of the request")
	for _, x := range c.input.Items() {
		addSpanMessage(t, x)
	}
}

// answered adds the reply: a message, a list with one message, a completion, or a text.
func (c *spanCall) answered(t *thread.Thread) {
	x := c.output
	if x.Kind() == jsonscan.Array && x.Len() == 1 {
		x = x.First()
	}
	if x.IsNull() || x.Kind() == jsonscan.Array {
		t.In.Wrong(c.in.Fail(t.At(), "/output", "the call has %d replies, expected one", x.Len()))
	}
	if choice := format.FirstChoice(x); choice.Get("message").Kind() == jsonscan.Object {
		t.End(choice.Get("finish_reason").String())
		x = choice.Get("message")
	} else if m := x.Get("message"); isLangChain(m) {
		x = m // OpenInference uses that name for its messages too
	}
	if s, ok := x.Text(); ok {
		t.Text(rollout.RoleAssistant, s)
		return
	}
	t.End(x.Get("finish_reason").String())
	addSpanMessage(t, x)
}

// addSpanMessage adds a message in one of the forms used in traces.
func addSpanMessage(t *thread.Thread, v format.Value) {
	if _, _, ok := langChainParts(v); ok && isLangChain(v) {
		addLangChain(t, v)
		return
	}
	if m := v.Get("message"); m.Kind() == jsonscan.Object && v.Get("role").IsNull() { // OpenInference
		addInference(t, m)
		return
	}
	role := t.Speaker(v.Get("role").Word())
	if v.Get("parts").Kind() == jsonscan.Array {
		addSemantic(t, role, v.Get("parts"))
		return
	}
	body := v.Get("content")
	if s, ok := body.Text(); ok && strings.HasPrefix(s, `[{"type"`) { // attributes cannot hold lists, so this one is a string
		if list, err := t.In.ParseInner(body, "/content"); err == nil {
			addBlocks(t, v, role, list)
			return
		}
	}
	for _, b := range body.Items() {
		if k := b.Get("type"); k.Is("tool_use") || k.Is("tool_result") || k.Is("thinking") {
			addBlocks(t, v, role, body)
			return
		}
	}
	if v.Get("invalid_tool_calls").Len() > 0 {
		t.Unknown("/invalid_tool_calls", "invalid_tool_calls")
	}
	m, err := t.In.ChatMessage(v, len(t.Rollout.Messages))
	t.In.Wrong(err)
	if s := v.Path("additional_kwargs", "reasoning_content").String(); m.Reasoning == "" {
		m.Reasoning = s
	}
	t.Say(m)
}

// addBlocks adds a message whose content is a list of blocks; calls and reasoning may be
// beside the content.
func addBlocks(t *thread.Thread, v format.Value, role rollout.Role, list format.Value) {
	m, err := t.In.Message(v, len(t.Rollout.Messages), role, list)
	t.In.Wrong(err)
	m.Content, m.Parts = "", nil
	t.Blocks(m, list)
}

// addSemantic adds a message with parts of OpenTelemetry's conventions.
func addSemantic(t *thread.Thread, role rollout.Role, parts format.Value) {
	m := rollout.Message{Role: role}
	said := role != rollout.RoleTool
	for _, p := range parts.Items() {
		switch kind := p.Get("type").Word(); kind {
		case "text", "reasoning":
			s := t.Words(p, "content", "/parts")
			if kind == "reasoning" {
				m.Reasoning += s
			} else {
				m.Content, said = m.Content+s, true
			}
		case "tool_call":
			t.Need(p.Get("name"), jsonscan.String, "/parts/name", "the name of a tool")
			m.ToolCalls = append(m.ToolCalls, t.BareCall(p.Get("id").String(), p.Get("name").Word(), p.Get("arguments")))
		case "tool_call_response":
			result := p.Get("response")
			if result.Kind() == jsonscan.Absent {
				result = p.Get("result")
			}
			t.Result(p.Get("id").String(), result)
			said = said && role != rollout.RoleUser
		default:
			t.Unknown("/parts", kind)
		}
	}
	if said {
		t.Say(m)
	}
}

// addInference adds a message of OpenInference.
func addInference(t *thread.Thread, v format.Value) {
	role := t.Speaker(v.Get("role").Word())
	m := rollout.Message{Role: role, Content: v.Get("content").String(), ToolCallID: v.Get("tool_call_id").String()}
	calls := format.Elements(v.Get("tool_calls"))
	var ordered []format.Value // the same calls, among the contents
	var texts string
	for _, x := range v.Get("contents").Items() {
		part := x.Get("message_content")
		switch kind := part.Get("type").Word(); kind {
		case "text", "reasoning":
			s := t.Words(part, "text", "/contents")
			if kind == "reasoning" {
				m.Reasoning += s
			} else {
				texts += s
			}
		case "tool_use":
			ordered = append(ordered, x)
		default:
			t.Unknown("/contents", kind)
		}
	}
	if m.Content == "" {
		m.Content = texts
	}
	if v.Get("content").Kind() == jsonscan.Absent && v.Get("contents").Kind() == jsonscan.Absent && len(calls) == 0 && v.Get("function_call_name").Kind() == jsonscan.Absent {
		t.In.Wrong(t.In.Fail(t.At(), "/message", "the message says nothing: %s", format.Shape(v)))
	}
	if len(calls) == 0 {
		calls = ordered
	}
	for _, x := range calls {
		c := x.Get("tool_call")
		t.Need(c.Path("function", "name"), jsonscan.String, "/tool_calls/function/name", "the name of a tool")
		m.ToolCalls = append(m.ToolCalls, t.BareCall(c.Get("id").String(), c.Path("function", "name").Word(), c.Path("function", "arguments")))
	}
	if name := v.Get("function_call_name"); name.Kind() == jsonscan.String && len(m.ToolCalls) == 0 {
		m.ToolCalls = []rollout.ToolCall{t.BareCall("", name.Word(), v.Get("function_call_arguments_json"))}
	}
	t.Say(m)
}
