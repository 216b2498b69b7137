package engine

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// member is one member of a JSON object.
type member struct {
	key   string
	value []byte // nil = the member goes
}

// edit returns a JSON object with members set where they stand, those that are not there
// at the front, and without those set to nil. Values that stay keep their bytes.
func edit(v jsonscan.Value, text []byte, set []member) []byte {
	out := append(make([]byte, 0, len(v.Raw())+128), '{')
	for _, m := range set {
		if m.value != nil && v.Get(m.key).Kind() == jsonscan.Absent {
			out = appendMember(out, m)
		}
	}
	return appendObject(out, v, text, func(out []byte, key, x jsonscan.Value) ([]byte, bool) {
		for _, m := range set {
			if key.Is(m.key) {
				return append(out, m.value...), m.value != nil
			}
		}
		return append(out, x.Raw()...), true
	})
}

// appendObject appends the members of an object to one that is open, and closes it. value
// appends a value, or says that the member goes.
func appendObject(out []byte, v jsonscan.Value, text []byte, value func(out []byte, key, x jsonscan.Value) ([]byte, bool)) []byte {
	for k, x := range v.Fields() {
		before := len(out)
		if out[before-1] != '{' {
			out = append(out, ',')
		}
		out = append(out, text[k.Offset():x.Offset()]...)
		var keep bool
		if out, keep = value(out, k, x); !keep {
			out = out[:before]
		}
	}
	return append(out, '}')
}

// strip appends the engine's own words to dst, of length 0, without what the client did not
// ask for; nothing where nothing is left. reply are the members of v.
func (r *Request) strip(dst []byte, v jsonscan.Value, reply *members, text []byte, stream bool) []byte {
	usage := r.KeepUsage || !stream
	if !usage && reply.choices.Len() == 0 && !reply.usage.IsNull() {
		return dst
	}
	if cap(dst) == 0 {
		dst = make([]byte, 0, 4<<10)
	}
	cut := cutter{out: append(dst, '{'), text: text}
	for k, x := range v.Fields() {
		switch string(k.Key()) {
		case "prompt_token_ids":
			cut.member(k, x, r.KeepIDs)
		case "usage":
			cut.member(k, x, usage)
		case "choices":
			if x.Kind() != jsonscan.Array {
				cut.member(k, x, true)
				continue
			}
			cut.replace(k, x, "[")
			for i, c := range x.Items() {
				if i > 0 {
					cut.out = append(cut.out, ',')
				}
				if c.Kind() == jsonscan.Object {
					r.stripChoice(&cut, c)
				} else {
					cut.out = append(cut.out, c.Raw()...)
				}
			}
			cut.out = append(cut.out, ']')
		default:
			cut.member(k, x, true)
		}
	}
	return cut.close()
}

func (r *Request) stripChoice(outer *cutter, v jsonscan.Value) {
	cut := cutter{out: append(outer.out, '{'), text: outer.text}
	for k, x := range v.Fields() {
		switch string(k.Key()) {
		case "token_ids", "prompt_token_ids":
			cut.member(k, x, r.KeepIDs)
		case "meta_info":
			cut.member(k, x, false)
		case "logprobs":
			if !r.KeepLogprobs {
				cut.replace(k, x, "null")
				continue
			}
			cut.member(k, x, true)
		default:
			cut.member(k, x, true)
		}
	}
	outer.out = cut.close()
}

// cutter copies the members of an object, those that stay side by side at once.
type cutter struct {
	out, text []byte
	from, to  int // of the text, to be copied
}

func (c *cutter) flush() {
	if c.to > c.from {
		if c.out[len(c.out)-1] != '{' {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, c.text[c.from:c.to]...)
	}
	c.from, c.to = 0, 0
}

func (c *cutter) member(key, value jsonscan.Value, keep bool) {
	switch {
	case !keep:
		c.flush()
	case c.to == 0:
		c.from = key.Offset()
		fallthrough
	default:
		c.to = value.Offset() + value.Size()
	}
}

// replace keeps the key of a member, and puts another value in place of its own.
func (c *cutter) replace(key, value jsonscan.Value, by string) {
	if c.to == 0 {
		c.from = key.Offset()
	}
	c.to = value.Offset()
	c.flush()
	c.out = append(c.out, by...)
}

func (c *cutter) close() []byte {
	c.flush()
	return append(c.out, '}')
}

func appendMember(out []byte, m member) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	key, _ := json.Marshal(m.key)
	return append(append(append(out, key...), ':'), m.value...)
}

// object writes members in the order given.
func object(set []member) []byte {
	out := []byte{'{'}
	for _, m := range set {
		if m.value != nil {
			out = appendMember(out, m)
		}
	}
	return append(out, '}')
}

// withFields adds the fields that are not in set, by name.
func withFields(set []member, fields map[string]json.RawMessage, leave func(string) bool) []member {
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if !leave(k) && !slices.ContainsFunc(set, func(m member) bool { return m.key == k }) {
			set = append(set, member{k, fields[k]})
		}
	}
	return set
}

// AppendMessages appends messages as chat completions have them.
func AppendMessages(dst []byte, messages []rollout.Message) []byte {
	dst = append(dst, '[')
	for i := range messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendMessage(dst, &messages[i])
	}
	return append(dst, ']')
}

func appendMessage(dst []byte, m *rollout.Message) []byte {
	set := []member{{"role", quote(string(m.Role))}}
	switch {
	case m.Parts != nil:
		var list bytes.Buffer
		list.WriteByte('[')
		for i, p := range m.Parts {
			if i > 0 {
				list.WriteByte(',')
			}
			if p.Raw != nil {
				list.Write(p.Raw)
			} else {
				list.Write(object([]member{{"type", quote(p.Type)}, {"text", quote(p.Text)}}))
			}
		}
		list.WriteByte(']')
		set = append(set, member{"content", list.Bytes()})
	case m.NoContent:
		set = append(set, member{"content", []byte("null")})
	default:
		set = append(set, member{"content", quote(m.Content)})
	}
	if m.Name != "" {
		set = append(set, member{"name", quote(m.Name)})
	}
	if m.Reasoning != "" {
		// Each engine reads one of the two names.
		set = append(set, member{"reasoning", quote(m.Reasoning)}, member{"reasoning_content", quote(m.Reasoning)})
	}
	if len(m.ToolCalls) > 0 {
		list := []byte{'['}
		for i := range m.ToolCalls {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, appendCall(nil, &m.ToolCalls[i])...)
		}
		set = append(set, member{"tool_calls", append(list, ']')})
	}
	if m.ToolCallID != "" {
		set = append(set, member{"tool_call_id", quote(m.ToolCallID)})
	}
	return append(dst, object(withFields(set, m.Extra, func(k string) bool { return k == "reasoning" || k == "reasoning_content" }))...)
}

// appendCall appends a tool call as chat completions have it.
func appendCall(dst []byte, c *rollout.ToolCall) []byte {
	arguments := c.Arguments
	if arguments == "" {
		arguments = "{}"
	}
	return append(dst, object([]member{
		{"id", quote(c.ID)}, {"type", []byte(`"function"`)},
		{"function", object([]member{{"name", quote(c.Name)}, {"arguments", quote(arguments)}})},
	})...)
}

// quote writes a string as JSON, with <, > and & as they are.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string has no errors
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

func list[T any](items []T) []byte {
	b, _ := json.Marshal(items) // ids and raw values that were parsed
	return b
}
