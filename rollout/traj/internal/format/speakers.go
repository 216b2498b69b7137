package format

import (
	"cmp"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// speakers maps the names of speakers in chats and conversations to roles. Other names are
// refused: a template would render them verbatim, which no model has seen, or drop the
// message.
var speakers = map[string]rollout.Role{
	"human": rollout.RoleUser, "user": rollout.RoleUser,
	"gpt": rollout.RoleAssistant, "assistant": rollout.RoleAssistant, "model": rollout.RoleAssistant, "chatgpt": rollout.RoleAssistant, "bing": rollout.RoleAssistant, "bard": rollout.RoleAssistant,
	"ai": rollout.RoleAssistant, "function_call": rollout.RoleAssistant, "tool_call": rollout.RoleAssistant,
	"system": rollout.RoleSystem, "developer": rollout.RoleDeveloper,
	"observation": rollout.RoleTool, "function": rollout.RoleTool, "tool": rollout.RoleTool, "function_response": rollout.RoleTool,
	"tool_response": rollout.RoleTool, "tool_result": rollout.RoleTool, "environment": rollout.RoleTool, "ipython": rollout.RoleTool,
	"exit": rollout.RoleExit,
}

// CallRoles are the speakers whose text is a call, or a list of calls, in JSON.
var CallRoles = []string{"function_call", "tool_call"}

// Speaker returns the role of a speaker's name.
func (in *File) Speaker(word string, i int, field string) (rollout.Role, error) {
	if role, ok := speakers[strings.ToLower(word)]; ok {
		if word == "function" && field == "/role" {
			return "function", nil // a role of the first function calling API, kept as it is
		}
		return role, nil
	}
	known := make([]string, 0, len(speakers))
	for name := range speakers {
		known = append(known, name)
	}
	slices.Sort(known)
	w := in.Where
	w.Message, w.Field = rollout.At(i), field
	return "", rollout.Errorf(rollout.KindInput, w, "unknown speaker %q", word).WithFix("write one of %s", strings.Join(known, ", "))
}

// CallMessage reads a message whose text, or value, is a call.
func (in *File) CallMessage(v Value, i int, role rollout.Role, body Value) (rollout.Message, error) {
	m, err := in.Message(v, i, role, Value{})
	if err == nil {
		err = in.writtenCall(&m, body, i)
	}
	return m, err
}

// writtenCall reads a message's text as calls: an object with name and arguments (or
// parameters), or a list of such objects.
func (in *File) writtenCall(m *rollout.Message, body Value, i int) error {
	if s, ok := body.Text(); ok {
		v, err := in.Parse([]byte(s))
		if err != nil {
			return in.Fail(rollout.At(i), "/content", "the message is a call and its text no JSON: %s", err)
		}
		body = v
	}
	calls := []Value{body}
	if body.Kind() == jsonscan.Array {
		calls = Elements(body)
	}
	if len(calls) == 0 {
		return in.Fail(rollout.At(i), "/content", "the message is a call and its list of calls empty")
	}
	for k, x := range calls {
		c, err := in.toolCall(x, i, k)
		if err != nil {
			return err
		}
		if p := x.Get("parameters"); x.Get("arguments").Kind() == jsonscan.Absent && !p.IsNull() {
			SetArguments(&c, p)
			Drop(&c.Extra, "parameters")
		}
		m.ToolCalls = append(m.ToolCalls, c)
	}
	m.Content, m.Parts, m.NoContent = "", nil, true
	return nil
}

// AppendMessage appends a message. A call in a message of its own belongs to the reply
// directly before it: one reply has one end.
func AppendMessage(list []rollout.Message, m rollout.Message, word string) []rollout.Message {
	n := len(list) - 1
	if !slices.Contains(CallRoles, word) || n < 0 || list[n].Role != rollout.RoleAssistant || list[n].Sampled != m.Sampled {
		return append(list, m)
	}
	list[n].ToolCalls = append(list[n].ToolCalls, m.ToolCalls...)
	return list
}

// textKeys are keys under which other recorders keep the text of a message.
var textKeys = []string{"value", "text", "parts", "body", "message", "response", "output", "completion", "reply", "answer", "utterance", "audio", "generated_text", "output_text"}

// refuseUnread refuses a message from which nothing was read: one with text under an
// unknown key, and one that is empty unless an engine recorded it.
func (in *File) refuseUnread(m *rollout.Message, v, body Value, i int) error {
	if slices.Contains(CallRoles, FirstID(v, "role", "from")) {
		return nil // its text is read as a call
	}
	if !Silent(m) {
		return nil
	}
	says := func(x Value) bool {
		return x.Kind() == jsonscan.String && !x.Is("") || (x.Kind() == jsonscan.Array || x.Kind() == jsonscan.Object) && x.Len() > 0
	}
	refuse := func(key string) error {
		return in.Fail(rollout.At(i), "/"+key, "the message has no content, and the key %q is not understood", key)
	}
	for _, key := range textKeys {
		if x := v.Get(key); says(x) && x != body {
			return refuse(key)
		}
	}
	if body.Kind() != jsonscan.Absent || in.OfCall() {
		return nil
	}
	for key, x := range v.Members() {
		if _, left := m.Extra[key]; left && key != "from" && says(x) {
			return refuse(key)
		}
	}
	return in.Fail(rollout.At(i), "/content", "the message has no content: %s", Shape(v))
}

// Thinking returns the readable text of a thinking value: a text, a block with a text under
// thinking, text, summary or content, or a list of either. Blocks without text are
// encrypted.
func Thinking(v Value) (text string, ok bool) {
	if s, is := v.Text(); is {
		return s, true
	}
	if v.Kind() == jsonscan.Object {
		s := cmp.Or(v.Get("thinking").String(), v.Get("text").String(), v.Get("summary").String(), v.Get("content").String())
		return s, s != ""
	}
	if v.Kind() != jsonscan.Array {
		return "", false
	}
	var all []string
	for _, b := range v.Items() {
		s := cmp.Or(b.String(), b.Get("thinking").String(), b.Get("text").String(), b.Get("summary").String())
		if s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, ""), len(all) > 0
}

// reasoningDetails takes the reasoning of a message from its details, in OpenRouter's form,
// if no other key has it. Encrypted details have no text.
func (in *File) reasoningDetails(m *rollout.Message, v Value, at rollout.Index) {
	if v.IsNull() {
		return
	}
	text, _ := Thinking(v)
	for _, b := range v.Items() {
		if kind := b.Get("type").String(); strings.HasSuffix(kind, "encrypted") && text == "" && m.Reasoning == "" {
			k, _ := at.Get()
			in.NoteRedacted(k)
			break
		}
	}
	if m.Reasoning == "" {
		m.Reasoning = text
	}
	if m.Reasoning == "" && v.Len() > 0 {
		Keep(&m.Extra, "reasoning_details", v)
	}
}
