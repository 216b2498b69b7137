package origin

import (
	"strconv"
	"strings"
)

// Field is a place in the input: a string, number or constant, or a dict key. Two bytes come from
// the same place exactly if their Field pointers are equal.
type Field struct {
	Parent *Field
	Key    string // key in the parent dict, if Index < 0
	Index  int32  // in the parent list, or -1
	// Message is the index of the message that the place belongs to, or -1.
	Message int32
	Call    uint16 // for PartToolCalls: the index of the call in the message
	Part    Part
	IsKey   bool // the dict key itself, not its value
	Scalar  bool // a number, true, false or null, not text
}

// Part says which part of its message a Field belongs to.
type Part uint8

const (
	PartOther     Part = iota // names, ids of results, keys of the message, and places outside messages
	PartRole                  // the role and its key
	PartContent               // everything under "content"
	PartReasoning             // everything under "reasoning_content", "reasoning" or "thinking"
	PartToolCalls             // everything under "tool_calls"
)

// PartOf returns the part for a key of a message.
func PartOf(key string) Part {
	switch key {
	case "role":
		return PartRole
	case "content":
		return PartContent
	case "reasoning_content", "thinking", "reasoning":
		return PartReasoning
	case "tool_calls":
		return PartToolCalls
	}
	return PartOther
}

// NewField returns a copy of f with its Part and Call set.
func NewField(f Field) *Field {
	f.Place()
	return &f
}

// Place sets Part and Call from the parents: the lists of the input, their items, and the keys of
// these.
func (f *Field) Place() {
	up := f.Parent
	switch {
	case up == nil || up.Parent == nil:
	case up.Parent.Parent == nil:
		if p := PartOf(f.Key); f.Message >= 0 && (p == PartRole || !f.IsKey) {
			f.Part = p
		}
	default:
		f.Part, f.Call = up.Part, up.Call
		if up.Parent.Parent.Parent == nil && f.Part == PartToolCalls {
			f.Call = uint16(max(0, f.Index))
		}
	}
}

// Path returns the JSON pointer into {messages, tools, documents}; the suffix "#key" means the dict
// key itself.
func (f *Field) Path() string {
	if f == nil {
		return ""
	}
	var b strings.Builder
	f.writePath(&b)
	if f.IsKey {
		b.WriteString("#key")
	}
	return b.String()
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func (f *Field) writePath(b *strings.Builder) {
	if f.Parent != nil {
		f.Parent.writePath(b)
	}
	b.WriteByte('/')
	if f.Index >= 0 {
		b.WriteString(strconv.Itoa(int(f.Index)))
		return
	}
	_, _ = pointerEscaper.WriteString(b, f.Key)
}

// Elements returns the unescaped path elements, outermost first.
func (f *Field) Elements() []string {
	if f == nil {
		return nil
	}
	e := f.Key
	if f.Index >= 0 {
		e = strconv.Itoa(int(f.Index))
	}
	return append(f.Parent.Elements(), e)
}
