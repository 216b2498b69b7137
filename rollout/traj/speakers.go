package traj

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Chats and conversations call their speakers by many names. What is not in the
// table is refused: a template would write it as it is, which no model has seen, or
// leave it out.

var speakers = map[string]rollout.Role{
	"human": rollout.RoleUser, "user": rollout.RoleUser,
	"gpt": rollout.RoleAssistant, "assistant": rollout.RoleAssistant, "model": rollout.RoleAssistant, "chatgpt": rollout.RoleAssistant, "bing": rollout.RoleAssistant, "bard": rollout.RoleAssistant,
	"ai": rollout.RoleAssistant, "function_call": rollout.RoleAssistant, "tool_call": rollout.RoleAssistant,
	"system": rollout.RoleSystem, "developer": rollout.RoleDeveloper,
	"observation": rollout.RoleTool, "function": rollout.RoleTool, "tool": rollout.RoleTool, "function_response": rollout.RoleTool,
	"tool_response": rollout.RoleTool, "tool_result": rollout.RoleTool, "environment": rollout.RoleTool, "ipython": rollout.RoleTool,
	"exit": rollout.RoleExit,
}

// callRoles are the speakers whose text is a call, or a list of calls, as JSON.
var callRoles = []string{"function_call", "tool_call"}

// ofCall reports whether the format records what an engine was sent: any role is
// what the model saw.
func (j *fileReader) ofCall() bool { return j.imp != nil && contains(callFormats, j.imp.name) }

// speaker is the role that a word stands for.
func (j *fileReader) speaker(word string, i int, field string) (rollout.Role, error) {
	if role, ok := speakers[strings.ToLower(word)]; ok {
		if word == "function" && field == "/role" {
			return "function", nil // of the first calling API, told as such
		}
		return role, nil
	}
	known := make([]string, 0, len(speakers))
	for name := range speakers {
		known = append(known, name)
	}
	slices.Sort(known)
	w := j.where
	w.Message, w.Field = rollout.At(i), field
	return "", rollout.Errorf(rollout.KindInput, w, "unknown speaker %q", word).WithFix("write one of %s", strings.Join(known, ", "))
}

// callMessage reads a message whose text, or value, is a call.
func (j *fileReader) callMessage(v value, i int, role rollout.Role, body value) (rollout.Message, error) {
	m, err := j.message(v, i, role, value{})
	if err == nil {
		err = j.writtenCall(&m, body, i)
	}
	return m, err
}

// writtenCall makes calls of a message whose text they are: an object with name and
// arguments (or parameters), or a list of such.
func (j *fileReader) writtenCall(m *rollout.Message, body value, i int) error {
	if s, ok := body.Text(); ok {
		var d jsonscan.Doc
		v, err := d.Parse([]byte(s), jsonscan.Options{Depth: j.r.opt.Limits.Depth, NonFinite: true})
		if err != nil {
			return j.fail(rollout.At(i), "/content", "the message is a call and its text no JSON: %s", err)
		}
		body = v
	}
	calls := []value{body}
	if body.Kind() == jsonscan.Array {
		calls = calls[:0]
		for _, x := range body.Items() {
			calls = append(calls, x)
		}
	}
	if len(calls) == 0 {
		return j.fail(rollout.At(i), "/content", "the message is a call and its list of calls empty")
	}
	for k, x := range calls {
		c, err := j.toolCall(x, i, k)
		if err != nil {
			return err
		}
		if p := x.Get("parameters"); x.Get("arguments").Kind() == jsonscan.Absent && !p.IsNull() {
			setArguments(&c, p)
			drop(&c.Extra, "parameters")
		}
		m.ToolCalls = append(m.ToolCalls, c)
	}
	m.Content, m.Parts, m.NoContent = "", nil, true
	return nil
}

// said adds a message. A call in a message of its own is of the reply right before
// it: one reply has one end.
func said(list []rollout.Message, m rollout.Message, word string) []rollout.Message {
	n := len(list) - 1
	if !contains(callRoles, word) || n < 0 || list[n].Role != rollout.RoleAssistant || list[n].Sampled != m.Sampled {
		return append(list, m)
	}
	list[n].ToolCalls = append(list[n].ToolCalls, m.ToolCalls...)
	return list
}

// bodyOf is the text of a message under the first of the keys that it has.
func bodyOf(x value, keys ...string) value {
	for _, key := range keys {
		if b := x.Get(key); b.Kind() != jsonscan.Absent {
			return b
		}
	}
	return value{}
}

// textKeys are names under which other recorders keep what a message says.
var textKeys = []string{"value", "text", "parts", "body", "message", "response", "output", "completion", "reply", "answer", "utterance", "audio", "generated_text", "output_text"}

// understood refuses a message of which nothing was read although it says something
// under a key that is not known, and one that says nothing at all where no engine
// recorded it.
func (j *fileReader) understood(m *rollout.Message, v, body value, i int) error {
	if contains(callRoles, firstID(v, "role", "from")) {
		return nil // its text is read as a call
	}
	if m.Content != "" || len(m.Parts) > 0 || len(m.ToolCalls) > 0 || m.Reasoning != "" {
		return nil
	}
	says := func(x value) bool {
		return x.Kind() == jsonscan.String && !x.Is("") || (x.Kind() == jsonscan.Array || x.Kind() == jsonscan.Object) && x.Len() > 0
	}
	refuse := func(key string) error {
		return j.fail(rollout.At(i), "/"+key, "the message has no content, and the key %q is not understood", key)
	}
	for _, key := range textKeys {
		if x := v.Get(key); says(x) && x != body {
			return refuse(key)
		}
	}
	if body.Kind() != jsonscan.Absent || j.ofCall() {
		return nil
	}
	for key, x := range v.Members() {
		if _, left := m.Extra[key]; left && key != "from" && says(x) {
			return refuse(key)
		}
	}
	return j.fail(rollout.At(i), "/content", "the message has no content: %s", shape(v))
}

// thoughts is readable thinking: a text, a block that holds one under thinking, text,
// summary or content, or a list of either. Blocks without one are encrypted.
func thoughts(v value) (text string, ok bool) {
	if s, is := v.Text(); is {
		return s, true
	}
	if v.Kind() == jsonscan.Object {
		s := firstWord(v.Get("thinking").String(), v.Get("text").String(), v.Get("summary").String(), v.Get("content").String())
		return s, s != ""
	}
	if v.Kind() != jsonscan.Array {
		return "", false
	}
	var all []string
	for _, b := range v.Items() {
		s := firstWord(b.String(), b.Get("thinking").String(), b.Get("text").String(), b.Get("summary").String())
		if s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, ""), len(all) > 0
}

// details takes the reasoning of a message from its details, as OpenRouter writes
// them, where it stands nowhere else. Encrypted ones have no text.
func (j *fileReader) details(m *rollout.Message, v value, at rollout.Index) {
	if v.IsNull() {
		return
	}
	text, _ := thoughts(v)
	for _, b := range v.Items() {
		if kind := b.Get("type").String(); strings.HasSuffix(kind, "encrypted") && text == "" && m.Reasoning == "" {
			k, _ := at.Get()
			j.redacted(k)
			break
		}
	}
	if m.Reasoning == "" {
		m.Reasoning = text
	}
	if m.Reasoning == "" && v.Len() > 0 {
		keep(&m.Extra, "reasoning_details", v)
	}
}

// systemKeys are where a record keeps its system prompt beside the messages.
var systemKeys = []string{"system", "system_prompt", "instructions"}

// systemPrompt puts the system prompt that stands beside the messages before them,
// and reports whether it did. Where the messages begin with one, or the task repeats
// the text, they count; of several that differ the first one does.
func (j *fileReader) systemPrompt(r *rollout.Rollout, v value) (added bool, err error) {
	for _, key := range systemKeys {
		x := v.Get(key)
		if x.IsNull() || x.Is("") || x.Kind() == jsonscan.Array && x.Len() == 0 {
			continue
		}
		m := rollout.Message{Role: rollout.RoleSystem}
		if err := j.content(&m, x, 0); err != nil {
			w := j.where
			w.Field = "/" + key
			return false, rollout.Errorf(rollout.KindFormat, w, "found %s, expected the text of a system prompt", x.Kind()).WithFix("mend the field, or take the record out")
		}
		if plainParts(m.Parts) {
			m.Parts = nil
		}
		if len(r.Messages) == 0 {
			r.Messages, added = []rollout.Message{m}, true
			continue
		}
		switch first := &r.Messages[0]; {
		case first.Content == m.Content:
		case added:
			j.note("system_differs", 0, "the key %q holds another system prompt than a key read before it; the first counts", key)
		case first.Role == rollout.RoleSystem || first.Role == rollout.RoleDeveloper:
			j.note("system_differs", 0, "the key %q holds another system prompt than the messages begin with; the messages count", key)
		case key == "instructions" && first.Role == rollout.RoleUser && strings.Contains(first.Content, m.Content):
		default:
			r.Messages, added = slices.Insert(r.Messages, 0, m), true
		}
	}
	return added, nil
}

// mediaKeys are columns of pictures and sounds, with what stands for one in a text.
var mediaKeys = []struct{ key, mark string }{
	{"images", "<image>"}, {"image", "<image>"}, {"videos", "<video>"}, {"video", "<video>"}, {"audios", "<audio>"}, {"audio", "<audio>"},
}

// media refuses a record whose pictures or sounds stand in a column beside the
// messages: the text alone is not what the model saw.
func (j *fileReader) media(r *rollout.Rollout, v value) error {
	for _, c := range mediaKeys {
		x := v.Get(c.key)
		held := 0
		for _, item := range x.Items() {
			if !item.IsNull() && !(item.Kind() == jsonscan.Array && item.Len() == 0) {
				held++
			}
		}
		if x.IsNull() || x.Is("") || x.Kind() == jsonscan.Array && held == 0 {
			continue
		}
		for i := range r.Messages {
			if strings.Contains(r.Messages[i].Content, c.mark) {
				return j.fail(rollout.At(i), "/"+c.key, "the column %q holds what %s stands for, which is no text", c.key, c.mark)
			}
		}
		if x.Kind() == jsonscan.Array && strings.HasSuffix(c.key, "s") {
			return j.fail(0, "/"+c.key, "the column %q holds %d items that the model saw and that are no text", c.key, held)
		}
	}
	return nil
}

// emptyReplies notes sampled replies in which nothing is said: what would be trained
// of them is their end.
func (j *fileReader) emptyReplies(r *rollout.Rollout) {
	n, first := 0, 0
	for i := range r.Turns {
		m := &r.Messages[r.Turns[i].Message]
		if m.Content == "" && len(m.Parts) == 0 && len(m.ToolCalls) == 0 && m.Reasoning == "" && r.Turns[i].Output == nil {
			if n++; n == 1 {
				first = r.Turns[i].Message
			}
		}
	}
	if n > 0 {
		j.note("empty_reply", rollout.At(first), "%d replies are recorded as empty: what is trained of them is their end", n)
	}
}
