package format

import (
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// AddItem adds one model item of the Responses API (reasoning, message, function_call) to
// an assistant message, and reports whether it is one.
func (in *File) AddItem(m *rollout.Message, item Value, i int) (bool, error) {
	switch kind := item.Get("type"); {
	case kind.Is("reasoning"):
		for _, key := range []string{"summary", "content"} {
			for _, x := range item.Get(key).Items() {
				if x.Kind() == jsonscan.Object && x.Get("text").Kind() != jsonscan.String {
					return true, in.Want(x.Get("text"), rollout.At(i), "/"+key+"/text", "the text of the reasoning")
				}
			}
		}
		m.Reasoning += Summary(item)
	case kind.Is("function_call") || kind.Is("custom_tool_call"):
		c := rollout.ToolCall{ID: FirstID(item, "call_id", "id"), Name: item.Get("name").Word()}
		if c.Name == "" {
			return true, in.Fail(rollout.At(i), "/name", "the function call has no name")
		}
		arguments := item.Get("arguments")
		if kind.Is("custom_tool_call") {
			arguments = item.Get("input") // free text
		}
		SetArguments(&c, arguments)
		m.ToolCalls = append(m.ToolCalls, c)
	case kind.Is("message") || kind.Kind() == jsonscan.Absent && item.Get("role").Kind() == jsonscan.String:
		var one rollout.Message
		if err := in.Content(&one, item.Get("content"), i); err != nil {
			return true, err
		}
		if PlainParts(one.Parts) && m.Parts == nil {
			m.Content, m.NoContent = m.Content+one.Content, false
		} else {
			AddParts(m, one.Parts...)
		}
	case isCall(kind.String()): // a tool run by the server: no template can render the call
		AddParts(m, rollout.Part{Type: kind.String(), Raw: item.Clone()})
	default:
		return false, nil
	}
	return true, nil
}

// isCall reports whether items of this kind are calls by the model.
func isCall(kind string) bool { return strings.HasSuffix(kind, "_call") }

// AddParts appends parts to a content, which may be a text so far.
func AddParts(m *rollout.Message, more ...rollout.Part) {
	if m.Parts == nil && m.Content != "" {
		m.Parts = []rollout.Part{textPart(m.Content)}
	}
	m.Parts = append(m.Parts, more...)
	m.Content, m.NoContent = rollout.JoinText(m.Parts), false
}

// AddText appends a text to a content as a separate part.
func AddText(m *rollout.Message, text string) { AddParts(m, textPart(text)) }

// ResponseEnd returns why the model stopped.
func ResponseEnd(response Value) string {
	return cmp.Or(response.Path("incomplete_details", "reason").String(), response.Get("status").String())
}

// ResponseStatus returns how a response of the Responses API ended.
func ResponseStatus(word string) rollout.Status {
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

// PlainParts reports whether a list of parts is nothing but text.
func PlainParts(parts []rollout.Part) bool {
	for _, p := range parts {
		if !p.IsText() {
			return false
		}
	}
	return true
}

// Summary returns the readable text of a reasoning item, "" if it is encrypted.
func Summary(item Value) string {
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

// ResponseMessage makes one assistant message from the items of one response.
func (in *File) ResponseMessage(items Value, i int) (rollout.Message, error) {
	m := rollout.Message{Role: rollout.RoleAssistant}
	if items.Kind() != jsonscan.Array {
		return m, in.Want(items, rollout.At(i), "/output", "a list of items")
	}
	for _, item := range items.Items() {
		known, err := in.AddItem(&m, item, i)
		if err != nil {
			return m, err
		}
		if kind := item.Get("type").String(); !known {
			in.Note("item_unknown", rollout.At(i), "an item of type %q was left in the dump", kind)
			if kind != "mcp_list_tools" && kind != "" { // other model items become parts, which no template renders
				AddParts(&m, rollout.Part{Type: kind, Raw: item.Clone()})
			}
		}
	}
	return m, nil
}

// Items converts a flat list of Responses items to messages. A model turn is a run of model
// items. A new turn begins when the order of kinds (reasoning, message, function_call) goes
// back, when a message follows a message, or when a second item has token fields, since
// only one item of a turn does.
type Items struct {
	File    *File
	Rollout *rollout.Rollout // receives the messages and turns
	Sampled rollout.Sampled  // for the following model items
	Open    bool             // the last message is a model turn that may get more items
	Left    int              // number of items that were not read
	Kind    string           // kind of the last item not read
	rank    int
	tokens  bool // the open turn already has token fields
}

// IsItem reports whether v is an item of the Responses API that cannot be a chat message.
func IsItem(v Value) bool {
	kind := v.Get("type").String()
	switch kind {
	case "message":
		return v.Get("role").Kind() == jsonscan.String && v.Get("content").Kind() == jsonscan.Array && v.Get("tool_calls").Kind() == jsonscan.Absent
	case "reasoning":
		return v.Get("role").Kind() == jsonscan.Absent && (v.Get("summary").Kind() == jsonscan.Array || v.Get("content").Kind() == jsonscan.Array)
	}
	return v.Get("role").Kind() == jsonscan.Absent && (isCall(kind) || strings.HasSuffix(kind, "_call_output"))
}

// Add adds the next item.
func (x *Items) Add(item Value) {
	i := len(x.Rollout.Messages)
	if x.File.Need(item, jsonscan.Object, rollout.At(i), "/output", "an item object"); x.File.Broken() {
		return
	}
	kind := item.Get("type").String()
	role := item.Get("role").String()
	rank := 0
	switch {
	case kind == "function_call_output" || kind == "custom_tool_call_output":
		id, output := item.Get("call_id"), item.Get("output")
		if output.Kind() == jsonscan.Absent {
			x.File.Wrong(x.File.Want(output, rollout.At(i), "/output", "the output of a call"))
		}
		if id.String() == "" {
			x.File.Wrong(x.File.Want(id, rollout.At(i), "/call_id", "the id of the call"))
		}
		x.say(rollout.Message{Role: rollout.RoleTool, ToolCallID: id.String()}, output)
		return
	case kind == "reasoning":
	case isCall(kind):
		rank = 2
	case role == "assistant":
		rank = 1
	case role != "" && (kind == "message" || kind == ""):
		x.say(rollout.Message{Role: rollout.Role(role)}, item.Get("content"))
		return
	default:
		x.Open = x.Open && !strings.HasSuffix(kind, "_output") // results end a turn
		x.File.Note("item_unknown", rollout.At(i), "an item of type %q was left in the dump", kind)
		x.Left, x.Kind = x.Left+1, kind
		return
	}
	tok := tokensOf(item, 0)
	if !x.Open || rank < x.rank || rank == 1 && x.rank == 1 || tok.Present && x.tokens {
		x.begin()
	}
	x.rank = rank
	last := len(x.Rollout.Messages) - 1
	if known, err := x.File.AddItem(&x.Rollout.Messages[last], item, last); err != nil {
		x.File.Wrong(err)
	} else if !known {
		x.File.Note("item_unknown", rollout.At(last), "an item of type %q was left in the dump", kind)
		x.Left, x.Kind = x.Left+1, kind
	}
	if tok.Present && x.Sampled == rollout.SampledByPolicy {
		x.tokens = true
		x.File.takeTokens(&x.Rollout.Turns[len(x.Rollout.Turns)-1], tok, last)
	}
}

// say adds a message that is no reply.
func (x *Items) say(m rollout.Message, body Value) {
	x.Open = false
	x.File.Wrong(x.File.Content(&m, body, len(x.Rollout.Messages)))
	if !x.File.Broken() {
		x.Rollout.Messages = append(x.Rollout.Messages, m)
	}
}

func (x *Items) begin() {
	x.Open, x.rank, x.tokens = true, 0, false
	x.Rollout.Messages = append(x.Rollout.Messages, rollout.Message{Role: rollout.RoleAssistant, Sampled: x.Sampled})
	if x.Sampled == rollout.SampledByPolicy {
		t := rollout.Turn{Message: len(x.Rollout.Messages) - 1, Step: len(x.Rollout.Turns)}
		t.Context.Unknown = x.Left > 0 // the model saw the items that were not read
		x.Rollout.Turns = append(x.Rollout.Turns, t)
	}
}

// AddRequest adds the request: instructions, and input as a text or as items.
func (x *Items) AddRequest(params Value) {
	if s, ok := params.Get("instructions").Text(); ok && s != "" {
		x.Rollout.Messages = append(x.Rollout.Messages, rollout.Message{Role: rollout.RoleSystem, Content: s})
	}
	switch input := params.Get("input"); input.Kind() {
	case jsonscan.String:
		x.Rollout.Messages = append(x.Rollout.Messages, rollout.Message{Role: rollout.RoleUser, Content: x.File.Text(input, rollout.At(len(x.Rollout.Messages)), "/input")})
	case jsonscan.Array:
		for _, item := range input.Items() {
			x.Add(item)
		}
	case jsonscan.Null, jsonscan.Absent:
	default:
		x.File.Wrong(x.File.Want(input, 0, "/input", "a string or a list of items"))
	}
}
