package pivot

import (
	"bytes"
	"encoding/json"

	"github.com/turnpack/turnpack/rollout"
)

// Values of Action.Kind, named as in data sets.
const (
	noAction = ""
	message  = "message"
	oneCall  = "function_call"
	batch    = "function_call_batch"
)

// Call is one tool call. Arguments holds the JSON text as the model wrote it.
type Call struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Action is one step: a chat message, a tool call, or several.
type Action struct {
	Kind    string // "message", "function_call", "function_call_batch", or "" for no action
	Content string // text of a message
	Calls   []Call // one call, or any number for a batch
}

// UnmarshalJSON reads an expected action in the form of data sets: an object with type, and content,
// or name and arguments, or calls.
func (a *Action) UnmarshalJSON(data []byte) error {
	var row struct {
		Type      string  `json:"type"`
		Content   *string `json:"content"`
		Name      *string `json:"name"`
		Arguments *string `json:"arguments"`
		Calls     []Call  `json:"calls"`
	}
	if err := json.Unmarshal(data, &row); err != nil {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{}, "an action is an object: %w", err)
	}
	missing := func(field string) error {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{Field: field}, "a %s action must have %s", row.Type, field)
	}
	switch row.Type {
	case message:
		if row.Content == nil {
			return missing("content")
		}
		*a = Action{Kind: message, Content: *row.Content}
	case oneCall:
		if row.Name == nil {
			return missing("name")
		}
		if row.Arguments == nil {
			return missing("arguments")
		}
		*a = Action{Kind: oneCall, Calls: []Call{{*row.Name, *row.Arguments}}}
	case batch:
		if len(row.Calls) == 0 {
			return missing("calls")
		}
		*a = Action{Kind: batch, Calls: row.Calls}
	default:
		return rollout.Errorf(rollout.KindFormat, rollout.Where{Field: "type"}, "expected message, function_call or function_call_batch, found %q", row.Type)
	}
	return nil
}

// OutputItem is one item of a model answer in the Responses format.
type OutputItem struct {
	Type      string
	Role      string
	Name      string
	Arguments string
	Texts     []string // the output_text parts of a message
}

// UnmarshalJSON reads an item; unknown fields and parts are ignored.
func (o *OutputItem) UnmarshalJSON(data []byte) error {
	var row struct {
		Type      string          `json:"type"`
		Role      string          `json:"role"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Content   json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &row); err != nil {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{}, "an output item is an object: %w", err)
	}
	*o = OutputItem{Type: row.Type, Role: row.Role, Name: row.Name, Arguments: argumentText(row.Arguments)}
	if c := bytes.TrimSpace(row.Content); len(c) > 0 && c[0] == '[' {
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if err := json.Unmarshal(c, &parts); err != nil {
			return rollout.Errorf(rollout.KindFormat, rollout.Where{Field: "content"}, "content is a list of parts: %w", err)
		}
		for _, p := range parts {
			if p.Type == "output_text" {
				o.Texts = append(o.Texts, p.Text)
			}
		}
	}
	return nil
}

// argumentText returns the text of arguments: the content of a string, the JSON text of an object, ""
// for anything else.
func argumentText(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return ""
	case raw[0] == '{':
		return string(raw)
	case raw[0] == '"':
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
	}
	return ""
}

// ActionOf returns the action of a model answer: its tool calls if there are any, regardless of text
// beside them; else the first text of an assistant message; else no action.
func ActionOf(output []OutputItem) Action {
	var calls []Call
	said, content := false, ""
	for _, item := range output {
		switch {
		case item.Type == "function_call":
			calls = append(calls, Call{item.Name, item.Arguments})
		case item.Type == "message" && item.Role == "assistant" && !said && len(item.Texts) > 0:
			said, content = true, item.Texts[0]
		}
	}
	if len(calls) == 0 && said {
		return Action{Kind: message, Content: content}
	}
	return actionOfCalls(calls)
}

// actionOfCalls returns the action with those calls, no action without calls.
func actionOfCalls(calls []Call) Action {
	switch len(calls) {
	case 0:
		return Action{}
	case 1:
		return Action{Kind: oneCall, Calls: calls}
	}
	return Action{Kind: batch, Calls: calls}
}

// actionOfMessage returns the action of an assistant message.
func actionOfMessage(m *rollout.Message) Action {
	calls := make([]Call, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		calls[i] = Call{c.Name, c.Arguments}
	}
	if len(calls) > 0 || m.NoContent {
		return actionOfCalls(calls)
	}
	return Action{Kind: message, Content: m.Content}
}
