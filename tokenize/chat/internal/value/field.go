package value

import (
	"strconv"
	"strings"
)

// Field is a place in the input: a string, number or constant, or a dict key.
// Two bytes come from the same place exactly when their Field pointers are the
// same.
type Field struct {
	Parent *Field
	Key    string // of the parent dict, where Index < 0
	Index  int32  // in the parent list, or -1
	IsKey  bool   // the dict key itself, not its value
	Scalar bool   // a number, true, false or null rather than text
	Depth  uint16 // number of path elements: 3 for the fields of a message
	// Message is the index of the message this belongs to, or -1.
	Message int32
}

// Path returns the JSON pointer into {messages, tools, documents}; the suffix
// "#key" means the dict key itself.
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
