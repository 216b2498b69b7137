package chats

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// record is a line that traj.AppendChat writes.
type record struct {
	Instance   *string `json:"instance_id"`
	Messages   []message
	Tools      json.RawMessage
	Kwargs     json.RawMessage `json:"chat_template_kwargs"`
	Resolved   *bool
	Reward     *float64
	Patch      *string
	ExitStatus *string `json:"exit_status"`
}

type message struct {
	Role      string
	Content   json.RawMessage
	Reasoning *string `json:"reasoning_content"`
	Name      *string
	CallID    *string `json:"tool_call_id"`
	Calls     []call  `json:"tool_calls"`

	text *string // text of Content, set by check
}

type call struct {
	ID       *string
	Type     string
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
}

// textOf returns JSON as text; of a JSON string, its value. It returns nil for nil.
func textOf(raw json.RawMessage) *string {
	var s string
	if raw == nil {
		return nil
	}
	if json.Unmarshal(raw, &s) != nil {
		s = string(raw)
	}
	return &s
}

// speakers maps roles to their names in conversations.
var speakers = map[string]string{"user": "human", "assistant": "gpt", "system": "system", "developer": "developer", "tool": "observation"}

// check sets the text of each message and returns an error for what a row cannot hold.
func (r *record) check(layout string) (notes []rollout.Note, err error) {
	note := func(i int, code, text string) {
		notes = append(notes, rollout.Note{Code: code, Message: rollout.At(i), Text: text})
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		if string(m.Content) == "null" {
			m.Content = nil
		}
		var parts []struct {
			Type string
			Text *string
		}
		if json.Unmarshal(m.Content, &parts) == nil {
			var texts []string
			for _, p := range parts {
				if p.Text == nil {
					return notes, fmt.Errorf("message %d: a column of texts cannot hold the part of type %q; write JSON Lines instead", i, p.Type)
				}
				texts = append(texts, *p.Text)
			}
			s := strings.Join(texts, "")
			m.text = &s
			note(i, "parts_joined", "the parts of the content were joined to one text")
		} else {
			m.text = textOf(m.Content)
		}
		if layout != shareGPT {
			continue
		}
		if speakers[m.Role] == "" {
			return notes, fmt.Errorf("message %d: conversations have no speaker for the role %q", i, m.Role)
		}
		if m.Name != nil {
			note(i, "name", "conversations have no names")
		}
		if m.CallID != nil {
			note(i, "call_id", "conversations have no ids of calls: results follow in the order of the calls")
		}
	}
	return notes, nil
}

// callsText returns the calls of a reply as the text of a conversation turn, with the arguments
// unchanged.
func callsText(calls []call) string {
	b := []byte("[")
	for i, c := range calls {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(jsonscan.AppendEscaped(append(b, `{"name": "`...), c.Function.Name), `", "arguments": `...)
		b = append(append(b, c.Function.Arguments...), '}')
	}
	return string(append(b, ']'))
}
