package engine

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// member is one member of a JSON object.
type member struct {
	key   string
	value []byte // nil = remove the member
}

// edit returns a JSON object with the members of set replaced in place, missing ones added at the front, and
// those with a nil value removed. Other values keep their bytes.
func edit(v jsonscan.Value, text []byte, set []member) []byte {
	out := append(make([]byte, 0, len(v.Raw())+128), '{')
	for _, m := range set {
		if m.value != nil && v.Get(m.key).Kind() == jsonscan.Absent {
			out = appendMember(out, m)
		}
	}
	for key, x := range v.Fields() {
		value := x.Raw()
		if i := slices.IndexFunc(set, func(m member) bool { return key.Is(m.key) }); i >= 0 {
			if value = set[i].value; value == nil {
				continue
			}
		}
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(append(out, text[key.Offset():x.Offset()]...), value...)
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

// object writes members in the given order.
func object(set []member) []byte {
	out := []byte{'{'}
	for _, m := range set {
		if m.value != nil {
			out = appendMember(out, m)
		}
	}
	return append(out, '}')
}

// withFields appends the fields that are not in set and for which leave is false, sorted by name.
func withFields(set []member, fields map[string]json.RawMessage, leave func(string) bool) []member {
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if !leave(k) && !slices.ContainsFunc(set, func(m member) bool { return m.key == k }) {
			set = append(set, member{k, fields[k]})
		}
	}
	return set
}

// AppendMessages appends messages in the format of chat completions.
func AppendMessages(dst []byte, messages []rollout.Message) []byte {
	return appendList(dst, messages, message)
}

// appendList appends a JSON list of items encoded by write.
func appendList[T any](dst []byte, items []T, write func(*T) []byte) []byte {
	dst = append(dst, '[')
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, write(&items[i])...)
	}
	return append(dst, ']')
}

func message(m *rollout.Message) []byte {
	set := []member{{"role", quote(string(m.Role))}}
	switch {
	case m.Parts != nil:
		set = append(set, member{"content", appendList(nil, m.Parts, func(p *rollout.Part) []byte {
			if p.Raw != nil {
				return p.Raw
			}
			return object([]member{{"type", quote(p.Type)}, {"text", quote(p.Text)}})
		})})
	case m.NoContent:
		set = append(set, member{"content", []byte("null")})
	default:
		set = append(set, member{"content", quote(m.Content)})
	}
	if m.Name != "" {
		set = append(set, member{"name", quote(m.Name)})
	}
	if m.Reasoning != "" {
		// Engines read one name or the other.
		set = append(set, member{"reasoning", quote(m.Reasoning)}, member{"reasoning_content", quote(m.Reasoning)})
	}
	if len(m.ToolCalls) > 0 {
		set = append(set, member{"tool_calls", appendList(nil, m.ToolCalls, toolCall)})
	}
	if m.ToolCallID != "" {
		set = append(set, member{"tool_call_id", quote(m.ToolCallID)})
	}
	return object(withFields(set, m.Extra, func(k string) bool { return k == "reasoning" || k == "reasoning_content" }))
}

// toolCall encodes a tool call in the format of chat completions.
func toolCall(c *rollout.ToolCall) []byte {
	return object([]member{
		{"id", quote(c.ID)}, {"type", []byte(`"function"`)},
		{"function", object([]member{{"name", quote(c.Name)}, {"arguments", quote(cmp.Or(c.Arguments, "{}"))}})},
	})
}

// quote writes a string as JSON without escaping <, > and &.
func quote(s string) []byte {
	b, _ := jsonscan.Marshal(s) // strings always encode
	return b
}

func list[T any](items []T) []byte {
	b, _ := json.Marshal(items) // ids and parsed raw values always encode
	return b
}
