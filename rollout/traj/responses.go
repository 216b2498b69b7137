package traj

import (
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// addItem adds one model item of the Responses API (reasoning, message,
// function_call) to an assistant message. It reports whether the item is one.
func (j *fileReader) addItem(m *rollout.Message, item value, i int) (bool, error) {
	switch kind := item.Get("type"); {
	case kind.Is("reasoning"):
		m.Reasoning += summary(item)
	case kind.Is("function_call") || kind.Is("custom_tool_call"):
		c := rollout.ToolCall{ID: firstID(item, "call_id", "id"), Name: item.Get("name").Word()}
		if c.Name == "" {
			return true, j.fail(rollout.At(i), "/name", "the function call has no name")
		}
		arguments := item.Get("arguments")
		if kind.Is("custom_tool_call") {
			arguments = item.Get("input") // free text
		}
		setArguments(&c, arguments)
		m.ToolCalls = append(m.ToolCalls, c)
	case kind.Is("message") || kind.Kind() == jsonscan.Absent && item.Get("role").Kind() == jsonscan.String:
		var one rollout.Message
		if err := j.content(&one, item.Get("content"), i); err != nil {
			return true, err
		}
		if plainParts(one.Parts) && m.Parts == nil {
			m.Content, m.NoContent = m.Content+one.Content, false
		} else {
			addParts(m, one.Parts...)
		}
	case isCall(kind.String()): // of a tool that the server ran: no template knows it
		addParts(m, rollout.Part{Type: kind.String(), Raw: item.Clone()})
	default:
		return false, nil
	}
	return true, nil
}

// isCall reports whether items of a kind are calls by the model.
func isCall(kind string) bool { return strings.HasSuffix(kind, "_call") }

// addParts appends parts to a content, which may be a text so far.
func addParts(m *rollout.Message, more ...rollout.Part) {
	if m.Parts == nil && m.Content != "" {
		m.Parts = []rollout.Part{textPart(m.Content)}
	}
	m.Parts = append(m.Parts, more...)
	m.Content, m.NoContent = rollout.JoinText(m.Parts), false
}

// responseEnd is why the model stopped.
func responseEnd(response value) string {
	return firstWord(response.Path("incomplete_details", "reason").String(), response.Get("status").String())
}

// responseStatus is how a response of the Responses API ended.
func responseStatus(word string) rollout.Status {
	switch word {
	case "completed":
		return rollout.StatusCompleted
	case "incomplete":
		return rollout.StatusTruncated
	case "failed":
		return rollout.StatusFailed
	case "cancelled":
		return rollout.StatusAborted
	}
	return rollout.StatusUnknown
}

// plainParts reports whether a list of parts says no more than its text.
func plainParts(parts []rollout.Part) bool {
	for _, p := range parts {
		if !p.IsText() {
			return false
		}
	}
	return true
}

// summary is the readable text of a reasoning item; encrypted reasoning has
// none.
func summary(item value) string {
	var parts []string
	for _, key := range []string{"summary", "content"} {
		for _, s := range item.Get(key).Items() {
			if t, ok := s.Get("text").Text(); ok {
				parts = append(parts, t)
			} else if t, ok := s.Text(); ok {
				parts = append(parts, t)
			}
		}
		if len(parts) > 0 {
			break
		}
	}
	return strings.Join(parts, "\n")
}

// responseMessage makes one assistant message of the items of one response.
func (j *fileReader) responseMessage(items value, i int) (rollout.Message, error) {
	m := rollout.Message{Role: rollout.RoleAssistant}
	if items.Kind() != jsonscan.Array {
		return m, j.want(items, rollout.At(i), "/output", "a list of items")
	}
	for _, item := range items.Items() {
		known, err := j.addItem(&m, item, i)
		if err != nil {
			return m, err
		}
		if !known {
			j.note("item_unknown", rollout.At(i), "an item of type %q was left in the dump", item.Get("type").String())
		}
	}
	return m, nil
}
