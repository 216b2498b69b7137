package render

import (
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// argumentForm is the form in which a call's arguments are given to a template.
type argumentForm uint8

const (
	asObject argumentForm = iota
	AsText
)

// argumentsWritten is what a template makes of one form of a call's arguments.
type argumentsWritten uint8

const (
	ArgumentsLost    argumentsWritten = iota // rejected or left out by the template
	argumentsEscaped                         // a string within JSON: the text is escaped again
	argumentsPython                          // an object as Python prints it
	ArgumentsRight
)

func (w argumentsWritten) String() string {
	return [...]string{"refused or left out", "escaped within a string", "written as Python shows them", "written in another way"}[w]
}

// argumentForms says how a template writes arguments.
type argumentForms struct {
	Give         argumentForm // the form to give
	Object, Text argumentsWritten
	// Alike says that the template writes JSON text like the object that the text spells.
	Alike bool
}

// formsOf compares what a template writes of {"command": "PROBETEXT"} in either form.
func formsOf(object, text string) argumentForms {
	f := argumentForms{Object: argumentsIn(object), Text: argumentsIn(text)}
	f.Alike = f.Object == ArgumentsRight && object == text
	if f.Text > f.Object {
		f.Give = AsText
	}
	return f
}

func argumentsIn(text string) argumentsWritten {
	switch {
	case !strings.Contains(text, "PROBETEXT"):
		return ArgumentsLost
	case strings.Contains(text, `command\"`):
		return argumentsEscaped
	case strings.Contains(text, `{'command': 'PROBETEXT'}`):
		return argumentsPython
	}
	return ArgumentsRight
}

// argumentsValue returns what the template is given for a call's arguments. An engine passes the
// object that the recorded text spells, and {} for none; this function does the same, but keeps
// number literals and the order of keys as recorded (vLLM's _postprocess_messages, SGLang's
// normalize_assistant_tool_call_arguments).
func (s *shape) argumentsValue(c *rollout.ToolCall) (chat.Value, error) {
	recorded := strings.TrimSpace(c.Arguments)
	switch {
	case s.by == byTransformers && c.ArgumentsText:
		return chat.String(c.Arguments), nil
	case s.by == byTransformers && recorded != "":
		return chat.ParseJSON([]byte(recorded))
	case recorded == "", recorded == "null":
		c = &rollout.ToolCall{Arguments: "{}"}
		recorded = c.Arguments
	}
	if s.Forms().Give == AsText {
		if c.ArgumentsText {
			return chat.String(c.Arguments), nil
		}
		return chat.String(spacedJSON(recorded)), nil
	}
	v, err := chat.ParseLiterals([]byte(recorded))
	switch {
	case err == nil:
		return v, nil
	case c.ArgumentsText && s.Forms().Alike:
		return chat.String(c.Arguments), nil
	case c.ArgumentsText:
		return chat.Object(), nil // as vLLM: see BrokenArguments
	}
	return v, err
}

// BrokenArguments returns an error, and the call, if m has a call whose arguments the template
// cannot write because they are not JSON. A context shows {} for them, as vLLM's do.
func (s *shape) BrokenArguments(m *rollout.Message) (call int, err error) {
	if len(m.ToolCalls) == 0 || s.by == byTransformers || s.Forms().Give == AsText || s.Forms().Alike {
		return 0, nil
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		if recorded := strings.TrimSpace(c.Arguments); c.ArgumentsText && recorded != "" {
			if _, err := chat.ParseLiterals([]byte(recorded)); err != nil {
				return i, err
			}
		}
	}
	return 0, nil
}

// spacedJSON returns JSON text with the white space that Python's json.dumps writes; strings and
// numbers keep their spelling.
func spacedJSON(text string) string {
	var b strings.Builder
	quoted, escaped := false, false
	for i := range len(text) {
		c := text[i]
		switch {
		case quoted:
			_ = b.WriteByte(c)
			quoted, escaped = escaped || c != '"', c == '\\' && !escaped
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case c == ',' || c == ':':
			_, _ = b.WriteString(string(c) + " ")
		default:
			quoted = c == '"'
			_ = b.WriteByte(c)
		}
	}
	return b.String()
}
