package rollout

import (
	"encoding/json"
	"strings"
)

// Role says who speaks. Any string is kept; the constants are the roles that this module
// interprets.
type Role string

// The roles that this module interprets. RoleExit marks a harness's closing record, which
// no chat template knows; it is never rendered.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	RoleExit      Role = "exit"
)

// Message is one entry of a conversation, as recorded. It is never edited after
// reading.
type Message struct {
	Role Role   `json:"role"`
	Name string `json:"name,omitempty"`
	// Content is the text; for a list of parts it is the text parts joined without
	// a separator.
	Content string `json:"content"`
	// NoContent is true when the content was null or absent, not empty; Content is "" then.
	NoContent bool `json:"-"`
	// Parts is the recorded list if the content was a list, else nil.
	Parts []Part `json:"-"`
	// Reasoning is the readable thinking text of an assistant message, "" if none.
	Reasoning  string     `json:"reasoning,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	// Sampled says whether the policy produced this message and how that is known. It has a
	// meaning for assistant messages only.
	Sampled Sampled `json:"sampled,omitempty"`
	// Extra holds recorded keys without a field of their own, values verbatim, and values
	// that a zero field cannot tell from an absent key: a null or empty name, tool_call_id,
	// reasoning or tool_calls.
	Extra map[string]json.RawMessage `json:"-"`
}

// Part is one element of a list-shaped content.
type Part struct {
	Type string          // "text", "image", …
	Text string          // for text parts
	Raw  json.RawMessage // the element as recorded
}

// IsText reports whether the part is text under any of its type names (text, input_text,
// output_text).
func (p Part) IsText() bool {
	return p.Type == "text" || p.Type == "input_text" || p.Type == "output_text"
}

// JoinText returns the text of a content list: its text parts joined without a separator.
func JoinText(parts []Part) string {
	if len(parts) == 1 && parts[0].IsText() {
		return parts[0].Text
	}
	var b strings.Builder
	for _, p := range parts {
		if p.IsText() {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// ToolCall is one function call of an assistant message.
type ToolCall struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	// Arguments is the decoded string if ArgumentsText is set, else the JSON value verbatim
	// (number literals and key order kept).
	Arguments string `json:"arguments"`
	// ArgumentsText is true when the dump held the arguments as a JSON string.
	ArgumentsText bool `json:"-"`
	// Flat is true when the dump held name and arguments on the call itself, not
	// in a "function" object.
	Flat bool `json:"-"`
	// Extra holds recorded keys without a field of their own; those of the "function"
	// object are under that key.
	Extra map[string]json.RawMessage `json:"-"`
}

// Sampled says whether the policy sampled an assistant message and, if not, where the
// message came from. The zero value is unknown; a message of unknown origin is never
// trained silently.
type Sampled uint8

// The values of Sampled.
const (
	SampledUnknown       Sampled = iota
	SampledByPolicy              // the policy produced it in this record
	SampledDemonstration         // a worked example shown to the policy
	SampledCopied                // copied from another record as context
	SampledPrefilled             // part of the task's input
	SampledScripted              // produced by code (a user simulator, a canned reply)
	SampledExit                  // a harness's closing message
	SampledOtherAgent            // another model or agent produced it
)

var sampledNames = []string{"unknown", "sampled", "demonstration", "copied_context", "prefilled", "scripted", "exit_message", "other_agent"}

// String returns the name used in files.
func (s Sampled) String() string { return enumName(sampledNames, int(s), "sampled") }

// MarshalText writes the name used in files.
func (s Sampled) MarshalText() ([]byte, error) { return enumText(sampledNames, int(s), "sampled") }

// UnmarshalText reads a name written by MarshalText.
func (s *Sampled) UnmarshalText(b []byte) error { return enumParse(sampledNames, b, "sampled", s) }

// Tool is one tool definition, the JSON value verbatim.
type Tool = json.RawMessage
