package object

import (
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Namespace is the result of namespace(), the only object whose attributes a template can set.
type Namespace struct{ Attrs *value.Dict }

// TypeName implements value.Value.
func (n *Namespace) TypeName() string { return "Namespace" }

// Set sets an attribute.
func (n *Namespace) Set(x *rt.Context, name string, v value.Value) {
	if strings.HasPrefix(name, "_") {
		x.Failf(value.Security, "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '%s'. Please rename the attribute.", name)
		return
	}
	n.Attrs.SetString(name, v)
}

// Repr implements value.Reprer.
func (n *Namespace) Repr(t *value.Text, l *value.Limits, depth int) {
	t.Lit("<Namespace ")
	value.WriteRepr(t, l, n.Attrs, depth)
	t.Lit(">")
}

// NewNamespace implements namespace(…), which takes the arguments of dict().
func NewNamespace(x *rt.Context, a rt.Args) value.Value {
	d, ok := newDict(x, a).(*value.Dict)
	if !ok || x.Err != nil {
		return value.Stopped
	}
	for i := range d.Len() {
		if name, ok := d.KeyString(i); ok && strings.HasPrefix(name, "_") {
			(&Namespace{}).Set(x, name, nil)
			return value.Stopped
		}
	}
	return &Namespace{d}
}

// DictType is the global dict.
type DictType struct{}

// TypeName implements value.Value.
func (*DictType) TypeName() string { return "TemplateDict" }

// Call implements rt.Callable.
func (*DictType) Call(x *rt.Context, a rt.Args) value.Value { return newDict(x, a) }

// newDict implements dict(…).
func newDict(x *rt.Context, a rt.Args) value.Value {
	d := value.NewDict(len(a.Kw))
	if !x.Make(rt.ObjectSize + rt.EntrySize*len(a.Kw)) {
		return value.Stopped
	}
	if len(a.Pos) > 1 {
		return x.Failf(value.Type, "dict expected at most 1 argument, got %d", len(a.Pos))
	}
	if len(a.Pos) == 1 {
		switch src := a.Pos[0].(type) {
		case *value.Dict:
			if !x.Make(rt.EntrySize * src.Len()) {
				return value.Stopped
			}
			d = src.Clone(len(a.Kw))
			d.F = nil
		case *value.Undefined:
			return x.Fail(src.Use())
		default:
			for i, p := range x.Elements(a.Pos[0]) {
				if next, _ := value.Iterate(p); next == nil {
					return x.Failf(value.Type, "cannot convert dictionary update sequence element #%d to a sequence", i)
				}
				kv := value.Elements(x.Lim, p)
				if len(kv) != 2 {
					return x.Failf(value.Other, "dictionary update sequence element #%d has length %d; 2 is required", i, len(kv))
				}
				d.Set(x.Lim, kv[0], kv[1])
			}
		}
	}
	for _, k := range a.Kw {
		d.SetString(k.Name, k.V)
	}
	return d
}
