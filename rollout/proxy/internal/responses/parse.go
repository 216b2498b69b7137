// Package responses implements OpenAI's Responses API.
package responses

import (
	"encoding/json"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// Dialect is the API.
type Dialect struct{}

// Name returns the dialect's name in the record.
func (Dialect) Name() string { return "responses" }

// Error returns the body of a refusal.
func (Dialect) Error(p *wire.Problem) []byte { return wire.OpenAI(p) }

// echo holds the parts of a request that its reply repeats or depends on.
type echo struct {
	fields map[string]json.RawMessage
	sealed bool                 // the reasoning is requested in encrypted form
	custom map[string]bool      // tools whose input is plain text
	spaces map[string][2]string // namespace and name of tools, by their flat name
	more   []jsonscan.Value     // lists of tools within the input
}

// flatName returns the name of a namespaced tool for engines, which have no namespaces.
func flatName(space, name string) string {
	if space == "" {
		return name
	}
	return strings.TrimRight(space, "_") + "__" + name
}

// echoed are the members that a reply repeats, with the values of absent ones.
var echoed = []struct{ name, absent string }{
	{"instructions", "null"}, {"max_output_tokens", "null"}, {"max_tool_calls", "null"}, {"metadata", "{}"}, {"model", `""`},
	{"parallel_tool_calls", "true"}, {"previous_response_id", "null"}, {"prompt_cache_key", "null"}, {"reasoning", `{"effort":null,"summary":null}`},
	{"safety_identifier", "null"}, {"service_tier", `"default"`}, {"store", "true"}, {"temperature", "1.0"}, {"text", `{"format":{"type":"text"}}`},
	{"tool_choice", `"auto"`}, {"tools", "[]"}, {"top_p", "1.0"}, {"truncation", `"disabled"`}, {"user", "null"},
}

// Parse parses a request.
func (Dialect) Parse(body []byte) (*wire.Call, error) {
	var d jsonscan.Doc
	v, err := wire.Object(&d, body)
	if err != nil {
		return nil, err
	}
	c := &wire.Call{}
	c.N = 1
	own := &echo{fields: map[string]json.RawMessage{}, custom: map[string]bool{}, spaces: map[string][2]string{}}
	c.Own = own
	for _, e := range echoed {
		own.fields[e.name] = json.RawMessage(e.absent)
		if x := v.Get(e.name); !x.IsNull() {
			own.fields[e.name] = x.Clone()
		}
	}
	for _, x := range v.Get("include").Items() {
		own.sealed = own.sealed || x.Is("reasoning.encrypted_content")
	}
	if c.Previous, err = wire.Text(v, "previous_response_id"); err != nil {
		return nil, err
	}
	if !v.Get("conversation").IsNull() || !v.Get("prompt").IsNull() {
		return nil, wire.Bad("conversation and prompt name what is kept at OpenAI: send input or previous_response_id")
	}
	if on, _ := v.Get("background").Bool(); on {
		return nil, wire.Bad("background is not supported: the reply is made while the client waits")
	}
	if s, err := wire.Text(v, "instructions"); err != nil {
		return nil, err
	} else if s != "" {
		c.Messages, c.Instructions = append(c.Messages, rollout.Message{Role: rollout.RoleSystem, Content: s}), 1
	}
	if c.Stream, err = wire.Flag(v, "stream"); err != nil {
		return nil, err
	}
	if err := input(c, own, v.Get("input")); err != nil {
		return nil, err
	}
	c.Settings = wire.Fields(v, "input", "instructions", "tools")
	c.Fields = map[string]json.RawMessage{}
	for from, to := range map[string]string{"model": "model", "temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens", "parallel_tool_calls": "parallel_tool_calls"} {
		if x := v.Get(from); !x.IsNull() {
			c.Fields[to] = x.Clone()
		}
	}
	if x := v.Path("reasoning", "effort"); !x.IsNull() {
		effort := x.String()
		if e, ok := map[string]string{"minimal": "low", "xhigh": "high"}[effort]; ok { // levels that engines do not know
			effort = e
		}
		c.Fields["reasoning_effort"] = wire.JSON(effort)
	}
	switch f := v.Path("text", "format"); f.Get("type").String() {
	case "json_schema":
		c.Fields["response_format"] = wire.Schema(f.Get("name").String(), f.Get("schema").Clone(), f.Get("strict"))
	case "json_object":
		c.Fields["response_format"] = json.RawMessage(`{"type":"json_object"}`)
	}
	return c, tools(c, own, v)
}

// input reads the items of the conversation. The consecutive items of one reply (reasoning, text, calls, in
// this order) become one message.
func input(c *wire.Call, own *echo, v jsonscan.Value) error {
	if s, ok := v.Text(); ok {
		c.Messages = append(c.Messages, rollout.Message{Role: rollout.RoleUser, Content: s})
		return nil
	}
	if v.Kind() != jsonscan.Array {
		return wire.Bad("input is %s, expected text or a list of items", v.Word())
	}
	rank := 0 // the latest part of the current assistant message, 0 = there is none
	reply := func(r int) *rollout.Message {
		if rank == 0 || r < rank || r == rank && r != 3 {
			c.Messages = append(c.Messages, rollout.Message{Role: rollout.RoleAssistant, NoContent: true})
		}
		rank = r
		return &c.Messages[len(c.Messages)-1]
	}
	for i, x := range v.Items() {
		kind := x.Get("type").String()
		if kind == "" && !x.Get("role").IsNull() {
			kind = "message"
		}
		id := x.Get("call_id").String()
		switch kind {
		case "message":
			text, parts, err := content(x.Get("content"))
			if err != nil {
				return wire.Bad("input.%d: %v", i, err)
			}
			role := x.Get("role").String()
			switch role {
			case "assistant":
				m := reply(2)
				m.Content, m.NoContent = text, false
				continue
			case "user", "system", "developer":
			default:
				return wire.Bad("input.%d: the role is %q", i, role)
			}
			rank = 0
			c.Messages = append(c.Messages, rollout.Message{Role: rollout.Role(role), Content: text, Parts: parts})
		case "reasoning":
			if text := reasoning(x); text != "" {
				reply(1).Reasoning = text
			}
		case "function_call", "custom_tool_call":
			call := rollout.ToolCall{ID: id, Name: flatName(x.Get("namespace").String(), x.Get("name").String()), Arguments: x.Get("arguments").String(), ArgumentsText: true}
			if kind == "custom_tool_call" {
				call.Arguments = string(wire.JSON(map[string]string{"input": x.Get("input").String()}))
			}
			if x.Get("name").String() == "" {
				return wire.Bad("input.%d: a call without a name", i)
			}
			m := reply(3)
			m.ToolCalls = append(m.ToolCalls, call)
		case "function_call_output", "custom_tool_call_output":
			rank = 0
			text, parts, err := content(x.Get("output"))
			if err != nil {
				return wire.Bad("input.%d: %v", i, err)
			}
			c.Messages = append(c.Messages, rollout.Message{Role: rollout.RoleTool, ToolCallID: id, Content: text, Parts: parts})
		case "additional_tools":
			own.more = append(own.more, x.Get("tools"))
		case "item_reference":
			return wire.Bad("input.%d: items are not kept by reference: send them, as clients do with store false, or previous_response_id", i)
		default:
			return wire.Bad("input.%d: an item of type %q is not supported", i, kind)
		}
	}
	if len(c.Messages) == 0 && c.Previous == "" {
		return wire.Bad("input is empty")
	}
	return nil
}

// content reads a string or a list of parts: text alone, or text with images.
func content(v jsonscan.Value) (string, []rollout.Part, error) {
	if s, ok := v.Text(); ok || v.IsNull() {
		return s, nil, nil
	}
	if v.Kind() != jsonscan.Array {
		return "", nil, wire.Bad("content is %s, expected text or a list of parts", v.Word())
	}
	var parts []rollout.Part
	for i, x := range v.Items() {
		switch t := x.Get("type").String(); t {
		case "input_text", "output_text", "text", "refusal":
			parts = append(parts, wire.TextPart(x.Get("text").String()+x.Get("refusal").String()))
		case "input_image":
			url := x.Get("image_url").String()
			if url == "" {
				return "", nil, wire.Bad("part %d: an image without image_url", i)
			}
			parts = append(parts, wire.ImagePart(url))
		default:
			return "", nil, wire.Bad("part %d: type %q is not supported", i, t)
		}
	}
	text, parts := wire.Content(parts)
	return text, parts, nil
}

func reasoning(x jsonscan.Value) string {
	if text := wire.Unseal(x.Get("encrypted_content").String()); text != "" {
		return text
	}
	var out strings.Builder
	for _, list := range []string{"content", "summary"} {
		for _, p := range x.Get(list).Items() {
			out.WriteString(p.Get("text").String())
		}
		if out.Len() > 0 {
			break
		}
	}
	return out.String()
}

func tools(c *wire.Call, own *echo, v jsonscan.Value) error {
	var left []string
	for _, list := range append([]jsonscan.Value{v.Get("tools")}, own.more...) {
		if !list.IsNull() && list.Kind() != jsonscan.Array {
			return wire.Bad("tools is %s, expected a list", list.Word())
		}
		for i, t := range list.Items() {
			if !t.Get("type").Is("namespace") {
				if err := tool(c, own, "", i, t, &left); err != nil {
					return err
				}
				continue
			}
			for _, x := range t.Get("tools").Items() {
				if err := tool(c, own, t.Get("name").String(), i, x, &left); err != nil {
					return err
				}
			}
		}
	}
	if left != nil {
		c.Settings["tools_left_out"] = wire.JSON(left)
	}
	if c.Tools == nil {
		delete(c.Fields, "parallel_tool_calls")
		return nil
	}
	switch choice := v.Get("tool_choice"); {
	case choice.IsNull():
	case choice.Kind() == jsonscan.String:
		c.Fields["tool_choice"] = choice.Clone()
	case choice.Get("type").Is("function") || choice.Get("type").Is("custom"):
		c.Fields["tool_choice"] = wire.JSON(map[string]any{"type": "function", "function": map[string]string{"name": choice.Get("name").String()}})
	}
	return nil
}

// tool adds a tool, with or without a namespace; it appends the type of an unsupported tool to left.
func tool(c *wire.Call, own *echo, space string, i int, t jsonscan.Value, left *[]string) error {
	name, kind := t.Get("name").String(), t.Get("type").String()
	if kind != "function" && kind != "custom" { // it runs at OpenAI, so the model is not given it
		*left = append(*left, kind)
		return nil
	}
	if name == "" {
		return wire.Bad("tools.%d: it has no name", i)
	}
	known := flatName(space, name)
	if space != "" {
		own.spaces[known] = [2]string{space, name}
	}
	description := t.Get("description").String()
	if kind == "function" {
		schema := t.Get("parameters").Clone()
		if string(schema) == "null" {
			schema = nil
		}
		c.Tools = append(c.Tools, wire.Function(known, description, schema, t.Get("strict")))
		return nil
	}
	own.custom[known] = true
	if g := t.Path("format", "definition").String(); g != "" {
		description += "\n\nThe input follows this grammar:\n" + g
	}
	c.Tools = append(c.Tools, wire.Function(known, description, []byte(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`), jsonscan.Value{}))
	return nil
}
