package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// messageValue returns the dict that the template is given for m.
func messageValue(m *rollout.Message, s *shape) (chat.Value, error) {
	members := make([]chat.Member, 0, 8)
	add := func(key string, v chat.Value) { members = append(members, chat.Member{Key: key, Value: v}) }
	add("role", chat.String(string(m.Role)))
	for i, p := range m.Parts {
		if !p.IsText() {
			return chat.Value{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "content"}, "part %d is of type %q: only text can be turned into tokens", i, p.Type).
				WithFix("put a text in its place, or leave the rollout out")
		}
	}
	// Templates test for an empty text far more often than for a missing key.
	if len(m.Parts) > 1 && rollout.JoinText(m.Parts) == m.Content { // not shortened
		add("content", s.textParts(m))
	} else {
		add("content", s.text(m.Content))
	}
	if m.Reasoning != "" {
		add("reasoning_content", chat.String(m.Reasoning))
		if s.reasoning {
			add("reasoning", chat.String(m.Reasoning))
		}
	}
	if len(m.ToolCalls) > 0 {
		calls := make([]chat.Value, len(m.ToolCalls))
		for i, c := range m.ToolCalls {
			args, err := s.argumentsValue(&c)
			if err != nil {
				return chat.Value{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "tool_calls"}, "the arguments of call %d are not JSON: %w", i, err)
			}
			function := chat.Object(chat.Member{Key: "name", Value: chat.String(c.Name)}, chat.Member{Key: "arguments", Value: args})
			call := []chat.Member{{Key: "type", Value: chat.String("function")}}
			if c.ID != "" {
				call = append(call, chat.Member{Key: "id", Value: chat.String(c.ID)})
			}
			calls[i] = chat.Object(append(call, chat.Member{Key: "function", Value: function})...)
		}
		add("tool_calls", chat.List(calls...))
	}
	if m.ToolCallID != "" {
		add("tool_call_id", chat.String(m.ToolCallID))
	}
	if m.Name != "" {
		add("name", chat.String(m.Name))
	}
	for _, key := range slices.Sorted(maps.Keys(m.Extra)) {
		if !s.reads(key, m.Extra[key]) {
			continue
		}
		v, err := chat.ParseJSON(m.Extra[key])
		if err != nil {
			return chat.Value{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: key}, "not a JSON value: %w", err)
		}
		add(key, v)
	}
	return chat.Object(members...), nil
}

// ReadsExtra reports whether the template may read one of the recorded keys of m.
func (s shape) ReadsExtra(m *rollout.Message) bool {
	for key, raw := range m.Extra {
		if s.reads(key, raw) {
			return true
		}
	}
	return false
}

// reads reports whether the template may read a recorded key without a field in Message (tool_plan,
// prefix). Empty values of keys that have a field, and reasoning that is not text, are kept only
// for the record.
func (s shape) reads(key string, raw json.RawMessage) bool {
	switch key {
	case "name", "tool_call_id", "tool_calls", "reasoning", "reasoning_content", "thinking":
		return false
	}
	return strings.Contains(s.source, key) && string(raw) != "null"
}
