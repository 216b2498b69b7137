package tokenize

import (
	"context"
	"regexp"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// shape is how a template takes messages, where templates differ.
type shape struct {
	// by is the system whose prompts are rendered, never PromptsByRecord.
	by PromptsBy
	// forms is how the template writes the arguments of tool calls.
	forms argumentForms
	// parts: content goes in as a list of one text part, since the template writes
	// those only and would leave a plain string out.
	parts bool
	// lists are the systems that give the template several text parts as a list, and
	// listed the roles of which it writes one.
	lists  [promptsByCount]bool
	listed map[rollout.Role]bool
	// reasoning: it goes in as reasoning, too, a key that the template reads. Engines
	// pass it (vLLM beside reasoning_content); transformers makes only the other names.
	reasoning bool
	// source is the template's text: recorded keys without a meaning here are passed
	// if it names them.
	source string
}

// readsReasoning matches the key where a template reads it, as an attribute or by its
// name.
var readsReasoning = regexp.MustCompile(`\.\s*reasoning\b|["']reasoning["']`)

// shapeOf asks the template itself, with probes.
func shapeOf(m *Model) shape {
	var s shape
	if m.Template == nil {
		return s
	}
	s.source = m.Template.Source()
	s.reasoning = readsReasoning.MatchString(s.source)
	const text = "PROBETEXT"
	writes := func(s shape, messages ...rollout.Message) string { // with prompts by vLLM
		probe := *m
		probe.shape = s
		x, err := newRenderer(context.Background(), &probe, &rollout.Rollout{Messages: messages, Tools: probeTools}, Options{})
		if err != nil {
			return ""
		}
		doc, err := x.document()
		if err != nil {
			return ""
		}
		return doc.text
	}
	s.parts = !strings.Contains(writes(shape{}, user(text)), text) && strings.Contains(writes(shape{parts: true}, user(text)), text)
	s.lists = listsOf(s.source)
	s.listed = map[rollout.Role]bool{}
	for _, role := range []rollout.Role{rollout.RoleSystem, rollout.RoleUser, rollout.RoleAssistant} {
		as := s
		as.lists, as.listed = [promptsByCount]bool{PromptsByVLLM: true}, map[rollout.Role]bool{role: true}
		list := rollout.Message{Role: role, Content: "PROBEONEPROBETWO", Parts: []rollout.Part{{Type: "text", Text: "PROBEONE"}, {Type: "text", Text: "PROBETWO"}}}
		written := writes(as, list, user("x"))
		if role == rollout.RoleAssistant {
			written = writes(as, user("x"), list)
		}
		s.listed[role] = strings.Contains(written, "PROBEONE") && strings.Contains(written, "PROBETWO") && !strings.Contains(written, "'PROBEONE'")
	}

	call := calling("", "c00000001")
	call.ToolCalls[0].Arguments = `{"command": "` + text + `"}`
	messages := []rollout.Message{user("x"), call, answering("c00000001", "ok")}
	form := func(by argumentForm) string {
		return writes(shape{forms: argumentForms{give: by}, parts: s.parts}, messages...)
	}
	s.forms = formsOf(form(asObject), form(asText))
	return s
}

// argumentForm is the shape in which a call's arguments are given to a template.
type argumentForm uint8

const (
	asObject argumentForm = iota
	asText
)

// written is what a template makes of one form of a call's arguments.
type argumentsWritten uint8

const (
	argumentsLost    argumentsWritten = iota // the template refuses them, or leaves them out
	argumentsEscaped                         // a string within JSON: the text is escaped once more
	argumentsPython                          // an object as Python shows it
	argumentsRight
)

func (w argumentsWritten) String() string {
	return [...]string{"refused or left out", "escaped within a string", "written as Python shows them", "written in another way"}[w]
}

// argumentForms is how a template writes arguments.
type argumentForms struct {
	give         argumentForm // the form to give
	object, text argumentsWritten
	// alike: it writes JSON text as it writes the object that the text spells.
	alike bool
}

// formsOf compares what a template writes of {"command": "PROBETEXT"} in either form.
func formsOf(object, text string) argumentForms {
	f := argumentForms{object: argumentsIn(object), text: argumentsIn(text)}
	f.alike = f.object == argumentsRight && object == text
	if f.text > f.object {
		f.give = asText
	}
	return f
}

func argumentsIn(text string) argumentsWritten {
	switch {
	case !strings.Contains(text, "PROBETEXT"):
		return argumentsLost
	case strings.Contains(text, `command\"`):
		return argumentsEscaped
	case strings.Contains(text, `{'command': 'PROBETEXT'}`):
		return argumentsPython
	}
	return argumentsRight
}

// argumentsValue is what the template is given of a call's arguments. An engine hands
// it the object that the recorded text spells, and {} for none; so does this, but for
// number literals and the order of keys, which stay as recorded (vLLM's
// _postprocess_messages, SGLang's normalize_assistant_tool_call_arguments).
func (s *shape) argumentsValue(c *rollout.ToolCall) (chat.Value, error) {
	recorded := strings.TrimSpace(c.Arguments)
	switch {
	case s.by == PromptsByTransformers && c.ArgumentsText:
		return chat.String(c.Arguments), nil
	case s.by == PromptsByTransformers && recorded != "":
		return chat.ParseJSON([]byte(recorded))
	case recorded == "", recorded == "null":
		c = &rollout.ToolCall{Arguments: "{}"}
		recorded = c.Arguments
	}
	if s.forms.give == asText {
		if c.ArgumentsText {
			return chat.String(c.Arguments), nil
		}
		return chat.String(spacedJSON(recorded)), nil
	}
	v, err := chat.ParseLiterals([]byte(recorded))
	switch {
	case err == nil:
		return v, nil
	case c.ArgumentsText && s.forms.alike:
		return chat.String(c.Arguments), nil
	case c.ArgumentsText:
		return chat.Object(), nil // as vLLM: see brokenArguments
	}
	return v, err
}

// brokenArguments returns the first call of m whose arguments the template cannot
// write, since they are no JSON: a context shows {} for them, as vLLM's do.
func (s *shape) brokenArguments(m *rollout.Message) (call int, err error) {
	if s.by == PromptsByTransformers || s.forms.give == asText || s.forms.alike {
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

// spacedJSON is JSON text with the white space that Python's json.dumps writes; strings
// and numbers stay as they are spelled.
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
