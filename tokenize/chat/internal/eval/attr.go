package eval

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// objectAttrs are names every Python object has: the sandbox forbids them, so
// they are "unsafe" rather than missing.
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

func unsafe(v, name value.Value) value.Value {
	return &value.Undefined{Hint: "access to attribute " + value.ReprString(name) + " of '" + v.TypeName() + "' object is unsafe.", Obj: v, Name: name, Unsafe: true}
}

// attribute is Python's getattr behind the sandbox; nil when there is none.
func (x *exec) attribute(v value.Value, name string, key value.Value) value.Value {
	if strings.HasPrefix(name, "_") {
		ns, ok := v.(*Namespace)
		switch {
		case ok && (name == "__class__" || name == "_Namespace__attrs"):
			return unsafe(v, key)
		case ok:
			return traced(ns.attrs.GetString(name))
		case objectAttrs[name] || typeAttrs[v.TypeName()][name]:
			return unsafe(v, key)
		}
		return nil
	}
	if m := x.lib.method(v, name); m != nil {
		return &Func{Name: name, Fn: func(x *exec, a args) value.Value { return m(x, v, a) }}
	}
	switch v := v.(type) {
	case *value.List:
		if mutators[name] && !v.Tuple {
			return unsafe(v, key)
		}
		if v.Group {
			switch name {
			case "grouper":
				return v.Items[0]
			case "list":
				return v.Items[1]
			}
		}
	case *value.Dict:
		if dictMutators[name] {
			return unsafe(v, key)
		}
	case *Namespace:
		if r := traced(v.attrs.GetString(name)); r != nil {
			return r
		}
	case *Loop:
		if r := v.attr(name); r != nil {
			return r
		}
	case *Macro:
		return v.attr(name)
	case *Cycler:
		return v.attr(name)
	case *value.Range:
		switch name {
		case "start":
			return value.Made(value.NewInt(v.Start), v.F)
		case "stop":
			return value.Made(value.NewInt(v.Stop), v.F)
		case "step":
			return value.Made(value.NewInt(v.Step), v.F)
		}
	case *value.Int, *value.Bool:
		switch name {
		case "real", "numerator":
			return must2(value.Sign("+", v))
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

func must2(v value.Value, _ *value.Fault) value.Value { return v }

var (
	mutators     = set("append clear pop reverse insert sort extend remove")
	dictMutators = set("pop popitem setdefault update clear")
)

// getattr is the sandbox's a.b: the attribute, else the item.
func (x *exec) getattr(v value.Value, name string, key *value.Str) value.Value {
	if x.err != nil {
		return undefined
	}
	if l, ok := v.(*Loop); ok {
		if r := l.attr(name); r != nil {
			return r
		}
	}
	if u, ok := v.(*value.Undefined); ok {
		if objectAttrs[name] || typeAttrs["Undefined"][name] {
			return unsafe(v, key)
		}
		return x.fail(u.Use())
	}
	if r := x.attribute(v, name, key); r != nil {
		return r
	}
	switch d := v.(type) {
	case *value.Dict:
		if r := d.GetString(name); r != nil {
			return r
		}
	case *selfRef:
		if x.prog.blocks[name] != nil {
			return &blockRef{name}
		}
	}
	return &value.Undefined{Obj: v, Name: key}
}

// getitem is the sandbox's a[b]: the item, else the attribute.
func (x *exec) getitem(v, key value.Value) value.Value {
	if x.err != nil {
		return undefined
	}
	switch c := v.(type) {
	case *value.Dict:
		if r, _ := c.Get(key); r != nil {
			return r
		}
	case *value.Undefined:
		return x.fail(c.Use())
	case *value.Str:
		if n, ok := value.AsInt(key); ok {
			if s := c.Char(n); s != nil {
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
	case *selfRef:
		if s, ok := key.(*value.Str); ok && x.prog.blocks[s.S] != nil {
			return &blockRef{s.S}
		}
	}
	if s, ok := key.(*value.Str); ok {
		if r := x.attribute(v, s.S, s); r != nil {
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

func (m *Macro) attr(name string) value.Value {
	switch name {
	case "name":
		if m.code.name == "" {
			return value.Nil
		}
		return value.Lit(m.code.name)
	case "arguments":
		l := &value.List{Tuple: true}
		for _, p := range m.code.params {
			l.Items = append(l.Items, value.Lit(p.name))
		}
		return l
	case "catch_kwargs":
		return value.NewBool(m.code.kwargs >= 0)
	case "catch_varargs":
		return value.NewBool(m.code.varargs >= 0)
	case "caller":
		return value.NewBool(m.code.accessesCaller)
	case "explicit_caller":
		return value.NewBool(m.code.explicitCaller)
	}
	return nil
}

// methodFunc is a method of a builtin type.
type methodFunc func(x *exec, self value.Value, a args) value.Value

// method returns the method a name means on a value, or nil. Methods that
// would change the value are not here: the sandbox forbids them.
func (lib *library) method(v value.Value, name string) methodFunc {
	switch v := v.(type) {
	case *value.Str:
		return lib.str[name]
	case *value.Dict:
		return lib.dict[name]
	case *value.List:
		if name == "copy" && !v.Tuple {
			return listCopy
		}
		return lib.list[name]
	case *value.Range:
		return lib.list[name]
	case *value.Int, *value.Bool:
		return lib.int[name]
	case *value.Float:
		return lib.float[name]
	case *value.Bytes:
		return lib.bytes[name]
	case *dictType:
		if name == "fromkeys" {
			return lib.dict[name]
		}
	case *value.View:
		if name == "isdisjoint" && v.Kind != "dict_values" {
			return viewIsDisjoint
		}
	}
	return nil
}

// library holds all builtins. Code reaches it through the run, so that builtins
// can use each other.
type library struct {
	filters                            map[string]filterFunc
	tests                              map[string]testFunc
	globals                            map[string]value.Value
	str, dict, list, int, float, bytes map[string]methodFunc
}

var builtins = &library{
	filters: filters, tests: tests, globals: globals,
	str: strMethods, dict: dictMethods, list: listMethods,
	int: intMethods, float: floatMethods, bytes: bytesMethods,
}

// isDictAttr reports whether dicts have an attribute of this name.
func (lib *library) isDictAttr(name string) bool {
	return lib.dict[name] != nil || dictMutators[name]
}

var dictMethods = map[string]methodFunc{
	"items":  dictView("dict_items"),
	"keys":   dictView("dict_keys"),
	"values": dictView("dict_values"),
	"get": func(x *exec, self value.Value, a args) value.Value {
		if len(a.kw) > 0 || len(a.pos) == 0 || len(a.pos) > 2 {
			return x.failf(value.Type, "get expected 1 or 2 positional arguments, got %d", len(a.pos))
		}
		v, fault := self.(*value.Dict).Get(a.pos[0])
		switch {
		case fault != nil:
			return x.fail(fault)
		case v != nil:
			return v
		case len(a.pos) == 2:
			return a.pos[1]
		}
		return value.Nil
	},
	"copy": func(x *exec, self value.Value, a args) value.Value {
		x.bind(a, "copy", 0)
		return self.(*value.Dict).Clone(0)
	},
	"fromkeys": func(x *exec, _ value.Value, a args) value.Value { return x.fromKeys(a) },
}

func (x *exec) fromKeys(a args) value.Value {
	p, ok := x.bind(a, "fromkeys", 1, "iterable", "value")
	if !ok {
		return undefined
	}
	v := p[1]
	if v == nil {
		v = value.Nil
	}
	keys, fault := value.Elements(p[0], x.lim.Items)
	x.fail(fault)
	d := value.NewDict(len(keys))
	for _, k := range keys {
		x.fail(d.Set(k, v))
	}
	return d
}

func dictView(kind string) methodFunc {
	return func(x *exec, self value.Value, a args) value.Value {
		if len(a.pos)+len(a.kw) > 0 {
			return x.failf(value.Type, "%s takes no arguments (%d given)", kind, len(a.pos)+len(a.kw))
		}
		return &value.View{D: self.(*value.Dict), Kind: kind}
	}
}

func viewIsDisjoint(x *exec, self value.Value, a args) value.Value {
	p, ok := x.bind(a, "isdisjoint", 1, "other")
	if !ok {
		return undefined
	}
	items, fault := value.Elements(p[0], x.lim.Items)
	x.fail(fault)
	for _, it := range items {
		in, fault := value.Contains(&x.lim.Limits, self, it)
		x.fail(fault)
		if in || !x.step(1) {
			return value.False
		}
	}
	return value.True
}

var listMethods = map[string]methodFunc{
	"count": func(x *exec, self value.Value, a args) value.Value {
		p, ok := x.bind(a, "count", 1, "value")
		if !ok {
			return undefined
		}
		items, _ := elements(x, self)
		n := int64(0)
		for _, it := range items {
			eq, fault := value.Equal(&x.lim.Limits, it, p[0])
			x.fail(fault)
			if eq || value.Same(it, p[0]) {
				n++
			}
		}
		return value.NewInt(n)
	},
	"index": func(x *exec, self value.Value, a args) value.Value {
		p, ok := x.bind(a, "index", 1, "value", "start", "stop")
		if !ok {
			return undefined
		}
		items, _ := elements(x, self)
		first, n := value.SliceIndices(len(items), x.optInt(p[1]), x.optInt(p[2]), 1)
		for i := first; i < first+n && x.err == nil; i++ {
			eq, fault := value.Equal(&x.lim.Limits, items[i], p[0])
			x.fail(fault)
			if eq || value.Same(items[i], p[0]) {
				return value.NewInt(int64(i))
			}
		}
		return x.failf(value.Other, "%s is not in %s", value.ReprString(p[0]), self.TypeName())
	},
}

func listCopy(x *exec, self value.Value, a args) value.Value {
	x.bind(a, "copy", 0)
	return &value.List{Items: self.(*value.List).Items}
}

// elements is value.Elements with the limit of the run and the steps counted.
func elements(x *exec, v value.Value) ([]value.Value, bool) {
	items, fault := value.Elements(v, x.lim.Items)
	if fault != nil {
		x.fail(fault)
		return nil, false
	}
	return items, x.step(len(items))
}

var intMethods = map[string]methodFunc{
	"bit_length": func(x *exec, self value.Value, a args) value.Value {
		x.bind(a, "bit_length", 0)
		return value.Made(value.NewInt(int64(bigOf(self).BitLen())), value.Origin(self))
	},
	"bit_count": func(x *exec, self value.Value, a args) value.Value {
		x.bind(a, "bit_count", 0)
		ones := strings.Count(new(big.Int).Abs(bigOf(self)).Text(2), "1")
		return value.Made(value.NewInt(int64(ones)), value.Origin(self))
	},
	"conjugate": func(x *exec, self value.Value, a args) value.Value {
		x.bind(a, "conjugate", 0)
		return must2(value.Sign("+", self))
	},
	"as_integer_ratio": func(x *exec, self value.Value, a args) value.Value {
		x.bind(a, "as_integer_ratio", 0)
		return &value.List{Items: []value.Value{must2(value.Sign("+", self)), value.NewInt(1)}, Tuple: true}
	},
}

func bigOf(v value.Value) *big.Int {
	if i, ok := v.(*value.Int); ok {
		return i.BigInt()
	}
	i, _ := value.AsInt(v)
	return big.NewInt(i)
}

var floatMethods = map[string]methodFunc{
	"is_integer": func(x *exec, self value.Value, a args) value.Value {
		x.bind(a, "is_integer", 0)
		f := self.(*value.Float).V
		return value.NewBool(f == math.Trunc(f) && !math.IsInf(f, 0))
	},
	"conjugate": func(x *exec, self value.Value, a args) value.Value {
		x.bind(a, "conjugate", 0)
		return self
	},
	"as_integer_ratio": func(x *exec, self value.Value, a args) value.Value {
		x.bind(a, "as_integer_ratio", 0)
		f := self.(*value.Float)
		r := new(big.Rat).SetFloat64(f.V)
		if r == nil {
			return x.failf(value.Other, "cannot convert Infinity or NaN to integer ratio")
		}
		return &value.List{Items: []value.Value{value.Made(value.NewBig(r.Num()), f.F), value.Made(value.NewBig(r.Denom()), f.F)}, Tuple: true}
	},
	"hex": func(x *exec, self value.Value, a args) value.Value {
		x.bind(a, "hex", 0)
		f := self.(*value.Float)
		return value.Derived(hexFloat(f.V), f.F)
	},
}

func hexFloat(f float64) string {
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		return value.FormatFloat(f)
	case f == 0:
		return map[bool]string{true: "-0x0.0p+0", false: "0x0.0p+0"}[math.Signbit(f)]
	}
	s := strconv.FormatFloat(f, 'x', 13, 64)
	i := strings.IndexByte(s, 'p')
	return s[:i] + "p" + strings.Replace(strings.Replace(s[i+1:], "+0", "+", 1), "-0", "-", 1)
}

var bytesMethods = map[string]methodFunc{
	"decode": func(x *exec, self value.Value, a args) value.Value {
		if _, ok := x.bind(a, "decode", 0, "encoding", "errors"); !ok {
			return undefined
		}
		b := self.(*value.Bytes)
		return b.Made(strings.ToValidUTF8(b.B, "\uFFFD"))
	},
	"hex": func(x *exec, self value.Value, a args) value.Value {
		if _, ok := x.bind(a, "hex", 0); !ok {
			return undefined
		}
		b := self.(*value.Bytes)
		return b.Made(sprintf("%x", b.B))
	},
}

// optInt is an optional index; None and nil are open, and one beyond 64 bits is as
// good as the largest.
func (x *exec) optInt(v value.Value) *int64 {
	if isNone(v) {
		return nil
	}
	if !value.IsInt(v) {
		x.failf(value.Type, "slice indices must be integers or None or have an __index__ method")
		return nil
	}
	n, ok := value.AsInt(v)
	if !ok {
		n = int64(v.(*value.Int).Big.Sign()) * (1<<63 - 1)
	}
	return &n
}

// operandArg is an integer that a builtin of Jinja's computes with, so that an
// Undefined fails as Undefined.
func (x *exec) operandArg(v value.Value) (int64, bool) {
	if u, ok := v.(*value.Undefined); ok {
		x.fail(u.Use())
		return 0, false
	}
	return x.intArg(v)
}

// intArg is an integer that goes to a builtin of Python's, which takes an
// Undefined for any object that is no integer.
func (x *exec) intArg(v value.Value) (int64, bool) {
	if !value.IsInt(v) {
		x.failf(value.Type, "'%s' object cannot be interpreted as an integer", v.TypeName())
		return 0, false
	}
	n, ok := value.AsInt(v)
	if !ok {
		x.failf(value.Other, "Python int too large to convert to C ssize_t")
	}
	return n, ok
}

// noAttr is the failure of a builtin that uses an attribute its value lacks.
func (x *exec) noAttr(v value.Value, name string) value.Value {
	if u, ok := v.(*value.Undefined); ok {
		return x.fail(u.Use())
	}
	return x.failf(value.Other, "'%s' object has no attribute '%s'", v.TypeName(), name)
}

// strArg is a string argument.
func (x *exec) strArg(v value.Value) (*value.Str, bool) {
	if s, ok := v.(*value.Str); ok {
		return s, true
	}
	x.failf(value.Type, "expected str instance, %s found", v.TypeName())
	return nil, false
}
