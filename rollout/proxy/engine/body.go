package engine

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// member is one member of a JSON object.
type member struct {
	key   string
	value []byte // nil = the member goes
}

// edit returns a JSON object with members set where they stand, those that are not there
// at the front, and without those set to nil. Values that stay keep their bytes.
func edit(v jsonscan.Value, text []byte, set []member) []byte {
	out := append(make([]byte, 0, len(v.Raw())+128), '{')
	for _, m := range set {
		if m.value != nil && v.Get(m.key).Kind() == jsonscan.Absent {
			out = appendMember(out, m)
		}
	}
	return appendObject(out, v, text, func(out []byte, key, x jsonscan.Value) ([]byte, bool) {
		for _, m := range set {
			if key.Is(m.key) {
				return append(out, m.value...), m.value != nil
			}
		}
		return append(out, x.Raw()...), true
	})
}

// appendObject appends the members of an object to one that is open, and closes it. value
// appends a value, or says that the member goes.
func appendObject(out []byte, v jsonscan.Value, text []byte, value func(out []byte, key, x jsonscan.Value) ([]byte, bool)) []byte {
	for k, x := range v.Fields() {
		before := len(out)
		if out[before-1] != '{' {
			out = append(out, ',')
		}
		out = append(out, text[k.Offset():x.Offset()]...)
		var keep bool
		if out, keep = value(out, k, x); !keep {
			out = out[:before]
		}
	}
	return append(out, '}')
}

func appendMember(out []byte, m member) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	key, _ := json.Marshal(m.key)
	return append(append(append(out, key...), ':'), m.value...)
}

// object writes members in the order given.
func object(set []member) []byte {
	out := []byte{'{'}
	for _, m := range set {
		if m.value != nil {
			out = appendMember(out, m)
		}
	}
	return append(out, '}')
}

// withFields adds the fields that are not in set, by name.
func withFields(set []member, fields map[string]json.RawMessage, leave func(string) bool) []member {
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if !leave(k) && !slices.ContainsFunc(set, func(m member) bool { return m.key == k }) {
			set = append(set, member{k, fields[k]})
		}
	}
	return set
}

// AppendMessages appends messages as chat completions have them.
func AppendMessages(dst []byte, messages []rollout.Message) []byte {
	dst = append(dst, '[')
	for i := range messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendMessage(dst, &messages[i])
	}
	return append(dst, ']')
}

func appendMessage(dst []byte, m *rollout.Message) []byte {
	set := []member{{"role", quote(string(m.Role))}}
	switch {
	case m.Parts != nil:
		var list bytes.Buffer
		list.WriteByte('[')
		for i, p := range m.Parts {
			if i > 0 {
				list.WriteByte(',')
			}
			if p.Raw != nil {
				list.Write(p.Raw)
			} else {
				list.Write(object([]member{{"type", quote(p.Type)}, {"text", quote(p.Text)}}))
			}
		}
		list.WriteByte(']')
		set = append(set, member{"content", list.Bytes()})
	case m.NoContent:
		set = append(set, member{"content", []byte("null")})
	default:
		set = append(set, member{"content", quote(m.Content)})
	}
	if m.Name != "" {
		set = append(set, member{"name", quote(m.Name)})
	}
	if m.Reasoning != "" {
		// Each engine reads one of the two names.
		set = append(set, member{"reasoning", quote(m.Reasoning)}, member{"reasoning_content", quote(m.Reasoning)})
	}
	if len(m.ToolCalls) > 0 {
		list := []byte{'['}
		for i := range m.ToolCalls {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, appendCall(nil, &m.ToolCalls[i])...)
		}
		set = append(set, member{"tool_calls", append(list, ']')})
	}
	if m.ToolCallID != "" {
		set = append(set, member{"tool_call_id", quote(m.ToolCallID)})
	}
	return append(dst, object(withFields(set, m.Extra, func(k string) bool { return k == "reasoning" || k == "reasoning_content" }))...)
}

// appendCall appends a tool call as chat completions have it.
func appendCall(dst []byte, c *rollout.ToolCall) []byte {
	arguments := c.Arguments
	if arguments == "" {
		arguments = "{}"
	}
	return append(dst, object([]member{
		{"id", quote(c.ID)}, {"type", []byte(`"function"`)},
		{"function", object([]member{{"name", quote(c.Name)}, {"arguments", quote(arguments)}})},
	})...)
}

// quote writes a string as JSON, with <, > and & as they are.
func quote(s string) []byte {
	b, _ := jsonscan.Marshal(s) // a string has no errors
	return b
}

func list[T any](items []T) []byte {
	b, _ := json.Marshal(items) // ids and raw values that were parsed
	return b
}
