package wire

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Object parses a body that must be a JSON object without repeated members: of two, the record might hold a
// different one than the engine reads.
func Object(d *jsonscan.Doc, body []byte) (jsonscan.Value, error) {
	v, err := d.Parse(body, jsonscan.Options{Depth: 256})
	if err != nil {
		return v, Bad("the body is no JSON: %v", err)
	}
	if v.Kind() != jsonscan.Object {
		return v, Bad("the body is a JSON %s, expected an object", v.Word())
	}
	if k, twice := v.DuplicateKey(); twice {
		return v, Bad("the body has the member %q twice", k.String())
	}
	return v, nil
}

// Fields returns the members of a request except those named.
func Fields(v jsonscan.Value, but ...string) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, v.Len())
members:
	for k, x := range v.Members() {
		for _, b := range but {
			if k == b {
				continue members
			}
		}
		out[k] = x.Clone()
	}
	return out
}

// Text returns an optional string member.
func Text(v jsonscan.Value, name string) (string, error) {
	x := v.Get(name)
	if x.IsNull() {
		return "", nil
	}
	s, ok := x.Text()
	if !ok {
		return "", Bad("%s is %s, expected a string", name, x.Word())
	}
	return s, nil
}

// Flag returns an optional boolean member.
func Flag(v jsonscan.Value, name string) (bool, error) {
	x := v.Get(name)
	b, ok := x.Bool()
	if !ok && !x.IsNull() {
		return false, Bad("%s is %s, expected true or false", name, x.Word())
	}
	return b, nil
}

// MaxChoices is the maximum number of choices of a request.
const MaxChoices = 128

// Choices returns n, 1 if absent.
func Choices(v jsonscan.Value) (int, error) {
	x := v.Get("n")
	if x.IsNull() {
		return 1, nil
	}
	n, ok := x.Int()
	if !ok || n < 1 || n > MaxChoices {
		return 0, Bad("n is %s, expected 1 to %d", x.Raw(), MaxChoices)
	}
	return n, nil
}

// Tools returns the tools of a request in the format of chat completions.
func Tools(v jsonscan.Value) ([]rollout.Tool, error) {
	if v.IsNull() {
		return nil, nil
	}
	if v.Kind() != jsonscan.Array {
		return nil, Bad("tools is %s, expected a list", v.Word())
	}
	var out []rollout.Tool
	for i, x := range v.Items() {
		if x.Kind() != jsonscan.Object {
			return nil, Bad("tool %d is %s, expected an object", i, x.Word())
		}
		out = append(out, x.Clone())
	}
	return out, nil
}

// Function returns a function tool in the format of chat completions.
func Function(name, description string, schema []byte, strict jsonscan.Value) rollout.Tool {
	if schema == nil {
		schema = []byte(`{"type":"object","properties":{}}`)
	}
	f := struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      json.RawMessage `json:"strict,omitempty"`
	}{name, description, schema, strict.Clone()}
	return JSON(map[string]any{"type": "function", "function": f})
}

// Schema returns a response_format that constrains replies to a schema.
func Schema(name string, schema []byte, strict jsonscan.Value) json.RawMessage {
	if name == "" {
		name = "output"
	}
	f := map[string]any{"name": name, "schema": json.RawMessage(schema)}
	if !strict.IsNull() {
		f["strict"] = json.RawMessage(strict.Clone())
	}
	return JSON(map[string]any{"type": "json_schema", "json_schema": f})
}

// TextPart returns a text part in the format of chat completions.
func TextPart(s string) rollout.Part {
	return rollout.Part{Type: "text", Text: s, Raw: JSON(map[string]string{"type": "text", "text": s})}
}

// ImagePart returns an image part in the format of chat completions.
func ImagePart(url string) rollout.Part {
	return rollout.Part{Type: "image_url", Raw: JSON(map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}})}
}

// Content returns the content of a message with parts: the joined text, and the parts unless all are text. Text
// parts alone are joined by line ends.
func Content(parts []rollout.Part) (text string, kept []rollout.Part) {
	var lines []string
	for _, p := range parts {
		if !p.IsText() {
			return rollout.JoinText(parts), parts
		}
		lines = append(lines, p.Text)
	}
	return strings.Join(lines, "\n"), nil
}

// sealed begins reasoning that only this proxy can read.
const sealed = "turnpack:"

// Seal encodes reasoning, or a digest of it, in a form that clients send back unchanged.
func Seal(b []byte) string {
	return base64.StdEncoding.EncodeToString(append([]byte(sealed), b...))
}

// Unseal decodes the result of Seal, and returns "" for any other text.
func Unseal(s string) string {
	b, err := base64.StdEncoding.DecodeString(s)
	if text, ours := strings.CutPrefix(string(b), sealed); err == nil && ours {
		return text
	}
	return ""
}

// Messages parses messages in the format of chat completions.
func Messages(v jsonscan.Value) ([]rollout.Message, error) {
	if v.Len() == 0 || v.Kind() != jsonscan.Array {
		return nil, Bad("messages is %s, expected a list that is not empty", v.Word())
	}
	out := make([]rollout.Message, 0, v.Len())
	for i, x := range v.Items() {
		m, err := message(x)
		if err != nil {
			return nil, Bad("message %d: %v", i, err)
		}
		out = append(out, m)
	}
	return out, nil
}

func message(v jsonscan.Value) (m rollout.Message, err error) {
	if v.Kind() != jsonscan.Object {
		return m, Bad("it is %s, expected an object", v.Word())
	}
	text := func(dst *string, x jsonscan.Value) (err error) {
		if s, ok := x.Text(); ok {
			*dst = s
		} else if !x.IsNull() {
			err = Bad("it has %s where a string is expected", x.Word())
		}
		return err
	}
	m.NoContent = true
	for k, x := range v.Members() {
		switch k {
		case "role":
			err = text((*string)(&m.Role), x)
		case "name":
			err = text(&m.Name, x)
		case "tool_call_id":
			err = text(&m.ToolCallID, x)
		case "reasoning", "reasoning_content":
			if m.Reasoning == "" {
				err = text(&m.Reasoning, x)
			}
		case "content":
			err = content(&m, x)
		case "tool_calls":
			err = toolCalls(&m, x)
		default:
			if !x.IsNull() {
				if m.Extra == nil {
					m.Extra = map[string]json.RawMessage{}
				}
				m.Extra[k] = x.Clone()
			}
		}
		if err != nil {
			return m, err
		}
	}
	if m.Role == "" {
		return m, Bad("it has no role")
	}
	return m, nil
}

func content(m *rollout.Message, v jsonscan.Value) error {
	switch v.Kind() {
	case jsonscan.Null:
		return nil
	case jsonscan.String:
		m.Content, _ = v.Text()
	case jsonscan.Array:
		m.Parts = []rollout.Part{}
		for i, x := range v.Items() {
			p := rollout.Part{Raw: x.Clone()}
			switch x.Kind() {
			case jsonscan.String:
				p.Type, p.Text = "text", x.String()
			case jsonscan.Object:
				if p.Type = x.Get("type").String(); p.IsText() {
					p.Text = x.Get("text").String()
				}
			default:
				return Bad("part %d of its content is %s", i, x.Word())
			}
			m.Parts = append(m.Parts, p)
		}
		m.Content = rollout.JoinText(m.Parts)
	default:
		return Bad("its content is %s, expected a string, null or a list of parts", v.Word())
	}
	m.NoContent = false
	return nil
}

func toolCalls(m *rollout.Message, v jsonscan.Value) error {
	if v.IsNull() {
		return nil
	}
	if v.Kind() != jsonscan.Array {
		return Bad("its tool_calls is %s, expected a list", v.Word())
	}
	for i, x := range v.Items() {
		f := x.Get("function")
		name, ok := f.Get("name").Text()
		if !ok {
			return Bad("tool call %d has no function with a name", i)
		}
		c := rollout.ToolCall{ID: x.Get("id").String(), Name: name, ArgumentsText: true}
		if a := f.Get("arguments"); a.Kind() == jsonscan.String {
			c.Arguments = a.String()
		} else {
			c.Arguments, c.ArgumentsText = string(a.Clone()), false
		}
		m.ToolCalls = append(m.ToolCalls, c)
	}
	return nil
}
