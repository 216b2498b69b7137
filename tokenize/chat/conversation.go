package chat

import (
	"slices"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
	"github.com/turnpack/turnpack/tokenize/internal/origin"
)

// Field is a place in a conversation.
type Field = origin.Field

// ConversationOptions configures NewConversation.
type ConversationOptions struct {
	// KeepNull keeps message keys whose value is null; transformers drops them
	// from the top level of each message.
	KeepNull bool
}

// Conversation is the data of a rendering, prepared as transformers prepares it: keys of a message whose value is
// null are dropped, and a message with reasoning gets the keys thinking (first) and reasoning_content (last). It is
// immutable and safe for concurrent use, with any number of templates and inputs.
type Conversation struct {
	messages         *value.List
	tools, documents value.Value
	opts             ConversationOptions
	linked           *linked
	size             int // total size of all texts in bytes, approximate

	// Both are nil unless Select made the conversation. numbers[i] is the number of the message at place i; place is
	// its inverse, with -1 for numbers that are not selected.
	numbers []int
	place   []int32
}

// NewConversation prepares messages, a list of objects. tools and documents are lists of objects or null. Values made
// by Recorded are shared rather than copied. Arguments of other types are a KindInput error.
func NewConversation(messages, tools, documents Value, opts ConversationOptions) (*Conversation, error) {
	list, ok := messages.v.(*value.List)
	if !ok {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "/messages"},
			"messages is a %s, want a list of objects", messages.get().TypeName())
	}
	for _, x := range []struct {
		name string
		v    value.Value
	}{{"/tools", tools.get()}, {"/documents", documents.get()}} {
		if err := listOfObjects(x.name, x.v); err != nil {
			return nil, err
		}
	}
	c := &Conversation{opts: opts}
	root := rootField("messages")
	items := make([]value.Value, len(list.Items))
	for i, m := range list.Items {
		var err error
		if items[i], err = newMessage(m, i, root, opts); err != nil {
			return nil, err
		}
	}
	c.size = sizeOf(list) + sizeOf(tools.get()) + sizeOf(documents.get())
	c.messages = &value.List{Items: items, F: root}
	c.tools = unlessLocated(tools.get(), "tools")
	c.documents = unlessLocated(documents.get(), "documents")
	c.linked = &linked{messages: items}
	return c, nil
}

// Select returns a conversation of some messages of c, each at most once, and of new messages between them. numbers
// gives them in order: i < c.Len() is message i of c, a larger i is more[i-c.Len()]. It serves contexts that show
// part of a long history: only the messages in more are prepared. A number that is out of range or repeated is a
// KindInput error, and so is a c that Select made. The conversation keeps the slice numbers.
//
// In its renderings Field.Message and Extent.Message are those numbers; every other index counts the selected
// messages.
func (c *Conversation) Select(numbers []int, more ...Value) (*Conversation, error) {
	if c.messages == nil {
		return nil, zero.Value("chat.Conversation", "NewConversation")
	}
	n := len(c.messages.Items)
	if c.numbers != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "/messages"}, "messages are selected from a selection, want the whole conversation")
	}
	s := *c
	s.numbers, s.place = numbers, make([]int32, n+len(more))
	for i := range s.place {
		s.place[i] = -1
	}
	items := make([]value.Value, len(numbers))
	for i, k := range s.numbers {
		if k < 0 || k >= len(s.place) || s.place[k] >= 0 {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "/messages"}, "message %d is selected, want each of %d at most once", k, len(s.place))
		}
		s.place[k] = int32(i)
		if k < n {
			items[i] = c.messages.Items[k]
			continue
		}
		var err error
		if items[i], err = newMessage(more[k-n].get(), k, c.messages.F, c.opts); err != nil {
			return nil, err
		}
		s.size += sizeOf(more[k-n].get())
	}
	s.messages = &value.List{Items: items, F: c.messages.F}
	s.linked = &linked{messages: items}
	return &s, nil
}

// Number returns the number of the message at place i. It is i unless Select made c.
func (c *Conversation) Number(i int) int {
	if c.numbers == nil {
		return i
	}
	return c.numbers[i]
}

// Place returns the place of the message with the given number, or a negative value if there is none: the inverse of
// Number.
func (c *Conversation) Place(number int) int {
	if c.numbers == nil || number < 0 {
		return number
	}
	return int(c.place[number])
}

// StartsLike reports whether c and o share their first n messages: the same values, not merely equal ones.
func (c *Conversation) StartsLike(o *Conversation, n int) bool {
	a, b := c.list().Items, o.list().Items
	return n <= len(a) && n <= len(b) && slices.Equal(a[:n], b[:n])
}

// list returns the messages, an empty list for a zero Conversation.
func (c *Conversation) list() *value.List {
	if c.messages == nil {
		return &value.List{}
	}
	return c.messages
}

// sizeOf returns roughly how many bytes of text a value holds.
func sizeOf(v value.Value) int {
	n := 8
	switch v := v.(type) {
	case *value.Str:
		n += len(v.S)
	case *value.List:
		for _, it := range v.Items {
			n += sizeOf(it)
		}
	case *value.Dict:
		for i := range v.Len() {
			key, _ := v.KeyString(i)
			n += len(key) + sizeOf(v.Val(i))
		}
	}
	return n
}

func listOfObjects(name string, v value.Value) error {
	switch l := v.(type) {
	case *value.None:
		return nil
	case *value.List:
		for _, it := range l.Items {
			if _, ok := it.(*value.Dict); !ok {
				return rollout.Errorf(rollout.KindInput, rollout.Where{Field: name}, "an item is a %s, want an object", it.TypeName())
			}
		}
		return nil
	}
	return rollout.Errorf(rollout.KindInput, rollout.Where{Field: name}, "value is a %s, want a list of objects or null", v.TypeName())
}

// Len returns the number of messages.
func (c *Conversation) Len() int { return len(c.list().Items) }

// Prefix returns the conversation of the first n messages, or of all if there are fewer. It shares its data and its
// Fields with c.
func (c *Conversation) Prefix(n int) *Conversation {
	p := *c
	all := c.list()
	n = min(max(n, 0), len(all.Items))
	p.messages = &value.List{Items: all.Items[:n:n], F: all.F}
	return &p
}

// Role returns the role of message i, or "" when it has none.
func (c *Conversation) Role(i int) string {
	if i < 0 || i >= c.Len() {
		return ""
	}
	d, _ := c.messages.Items[i].(*value.Dict)
	if s, ok := d.GetString("role").(*value.Str); ok {
		return s.S
	}
	return ""
}

// Has reports whether message i has a non-empty value under key.
func (c *Conversation) Has(i int, key string) bool {
	if i < 0 || i >= c.Len() {
		return false
	}
	d, _ := c.messages.Items[i].(*value.Dict)
	v := d.GetString(key)
	return v != nil && value.Truth(v)
}

func withoutNulls(d *value.Dict) *value.Dict {
	nulls := 0
	for i := range d.Len() {
		if _, ok := d.Val(i).(*value.None); ok {
			nulls++
		}
	}
	if nulls == 0 {
		return d
	}
	out := value.NewDict(d.Len() - nulls)
	for i := range d.Len() {
		if _, ok := d.Val(i).(*value.None); !ok {
			key, _ := d.KeyString(i)
			out.SetString(key, d.Val(i))
		}
	}
	return out
}

// aliasReasoning returns {"thinking": r, …, "reasoning_content": r}, where r is the first non-null reasoning field of
// the message. An existing thinking key keeps its value.
func aliasReasoning(d *value.Dict) *value.Dict {
	for _, name := range reasoningFields {
		r := d.GetString(name)
		if r == nil {
			continue
		}
		if _, none := r.(*value.None); none {
			continue
		}
		out := value.NewDict(d.Len() + 2)
		out.F, out.Message = d.F, d.Message
		out.SetString("thinking", r)
		for i := range d.Len() {
			out.CopyEntry(d, i)
		}
		out.SetString("reasoning_content", r)
		return out
	}
	return d
}

func rootField(name string) *Field {
	return origin.NewField(Field{Key: name, Index: -1, Message: -1})
}

// unlessLocated returns a copy of v, a list or null, or v itself if it already has a Field.
func unlessLocated(v value.Value, name string) value.Value {
	if list, ok := v.(*value.List); ok && list.F != nil {
		return v
	}
	return locate(v, rootField(name))
}

// locate returns a copy of v whose parts have their place in the input, f, as their Field.
func locate(v value.Value, f *Field) value.Value {
	switch v.(type) {
	case *value.None, *value.Bool, *value.Int, *value.Float:
		f.Scalar = true
	}
	switch v := v.(type) {
	case *value.None:
		return &value.None{F: f}
	case *value.Bool:
		return &value.Bool{V: v.V, F: f}
	case *value.Int:
		return &value.Int{V: v.V, Big: v.Big, F: f}
	case *value.Float:
		return &value.Float{V: v.V, Literal: v.Literal, F: f}
	case *value.Str:
		return &value.Str{S: v.S, F: f}
	case *value.List:
		out := &value.List{Items: make([]value.Value, len(v.Items)), F: f}
		for i, it := range v.Items {
			out.Items[i] = locate(it, origin.NewField(Field{Parent: f, Index: int32(i), Message: f.Message}))
		}
		return out
	case *value.Dict:
		return locateDict(v, f)
	}
	return v
}

func locateDict(d *value.Dict, f *Field) *value.Dict {
	out := value.NewDict(d.Len())
	out.F = f
	n := d.Len()
	keys, fields := make([]value.Str, n), make([]Field, 2*n) // fields of the values, then of the keys
	for i := range n {
		keys[i].S, _ = d.KeyString(i)
		at, key := &fields[i], &fields[n+i]
		*at = Field{Parent: f, Key: keys[i].S, Index: -1, Message: f.Message}
		*key = *at
		key.IsKey = true
		key.Place()
		at.Place()
		keys[i].F = key
		out.SetKey(&keys[i], locate(d.Val(i), at))
	}
	return out
}

// newMessage prepares message i.
func newMessage(m value.Value, i int, messages *Field, opts ConversationOptions) (value.Value, error) {
	src, ok := m.(*value.Dict)
	if !ok {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Message: rollout.At(i)}, "a message is a %s, want an object", m.TypeName())
	}
	if !opts.KeepNull {
		src = withoutNulls(src)
	}
	d := locateDict(src, origin.NewField(Field{Parent: messages, Index: int32(i), Message: int32(i)}))
	d.Message = int32(i) + 1
	return aliasReasoning(d), nil
}
