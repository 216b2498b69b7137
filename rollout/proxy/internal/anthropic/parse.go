// Package anthropic implements Anthropic's messages API.
package anthropic

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
func (Dialect) Name() string { return "anthropic" }

// Error returns the body of a refusal.
func (Dialect) Error(p *wire.Problem) []byte { return problem(p) }

func problem(p *wire.Problem) []byte {
	return wire.JSON(map[string]any{"type": "error", "error": map[string]any{"type": wire.Kind(p.Status), "message": p.Message}})
}

// Parse parses a request for a reply or for a token count.
func (Dialect) Parse(body []byte) (*wire.Call, error) {
	var d jsonscan.Doc
	v, err := wire.Object(&d, body)
	if err != nil {
		return nil, err
	}
	c := &wire.Call{}
	if err := system(c, v.Get("system")); err != nil {
		return nil, err
	}
	list := v.Get("messages")
	if list.Kind() != jsonscan.Array || list.Len() == 0 {
		return nil, wire.Bad("messages is %s, expected a list that is not empty", list.Word())
	}
	for i, m := range list.Items() {
		if err := message(c, m); err != nil {
			return nil, wire.Bad("messages.%d: %v", i, err)
		}
	}
	if c.Stream, err = wire.Flag(v, "stream"); err != nil {
		return nil, err
	}
	c.N = 1
	// Fields without an equivalent in chat completions are recorded and not sent.
	c.Settings = wire.Fields(v, "messages", "system", "tools")
	c.Fields = map[string]json.RawMessage{}
	for _, k := range []string{"model", "max_tokens", "temperature", "top_p", "top_k"} {
		if x := v.Get(k); !x.IsNull() {
			c.Fields[k] = x.Clone()
		}
	}
	if x := v.Get("stop_sequences"); x.Len() > 0 {
		c.Fields["stop"] = x.Clone()
	}
	if f := v.Path("output_config", "format"); f.Get("type").Is("json_schema") {
		c.Fields["response_format"] = wire.Schema("output", f.Get("schema").Clone(), jsonscan.Value{})
	}
	if err := tools(c, v); err != nil {
		return nil, err
	}
	switch v.Path("thinking", "type").String() {
	case "enabled", "adaptive":
		c.Fields["chat_template_kwargs"] = json.RawMessage(`{"enable_thinking":true}`)
	case "disabled":
		c.Fields["chat_template_kwargs"] = json.RawMessage(`{"enable_thinking":false}`)
	}
	return c, prefill(c)
}

// prefill makes the reply continue the last message if that is the assistant's.
func prefill(c *wire.Call) error {
	if len(c.Messages) == 0 {
		return wire.Bad("messages has no content")
	}
	m := &c.Messages[len(c.Messages)-1]
	switch {
	case m.Role != rollout.RoleAssistant:
		return nil
	case len(m.ToolCalls) > 0:
		return wire.Bad("the last message has tool calls without their results")
	case m.Reasoning != "" || strings.Contains(string(c.Fields["chat_template_kwargs"]), "true"):
		return wire.Bad("a reply that goes on from the last message, which is the assistant's, cannot think: leave out thinking")
	case strings.TrimSpace(m.Content) != m.Content || m.Content == "":
		return wire.Bad("the last message, from which the reply goes on, is empty or begins or ends with white space")
	}
	c.Fields["continue_final_message"], c.Fields["add_generation_prompt"] = json.RawMessage("true"), json.RawMessage("false")
	return nil
}

func system(c *wire.Call, v jsonscan.Value) error {
	if v.IsNull() {
		return nil
	}
	parts, err := texts(v)
	if err != nil {
		return wire.Bad("system: %v", err)
	}
	if text := strings.Join(parts, "\n"); text != "" {
		c.Messages = append(c.Messages, rollout.Message{Role: rollout.RoleSystem, Content: text})
	}
	return nil
}

// texts returns the texts of a string or of a list of text blocks.
func texts(v jsonscan.Value) ([]string, error) {
	if s, ok := v.Text(); ok {
		return []string{s}, nil
	}
	if v.Kind() != jsonscan.Array {
		return nil, wire.Bad("it is %s, expected a string or a list of blocks", v.Word())
	}
	var out []string
	for _, b := range v.Items() {
		if t := b.Get("type"); !t.Is("text") {
			return nil, wire.Bad("a block of type %q, expected text", t.String())
		}
		out = append(out, b.Get("text").String())
	}
	return out, nil
}

func message(c *wire.Call, v jsonscan.Value) error {
	role := v.Get("role").String()
	content := v.Get("content")
	switch role {
	case "user", "assistant", "system":
	default:
		return wire.Bad("the role is %q, expected user or assistant", role)
	}
	if s, ok := content.Text(); ok {
		c.Messages = append(c.Messages, rollout.Message{Role: rollout.Role(role), Content: s})
		return nil
	}
	if content.Kind() != jsonscan.Array {
		return wire.Bad("content is %s, expected a string or a list of blocks", content.Word())
	}
	if role == "assistant" {
		return assistant(c, content)
	}
	m := rollout.Message{Role: rollout.Role(role)}
	end := func() {
		if len(m.Parts) > 0 {
			m.Content, m.Parts = wire.Content(m.Parts)
			c.Messages = append(c.Messages, m)
			m.Parts = nil
		}
	}
	for i, b := range content.Items() {
		if b.Get("type").Is("tool_result") {
			end()
			t := rollout.Message{Role: rollout.RoleTool, ToolCallID: b.Get("tool_use_id").String()}
			if t.ToolCallID == "" {
				return wire.Bad("content.%d: a tool_result without tool_use_id", i)
			}
			if x := b.Get("content"); x.Kind() == jsonscan.Array {
				for j, y := range x.Items() {
					p, err := part(y)
					if err != nil {
						return wire.Bad("content.%d.content.%d: %v", i, j, err)
					}
					t.Parts = append(t.Parts, p)
				}
				t.Content, t.Parts = wire.Content(t.Parts)
			} else if t.Content = x.String(); !x.IsNull() && x.Kind() != jsonscan.String {
				return wire.Bad("content.%d: content is %s", i, x.Word())
			}
			c.Messages = append(c.Messages, t)
			continue
		}
		p, err := part(b)
		if err != nil {
			return wire.Bad("content.%d: %v", i, err)
		}
		m.Parts = append(m.Parts, p)
	}
	end()
	return nil
}

func part(b jsonscan.Value) (rollout.Part, error) {
	switch t := b.Get("type").String(); t {
	case "text":
		return wire.TextPart(b.Get("text").String()), nil
	case "image":
		src := b.Get("source")
		url := src.Get("url").String()
		if src.Get("type").Is("base64") {
			url = "data:" + src.Get("media_type").String() + ";base64," + src.Get("data").String()
		}
		if url == "" {
			return rollout.Part{}, wire.Bad("an image without a source")
		}
		return wire.ImagePart(url), nil
	case "document", "search_result":
		if s := b.Path("source", "data"); b.Path("source", "type").Is("text") {
			return wire.TextPart(s.String()), nil
		}
		return rollout.Part{}, wire.Bad("a %s that is not text is not supported", t)
	case "tool_reference":
		return wire.TextPart(b.Get("tool_name").String()), nil
	default:
		return rollout.Part{}, wire.Bad("a block of type %q is not supported", t)
	}
}

func assistant(c *wire.Call, content jsonscan.Value) error {
	m := rollout.Message{Role: rollout.RoleAssistant, NoContent: true}
	for i, b := range content.Items() {
		switch t := b.Get("type").String(); t {
		case "text":
			m.Content += b.Get("text").String()
			m.NoContent = false
		case "thinking":
			m.Reasoning += b.Get("thinking").String()
		case "redacted_thinking":
			m.Reasoning += wire.Unseal(b.Get("data").String()) // reasoning sealed by others cannot be read
		case "tool_use":
			name, ok := b.Get("name").Text()
			if !ok {
				return wire.Bad("content.%d: a tool_use without a name", i)
			}
			call := rollout.ToolCall{ID: b.Get("id").String(), Name: name, Arguments: string(b.Get("input").Clone()), ArgumentsText: true}
			if call.Arguments == "" {
				call.Arguments = "{}"
			}
			m.ToolCalls = append(m.ToolCalls, call)
		default:
			return wire.Bad("content.%d: a block of type %q is not supported", i, t)
		}
	}
	c.Messages = append(c.Messages, m)
	return nil
}

func tools(c *wire.Call, v jsonscan.Value) error {
	list := v.Get("tools")
	if !list.IsNull() && list.Kind() != jsonscan.Array {
		return wire.Bad("tools is %s, expected a list", list.Word())
	}
	var left []string
	for i, t := range list.Items() {
		name, ok := t.Get("name").Text()
		if !ok {
			return wire.Bad("tools.%d: it has no name", i)
		}
		schema := t.Get("input_schema")
		if schema.Kind() != jsonscan.Object {
			kind := t.Get("type").String()
			if kind == "" || kind == "custom" {
				return wire.Bad("tools.%d: it has no input_schema", i)
			}
			left = append(left, kind) // it runs at Anthropic, so the model is not given it
			continue
		}
		c.Tools = append(c.Tools, wire.Function(name, t.Get("description").String(), schema.Clone(), t.Get("strict")))
	}
	if left != nil {
		c.Settings["tools_left_out"] = wire.JSON(left)
	}
	choice := v.Get("tool_choice")
	switch t := choice.Get("type").String(); t {
	case "", "auto":
	case "none":
		c.Fields["tool_choice"] = json.RawMessage(`"none"`)
	case "any":
		c.Fields["tool_choice"] = json.RawMessage(`"required"`)
	case "tool":
		c.Fields["tool_choice"] = wire.JSON(map[string]any{"type": "function", "function": map[string]string{"name": choice.Get("name").String()}})
	default:
		return wire.Bad("tool_choice: type %q", t)
	}
	if off, _ := choice.Get("disable_parallel_tool_use").Bool(); off {
		c.Fields["parallel_tool_calls"] = json.RawMessage("false")
	}
	if c.Tools == nil {
		delete(c.Fields, "tool_choice")
		delete(c.Fields, "parallel_tool_calls")
	}
	return nil
}
