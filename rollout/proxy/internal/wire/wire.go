// Package wire is what the dialects of clients have in common: a call in neutral terms,
// what it takes to write replies, and the reading of messages.
package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// Call is what a client asks, in neutral terms.
type Call struct {
	engine.Request
	// Previous is the id of the reply that the conversation goes on from, "" = the
	// request has all of it. Instructions counts the first messages that are those of
	// this call alone.
	Previous     string
	Instructions int
	// Settings is what is recorded of the request besides what it holds here, nil =
	// Fields.
	Settings map[string]json.RawMessage
	// Own is for the writer of the dialect.
	Own any
}

// Model is what the client calls the model.
func (c *Call) Model() string { return jsonscan.Unquote(c.Fields["model"]) }

// Meta is what a reply says of itself.
type Meta struct {
	ID      string // of the call, with no prefix
	Created time.Time
	Prompt  []rollout.TokenID // where it is known before the engine tells it
}

// Problem is a refusal or a failure, for a client.
type Problem struct {
	Status     int
	Type       string // of the engine's own words, "" = the dialect's for the status
	Message    string
	RetryAfter string // seconds
}

// Error is the message.
func (p *Problem) Error() string { return p.Message }

// Bad is a request that cannot be read.
func Bad(format string, args ...any) error {
	return &Problem{Status: http.StatusBadRequest, Message: rollout.Printable(fmt.Sprintf(format, args...))}
}

// Dialect is one API.
type Dialect interface {
	// Name is its name in the record.
	Name() string
	// Parse reads a request.
	Parse(body []byte) (*Call, error)
	// Writer writes one reply.
	Writer(c *Call, m Meta) Writer
	// Error is the body of a refusal.
	Error(p *Problem) []byte
}

// Writer writes one reply to one client, as a stream of events or as a whole.
type Writer interface {
	// Chunk appends the events of a chunk, which may be the last, already recorded.
	Chunk(dst []byte, c *engine.Chunk) []byte
	// End appends the events after the last chunk.
	End(dst []byte) []byte
	// Fail appends the event of a reply that breaks off.
	Fail(dst []byte, p *Problem) []byte
	// Ping appends what keeps a client waiting.
	Ping(dst []byte) []byte
	// Whole is a reply that is not streamed.
	Whole(chunks []*engine.Chunk) []byte
}

// Comment is a ping that every reader of events passes over.
const Comment = ": keep-alive\n\n"

// JSON writes a value, with <, > and & as they are. The values that dialects write have
// no errors.
func JSON(v any) []byte {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return b
}

// Members writes an object of values that are JSON, by the names of its members.
func Members(m map[string]json.RawMessage) []byte {
	n := 2
	for k, v := range m {
		n += len(k) + len(v) + 4
	}
	b := append(make([]byte, 0, n), '{')
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(jsonscan.AppendEscaped(append(b, '"'), k), `":`...)
		b = append(b, m[k]...)
	}
	return append(b, '}')
}

// Object parses a body that must be a JSON object with no member twice: of two, the
// record could hold another than the engine answers.
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

// Fields are the members of a request but those named.
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

// Text reads an optional string.
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

// Flag reads an optional boolean.
func Flag(v jsonscan.Value, name string) (bool, error) {
	x := v.Get(name)
	b, ok := x.Bool()
	if !ok && !x.IsNull() {
		return false, Bad("%s is %s, expected true or false", name, x.Word())
	}
	return b, nil
}

// MaxChoices is how many replies a request may ask for.
const MaxChoices = 128

// Choices reads n.
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

// Tools are the tools of a request as chat completions have them.
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

// Function is a tool that is a function, as chat completions have it.
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

// Schema is a response_format that holds replies to a schema.
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

// TextPart is a part of text as chat completions have it.
func TextPart(s string) rollout.Part {
	return rollout.Part{Type: "text", Text: s, Raw: JSON(map[string]string{"type": "text", "text": s})}
}

// ImagePart is an image as chat completions have it.
func ImagePart(url string) rollout.Part {
	return rollout.Part{Type: "image_url", Raw: JSON(map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}})}
}

// Content is the content of a message of parts: of text alone its text, each part a line
// of its own.
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

// sealed begins the reasoning that only this proxy reads.
const sealed = "turnpack:"

// Seal writes reasoning, or what tells it, in a form that clients send back as it is.
func Seal(b []byte) string {
	return base64.StdEncoding.EncodeToString(append([]byte(sealed), b...))
}

// Unseal reads what Seal wrote, "" for what others wrote.
func Unseal(s string) string {
	b, err := base64.StdEncoding.DecodeString(s)
	if text, ours := strings.CutPrefix(string(b), sealed); err == nil && ours {
		return text
	}
	return ""
}

// Messages reads messages as chat completions have them.
func Messages(v jsonscan.Value) ([]rollout.Message, error) {
	if v.Kind() != jsonscan.Array {
		return nil, Bad("messages is %s, expected a list", v.Word())
	}
	out := make([]rollout.Message, 0, v.Len())
	for i, x := range v.Items() {
		m, err := message(x)
		if err != nil {
			return nil, Bad("message %d: %v", i, err)
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, Bad("messages is empty")
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

// Reply is a whole reply, put together.
type Reply struct {
	ID, Model string
	Choices   []*Choice
	Usage     engine.Usage
	Prompt    []rollout.TokenID
}

// Choice is one reply of a Reply.
type Choice struct {
	IDs      []rollout.TokenID
	Logprobs []float32
	Finish   string
	Stop     string

	text, reasoning strings.Builder
	calls           []*toolCall
}

type toolCall struct {
	id, name  string
	arguments strings.Builder
}

// Message is what was said.
func (c *Choice) Message() *rollout.Message {
	m := &rollout.Message{Role: rollout.RoleAssistant, Content: c.text.String(), Reasoning: c.reasoning.String()}
	m.NoContent = m.Content == ""
	for _, x := range c.calls {
		if x.name == "" { // Nameless tells
			continue
		}
		m.ToolCalls = append(m.ToolCalls, rollout.ToolCall{ID: x.id, Name: x.name, Arguments: x.arguments.String(), ArgumentsText: true})
	}
	return m
}

// Nameless reports whether a tool call has no name, so that Message leaves it out.
func (c *Choice) Nameless() bool {
	return slices.ContainsFunc(c.calls, func(x *toolCall) bool { return x.name == "" })
}

// Called reports whether it has a tool call.
func (c *Choice) Called() bool { return len(c.calls) > 0 }

// Add puts a chunk at the end.
func (r *Reply) Add(c *engine.Chunk) {
	if r.ID == "" {
		r.ID = c.ID
	}
	if r.Model == "" {
		r.Model = c.Model
	}
	if c.Prompt != nil {
		r.Prompt = c.Prompt
	}
	if c.Usage != nil {
		r.Usage = *c.Usage
	}
	for i := range c.Choices {
		d := &c.Choices[i]
		for len(r.Choices) <= d.Index { // which the engine's answer is checked for
			r.Choices = append(r.Choices, &Choice{})
		}
		k := r.Choices[d.Index]
		k.text.WriteString(d.Text)
		k.reasoning.WriteString(d.Reasoning)
		for _, x := range d.Calls {
			if x.Index < 0 || x.Index >= MaxCalls {
				continue
			}
			for len(k.calls) <= x.Index {
				k.calls = append(k.calls, &toolCall{})
			}
			t := k.calls[x.Index]
			if x.ID != "" {
				t.id = x.ID
			}
			if x.Name != "" {
				t.name = x.Name
			}
			t.arguments.WriteString(x.Arguments)
		}
		k.IDs, k.Logprobs = append(k.IDs, d.IDs...), append(k.Logprobs, d.Logprobs...)
		if d.Finish != "" {
			k.Finish, k.Stop = d.Finish, d.Stop
		}
	}
}

// MaxCalls is how many tool calls a reply may have.
const MaxCalls = 1024

// Collect puts chunks together.
func Collect(chunks []*engine.Chunk) *Reply {
	var r Reply
	for _, c := range chunks {
		r.Add(c)
	}
	return &r
}

// TokenName is how a token is named where its text is not known.
func TokenName(id rollout.TokenID) string { return "token_id:" + strconv.Itoa(int(id)) }

// Kind is the class of a status in the words that OpenAI and Anthropic share.
func Kind(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status == http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusServiceUnavailable || status == 529:
		return "overloaded_error"
	case status < 500:
		return "invalid_request_error"
	}
	return "api_error"
}

// OpenAI is the body of an error as OpenAI's APIs have it.
func OpenAI(p *Problem) []byte {
	kind := p.Type
	if kind == "" {
		kind = Kind(p.Status)
	}
	return JSON(map[string]any{"error": map[string]any{"message": p.Message, "type": kind, "param": nil, "code": p.Status}})
}
