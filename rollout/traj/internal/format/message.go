package format

import (
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// ChatMessage reads a message of the chat completions API.
func (in *File) ChatMessage(v Value, i int) (rollout.Message, error) {
	role := v.Get("role")
	if v.Kind() == jsonscan.Object && role.Kind() != jsonscan.String && role.Kind() != jsonscan.Absent {
		return rollout.Message{}, in.Want(role, rollout.At(i), "/role", "a string")
	}
	word, body := role.Word(), v.Get("content")
	if in.OfCall() || word == "" {
		return in.Message(v, i, rollout.Role(word), body)
	}
	r, err := in.Speaker(word, i, "/role")
	if err != nil {
		return rollout.Message{}, err
	}
	if slices.Contains(CallRoles, word) {
		return in.CallMessage(v, i, r, body)
	}
	return in.Message(v, i, r, body)
}

// Message reads a message whose role and content have names of their own in a format. Keys
// with a meaning in chats are read; all others go to Extra. Null values other than content
// are dropped: exports of tables write every key on every message.
func (in *File) Message(v Value, i int, role rollout.Role, body Value) (rollout.Message, error) {
	at := rollout.At(i)
	m := rollout.Message{Role: role}
	if v.Kind() != jsonscan.Object {
		return m, in.Want(v, at, "", "a message object")
	}
	if m.Role == "" {
		return m, in.Fail(at, "/role", "the message has no role")
	}
	if err := in.Content(&m, body, i); err != nil {
		return m, err
	}
	var kept dependentMembers
	for key, x := range v.Members() {
		if err := in.member(&m, &kept, key, x, i); err != nil {
			return m, err
		}
	}
	if m.Role == rollout.RoleAssistant {
		in.reasoningDetails(&m, kept.details, at)
		for _, x := range []Value{v.Get("thinking_blocks"), kept.provider.Get("reasoning_content"), kept.provider.Get("reasoning"), kept.provider.Get("thinking_blocks")} {
			if m.Reasoning == "" {
				m.Reasoning, _ = Thinking(x)
			}
		}
	} else if !kept.details.IsNull() {
		Keep(&m.Extra, "reasoning_details", kept.details)
	}
	if m.Role == "function" {
		m.Role = rollout.RoleTool
		KeepText(&m.Extra, "legacy", "function")
	}
	if kept.legacy.Kind() == jsonscan.Object && len(m.ToolCalls) == 0 {
		call, err := in.toolCall(kept.legacy, i, 0)
		if err != nil {
			return m, err
		}
		m.ToolCalls = []rollout.ToolCall{call}
		KeepText(&m.Extra, "legacy", "function_call")
	}
	if s, ok := kept.refusal.Text(); ok && s != "" {
		Keep(&m.Extra, "refusal", kept.refusal)
		in.Note("refusal", at, "the message is a refusal of %d bytes beside its content", len(s))
		return m, nil
	}
	return m, in.refuseUnread(&m, v, body, i)
}

// dependentMembers holds members of a message whose meaning depends on other members.
type dependentMembers struct {
	refusal, legacy, details, provider Value
}

// member reads one member of a message.
func (in *File) member(m *rollout.Message, kept *dependentMembers, key string, x Value, i int) error {
	switch key {
	case "role", "content":
	case "name":
		m.Name = x.String()
	case "tool_call_id":
		if m.ToolCallID = Identifier(x); m.ToolCallID == "" && x.Len() > 0 {
			Keep(&m.Extra, "tool_call_ids", x) // of several calls
		}
	case "tool_calls":
		return in.toolCalls(m, x, i)
	case "function_call":
		kept.legacy = x
	case "refusal":
		kept.refusal = x
	case "reasoning", "reasoning_content", "thinking":
		in.reasoning(m, key, x, i)
	case "reasoning_details":
		kept.details = x
	case "provider_specific_fields": // LiteLLM
		kept.provider = x
		fallthrough
	default:
		if !x.IsNull() {
			Keep(&m.Extra, key, x)
		}
	}
	return nil
}

func (in *File) toolCalls(m *rollout.Message, x Value, i int) (err error) {
	if x.Is("") { // from a table whose column cannot hold an object
		return nil
	}
	if x.Kind() == jsonscan.String {
		if x, err = in.ParseInner(x, "/tool_calls"); err != nil {
			return err
		}
	}
	m.ToolCalls = slices.Grow(m.ToolCalls, x.Len())
	for k, c := range x.Items() {
		call, err := in.toolCall(c, i, k)
		if err != nil {
			return err
		}
		m.ToolCalls = append(m.ToolCalls, call)
	}
	if !x.IsNull() && x.Kind() != jsonscan.Array {
		return in.Want(x, rollout.At(i), "/tool_calls", "a list")
	}
	return nil
}

// reasoning takes the reasoning from the first key that has a text; other texts are kept in
// Extra.
func (in *File) reasoning(m *rollout.Message, key string, x Value, i int) {
	s, ok := Thinking(x)
	switch {
	case ok && m.Reasoning == "":
		m.Reasoning = s
	case x.IsNull() || ok && s == m.Reasoning:
	case ok:
		Keep(&m.Extra, key, x)
	default:
		Keep(&m.Extra, "unread_"+key, x) // Extra has key itself only for a text
		in.Note("reasoning_unreadable", rollout.At(i), "the key %q holds %s without a text; it is kept aside, not rendered", key, x.Kind())
	}
}

// Content reads a content: string, null, or a list of parts.
func (in *File) Content(m *rollout.Message, v Value, i int) error {
	switch v.Kind() {
	case jsonscan.Null, jsonscan.Absent:
		m.NoContent = true
	case jsonscan.String:
		m.NoContent = false
		m.Content = in.Text(v, rollout.At(i), "/content")
	case jsonscan.Array:
		m.NoContent = false
		m.Parts = []rollout.Part{}
		for _, x := range v.Items() {
			p := rollout.Part{Raw: x.Clone()}
			switch x.Kind() {
			case jsonscan.String:
				p.Type, p.Text = "text", in.Text(x, rollout.At(i), "/content")
			case jsonscan.Object:
				p.Type = x.Get("type").Word()
				if p.Type == "" && !in.OfCall() {
					var err error
					if p, err = in.untyped(x, i); err != nil {
						return err
					}
				}
				if err := in.partText(&p, x, i); err != nil {
					return err
				}
			default:
				return in.Want(x, rollout.At(i), "/content", "a part: an object or a string")
			}
			m.Parts = append(m.Parts, p)
		}
		m.Content = rollout.JoinText(m.Parts)
	default:
		return in.Want(v, rollout.At(i), "/content", "a string, null or a list of parts")
	}
	return nil
}

// untyped reads a part without a type: if its only content is a text, it is a text part.
func (in *File) untyped(x Value, i int) (rollout.Part, error) {
	s, ok := x.Get("text").Text()
	for key, y := range x.Members() {
		if key != "text" && key != "type" && key != "cache_control" && key != "index" && !y.IsNull() {
			return rollout.Part{}, in.Fail(rollout.At(i), "/content/"+key, "a part of the content has the key %q and no type", key)
		}
	}
	if !ok {
		return rollout.Part{}, in.Fail(rollout.At(i), "/content", "a part of the content has neither a type nor a text: %s", Shape(x))
	}
	return textPart(s), nil
}

// partText reads the text of a text part; some recorders use the key content.
func (in *File) partText(p *rollout.Part, x Value, i int) error {
	if !p.IsText() {
		return nil
	}
	t := x.Get("text")
	if other := x.Get("content"); t.Kind() == jsonscan.Absent && other.Kind() == jsonscan.String {
		t = other
		p.Raw = renamed(x, "content", "text")
	}
	if t.Kind() == jsonscan.Absent {
		for key, y := range x.Members() {
			if y.Kind() == jsonscan.String && key != "type" && key != "id" {
				return in.Fail(rollout.At(i), "/content/"+key, "a part of type text has the key %q and no text", key)
			}
		}
	}
	if t.IsNull() {
		return nil
	}
	if t.Kind() != jsonscan.String {
		return in.Want(t, rollout.At(i), "/content/text", "a string")
	}
	p.Text = in.Text(t, rollout.At(i), "/content/text")
	return nil
}

// toolCall reads one call: name and arguments in a "function" object or on the call itself,
// arguments as text or as any JSON value.
func (in *File) toolCall(v Value, i, k int) (rollout.ToolCall, error) {
	v, err := in.ParseInner(v, "/tool_calls/"+strconv.Itoa(k)) // some writers store a call as a JSON string
	if err != nil {
		return rollout.ToolCall{}, err
	}
	c := rollout.ToolCall{ID: Identifier(v.Get("id"))}
	if v.Kind() != jsonscan.Object {
		return c, in.Want(v, rollout.At(i), "/tool_calls/"+strconv.Itoa(k), "an object")
	}
	f := v.Get("function")
	if f.Kind() != jsonscan.Object {
		f, c.Flat = v, true
	}
	name := f.Get("name")
	if s, ok := v.Get("function").Text(); ok && name.IsNull() {
		c.Name = s
	} else {
		c.Name = name.Word()
	}
	if c.Name == "" {
		return c, in.Fail(rollout.At(i), "/tool_calls/"+strconv.Itoa(k), "the tool call has no name")
	}
	arguments := f.Get("arguments")
	if arguments.Kind() == jsonscan.Absent {
		arguments = f.Get("args") // LangChain
	}
	SetArguments(&c, arguments)
	for key, x := range v.Members() {
		if key != "id" && key != "function" && !x.IsNull() && (!c.Flat || key != "name" && key != "arguments" && key != "args") {
			Keep(&c.Extra, key, x)
		}
	}
	return c, nil
}

// ChatMessages reads a list of messages.
func (in *File) ChatMessages(v Value, field string) []rollout.Message {
	in.Need(v, jsonscan.Array, 0, field, "a list of messages")
	out := make([]rollout.Message, 0, v.Len()+1) // a reply may follow
	for i, x := range v.Items() {
		m, err := in.ChatMessage(x, i)
		in.Wrong(err)
		out = AppendMessage(out, m, x.Get("role").Word())
	}
	return out
}

func textPart(s string) rollout.Part {
	var o Object
	o.Text("type", "text")
	o.Text("text", s)
	return rollout.Part{Type: "text", Text: s, Raw: o.End()}
}

// HoldsBlocks reports whether messages in the list have content blocks of the Messages API.
func HoldsBlocks(list Value) bool {
	for _, m := range list.Items() {
		for _, b := range m.Get("content").Items() {
			if kind := b.Get("type"); kind.Is("tool_use") || kind.Is("tool_result") || kind.Is("thinking") {
				return true
			}
		}
	}
	return false
}

// Blocks adds m with the given content, after the tool results among its blocks.
func (in *File) Blocks(r *rollout.Rollout, m rollout.Message, body Value) error {
	if body.Kind() != jsonscan.Array {
		if err := in.Content(&m, body, len(r.Messages)); err != nil {
			return err
		}
		r.Messages = append(r.Messages, m)
		return nil
	}
	m.NoContent = false
	results, plain := 0, true
	var thinking []string
	for _, b := range body.Items() {
		i := len(r.Messages)
		if b.Kind() != jsonscan.Object {
			return in.Want(b, rollout.At(i), "/content", "a block object")
		}
		switch kind := b.Get("type").Word(); kind {
		case "tool_result":
			results++
			t := rollout.Message{Role: rollout.RoleTool, ToolCallID: b.Get("tool_use_id").String()}
			if err := in.Content(&t, b.Get("content"), i); err != nil {
				return err
			}
			if b.Get("is_error").True() {
				Keep(&t.Extra, "is_error", b.Get("is_error"))
			}
			r.Messages = append(r.Messages, t)
		case "tool_use":
			c := rollout.ToolCall{ID: b.Get("id").String(), Name: b.Get("name").Word()}
			if c.Name == "" {
				return in.Fail(rollout.At(i), "/content", "the tool_use block has no name")
			}
			if b.Get("input").Kind() == jsonscan.Absent {
				return in.Want(b.Get("input"), rollout.At(i), "/content/input", "the input of the tool_use block")
			}
			SetArguments(&c, b.Get("input"))
			same := func(o rollout.ToolCall) bool { return o.ID != "" && o.ID == c.ID }
			if k := slices.IndexFunc(m.ToolCalls, same); k >= 0 {
				m.ToolCalls[k] = c // some recorders write calls both ways
			} else {
				m.ToolCalls = append(m.ToolCalls, c)
			}
		case "thinking":
			s, ok := b.Get("thinking").Text()
			if b.Get("thinking").Kind() == jsonscan.Array { // a list of texts, as in Mistral's API
				s, ok = Thinking(b.Get("thinking"))
			}
			if !ok && !b.Get("thinking").IsNull() || b.Get("thinking").Kind() == jsonscan.Absent {
				return in.Want(b.Get("thinking"), rollout.At(i), "/content/thinking", "the text of the thinking block")
			}
			thinking = append(thinking, s)
		case "redacted_thinking":
			in.NoteRedacted(i)
		default:
			p := rollout.Part{Type: kind, Raw: b.Clone()}
			if err := in.partText(&p, b, i); err != nil {
				return err
			}
			plain = plain && p.IsText()
			m.Parts = append(m.Parts, p)
		}
	}
	if thinking != nil {
		m.Reasoning = strings.Join(thinking, "\n")
	}
	m.Content = rollout.JoinText(m.Parts)
	if plain && m.Role == rollout.RoleAssistant {
		m.Parts = nil // templates expect the text of a reply, not a list of blocks
	}
	if results == 0 || m.Parts != nil || m.Content != "" || m.Reasoning != "" || len(m.ToolCalls) > 0 {
		r.Messages = append(r.Messages, m)
	}
	return nil
}
