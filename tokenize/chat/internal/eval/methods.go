package eval

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

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
		v, fault := self.(*value.Dict).Get(&x.lim.Limits, a.pos[0])
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
		if !x.make(entrySize * self.(*value.Dict).Len()) {
			return undefined
		}
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
	keys, fault := value.Elements(&x.lim.Limits, p[0])
	x.fail(fault)
	d := value.NewDict(len(keys))
	for _, k := range keys {
		x.fail(d.Set(&x.lim.Limits, k, v))
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
	items, fault := value.Elements(&x.lim.Limits, p[0])
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
		if _, ok := self.(*value.Range); ok && len(a.pos) != 1 {
			return x.failf(value.Type, "range.index() takes exactly one argument (%d given)", len(a.pos))
		}
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
		if !x.make(3 * len(b.B)) {
			return undefined
		}
		return b.Made(strings.ToValidUTF8(b.B, "\uFFFD"))
	},
	"hex": func(x *exec, self value.Value, a args) value.Value {
		if _, ok := x.bind(a, "hex", 0); !ok {
			return undefined
		}
		b := self.(*value.Bytes)
		if !x.make(4 * len(b.B)) {
			return undefined
		}
		return b.Made(sprintf("%x", b.B))
	},
}
