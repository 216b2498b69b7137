// Package object implements attributes, items, slices and the methods of Python's builtin types for the values of a
// template, within the limits of Jinja's immutable sandbox.
package object

import (
	"cmp"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// objectAttrs are names that every Python object has. The sandbox forbids them, so access is unsafe rather than
// undefined.
var objectAttrs = set("__class__ __init__ __doc__ __repr__ __str__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ " +
	"__hash__ __dir__ __getattribute__ __new__ __reduce__ __reduce_ex__ __setattr__ __delattr__ __sizeof__ " +
	"__subclasshook__ __init_subclass__ __format__ __getstate__")

// typeAttrs are further forbidden names, by type.
var typeAttrs = map[string]map[string]bool{
	"str":         set("__add__ __contains__ __getitem__ __getnewargs__ __iter__ __len__ __mod__ __mul__ __rmod__ __rmul__"),
	"list":        set("__add__ __contains__ __delitem__ __getitem__ __iadd__ __imul__ __iter__ __len__ __mul__ __reversed__ __rmul__ __setitem__ __class_getitem__"),
	"tuple":       set("__add__ __contains__ __getitem__ __getnewargs__ __iter__ __len__ __mul__ __rmul__ __class_getitem__"),
	"dict":        set("__contains__ __delitem__ __getitem__ __ior__ __iter__ __len__ __or__ __reversed__ __ror__ __setitem__ __class_getitem__"),
	"int":         set("__abs__ __add__ __and__ __bool__ __ceil__ __divmod__ __float__ __floor__ __floordiv__ __index__ __int__ __invert__ __mod__ __mul__ __neg__ __or__ __pos__ __pow__ __round__ __sub__ __truediv__ __trunc__"),
	"float":       set("__abs__ __add__ __bool__ __ceil__ __divmod__ __float__ __floor__ __floordiv__ __int__ __mod__ __mul__ __neg__ __pos__ __pow__ __round__ __sub__ __truediv__ __trunc__"),
	"bool":        set("__abs__ __add__ __and__ __bool__ __float__ __index__ __int__ __or__ __sub__"),
	"Undefined":   set("__add__ __bool__ __call__ __float__ __floordiv__ __getattr__ __getitem__ __int__ __iter__ __len__ __mod__ __mul__ __neg__ __pos__ __pow__ __sub__ __truediv__ __module__"),
	"NoneType":    set("__bool__"),
	"range":       set("__bool__ __contains__ __getitem__ __iter__ __len__ __reversed__"),
	"dict_keys":   set("__and__ __contains__ __iter__ __len__ __or__ __reversed__ __sub__ __xor__"),
	"dict_items":  set("__and__ __contains__ __iter__ __len__ __or__ __reversed__ __sub__ __xor__"),
	"dict_values": set("__iter__ __len__ __reversed__"),
	"Macro":       set("__call__ __dict__ __module__ __weakref__ _func _environment _argument_count _default_autoescape _invoke _async_invoke"),
	"LoopContext": set("__call__ __iter__ __next__ __len__ __dict__ __module__ __weakref__ _iterable _iterator _length _after _current _before _last_changed_value _undefined _recurse _peek_next _to_iterator"),
}

func set(names string) map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(names) {
		m[n] = true
	}
	return m
}

func unsafeAttr(v, name value.Value) value.Value {
	return &value.Undefined{Hint: "access to attribute " + value.ReprString(name) + " of '" + v.TypeName() + "' object is unsafe.", Obj: v, Name: name, Unsafe: true}
}

// Attrs is a value with its own attributes; Attr returns nil for an unknown name.
type Attrs interface{ Attr(name string) value.Value }

// Items is a value with named items that are not attributes.
type Items interface{ Item(name string) value.Value }

// attribute implements Python's getattr within the sandbox. It returns nil if there is no such attribute.
func attribute(x *rt.Context, v value.Value, name string, key value.Value) value.Value {
	if u, ok := v.(*value.Undefined); ok && !objectAttrs[name] && !typeAttrs["Undefined"][name] {
		return x.Fail(u.Use())
	}
	if strings.HasPrefix(name, "_") {
		ns, ok := v.(*Namespace)
		switch {
		case ok && (name == "__class__" || name == "_Namespace__attrs"):
			return unsafeAttr(v, key)
		case ok:
			return ns.Attrs.GetString(name)
		case objectAttrs[name] || typeAttrs[v.TypeName()][name]:
			return unsafeAttr(v, key)
		}
		return nil
	}
	if m := Method(x, v, name); m != nil {
		return &rt.Builtin{Fn: func(x *rt.Context, a rt.Args) value.Value { return m(x, v, a) }}
	}
	switch v := v.(type) {
	case *value.List:
		if mutators[name] && !v.Tuple {
			return unsafeAttr(v, key)
		}
		if i := slices.Index([]string{"grouper", "list"}, name); v.Group && i >= 0 {
			return v.Items[i]
		}
	case *value.Dict:
		if dictMutators[name] {
			return unsafeAttr(v, key)
		}
	case *Namespace:
		if r := v.Attrs.GetString(name); r != nil {
			return r
		}
	case Attrs:
		return v.Attr(name)
	case *value.Range:
		if n, ok := map[string]int64{"start": v.Start, "stop": v.Stop, "step": v.Step}[name]; ok {
			return value.Made(value.NewInt(n), v.F)
		}
	case *value.Int, *value.Bool:
		switch name {
		case "real", "numerator":
			return py.Plus(v)
		case "imag":
			return value.NewInt(0)
		case "denominator":
			return value.NewInt(1)
		}
	case *value.Float:
		switch name {
		case "real":
			return v
		case "imag":
			return &value.Float{}
		}
	}
	return nil
}

var (
	mutators     = set("append clear pop reverse insert sort extend remove")
	dictMutators = set("pop popitem setdefault update clear")
)

// Getattr implements the sandbox's a.b: the attribute or, if there is none, the item.
func Getattr(x *rt.Context, v value.Value, name string, key *value.Str) value.Value {
	if x.Err != nil {
		return value.Stopped
	}
	if r := attribute(x, v, name, key); r != nil {
		return r
	}
	switch d := v.(type) {
	case *value.Dict:
		if r := d.GetString(name); r != nil {
			return r
		}
	case Items:
		if r := d.Item(name); r != nil {
			return r
		}
	}
	return &value.Undefined{Obj: v, Name: key}
}

// Getitem implements the sandbox's a[b]: the item or, if there is none, the attribute.
func Getitem(x *rt.Context, v, key value.Value) value.Value {
	if x.Err != nil {
		return value.Stopped
	}
	switch c := v.(type) {
	case *value.Dict:
		if r := c.Get(x.Lim, key); r != nil {
			return r
		}
		x.Err = nil // a key that cannot be hashed is not there
	case *value.Undefined:
		return x.Fail(c.Use())
	case *value.Str:
		if n, ok := value.AsInt(key); ok {
			if s := py.Char(c, x.Lim, n); s != nil {
				return s
			}
		}
	case *value.List:
		if i, ok := index(key, len(c.Items)); ok {
			return c.Items[i]
		}
	case *value.Range:
		if i, ok := index(key, c.Len()); ok {
			return c.At(i)
		}
	case *value.Bytes:
		if i, ok := index(key, len(c.B)); ok {
			return c.At(i)
		}
	case Items:
		if s, ok := key.(*value.Str); ok {
			if r := c.Item(s.S); r != nil {
				return r
			}
		}
	}
	if s, ok := key.(*value.Str); ok {
		if r := attribute(x, v, s.S, s); r != nil {
			return r
		}
	}
	return &value.Undefined{Obj: v, Name: key}
}

func index(key value.Value, n int) (int, bool) {
	i, ok := value.AsInt(key)
	if !ok {
		return 0, false
	}
	if i < 0 {
		i += int64(n)
	}
	return int(i), i >= 0 && i < int64(n)
}

// AttributeOnly implements the filter attr: it returns the attribute, never the item.
func AttributeOnly(x *rt.Context, v value.Value, name *value.Str) value.Value {
	return cmp.Or(attribute(x, v, name.S, name), value.Value(&value.Undefined{Obj: v, Name: name}))
}
