package object

import (
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Method returns the method of v with the given name, or nil. It knows no mutating methods, which the sandbox
// forbids.
func Method(x *rt.Context, v value.Value, name string) rt.Func {
	switch v := v.(type) {
	case *value.Str:
		return x.Lib.Str[name]
	case *value.Dict:
		return x.Lib.Dict[name]
	case *value.List:
		if name == "copy" && !v.Tuple {
			return listCopy
		}
		return x.Lib.List[name]
	case *value.Range:
		return x.Lib.List[name]
	case *value.Int, *value.Bool:
		return x.Lib.Int[name]
	case *value.Float:
		return x.Lib.Float[name]
	case *value.Bytes:
		return x.Lib.Bytes[name]
	case *DictType:
		if name == "fromkeys" {
			return x.Lib.Dict[name]
		}
	case *value.View:
		if name == "isdisjoint" && v.Kind != "dict_values" {
			return viewIsDisjoint
		}
	}
	return nil
}

// IsDictAttr reports whether dicts have an attribute of this name.
func IsDictAttr(name string) bool { return DictMethods[name] != nil || dictMutators[name] }

// on declares a method of one type of values.
func on[T value.Value](sig string, f func(x *rt.Context, self T, p rt.Params) value.Value) rt.Func {
	return rt.Def(sig, func(x *rt.Context, self value.Value, p rt.Params) value.Value { return f(x, self.(T), p) })
}

// DictMethods are the methods of dict. A new method is a new entry in the table of its type, as with filters.
var DictMethods = map[string]rt.Func{
	"items":  dictView("dict_items"),
	"keys":   dictView("dict_keys"),
	"values": dictView("dict_values"),
	"get": on("get(key, default=, /)", func(x *rt.Context, d *value.Dict, p rt.Params) value.Value {
		if v := d.Get(x.Lim, p[0]); v != nil {
			return v
		}
		if p[1] != nil {
			return p[1]
		}
		return value.Nil
	}),
	"copy": on("copy()", func(x *rt.Context, d *value.Dict, _ rt.Params) value.Value {
		if !x.Make(rt.EntrySize * d.Len()) {
			return value.Stopped
		}
		return d.Clone(0)
	}),
	"fromkeys": rt.Def("fromkeys(iterable, value=)", func(x *rt.Context, _ value.Value, p rt.Params) value.Value {
		if p[1] == nil {
			p[1] = value.Nil
		}
		keys := value.Elements(x.Lim, p[0])
		d := value.NewDict(len(keys))
		for _, k := range keys {
			d.Set(x.Lim, k, p[1])
		}
		return d
	}),
}

func dictView(kind string) rt.Func {
	return on(kind+"()", func(_ *rt.Context, d *value.Dict, _ rt.Params) value.Value { return &value.View{D: d, Kind: kind} })
}

var viewIsDisjoint = rt.Def("isdisjoint(other)", func(x *rt.Context, self value.Value, p rt.Params) value.Value {
	for _, it := range value.Elements(x.Lim, p[0]) {
		if value.Contains(x.Lim, self, it) || !x.Step(1) {
			return value.False
		}
	}
	return value.True
})

// ListMethods are the methods of list, tuple and range.
var ListMethods = map[string]rt.Func{
	"count": rt.Def("count(value)", func(x *rt.Context, self value.Value, p rt.Params) value.Value {
		n := int64(0)
		for _, it := range x.Elements(self) {
			if isOrEquals(x, it, p[0]) {
				n++
			}
		}
		return value.NewInt(n)
	}),
	"index": rt.Def("index(value, start=, stop=)", func(x *rt.Context, self value.Value, p rt.Params) value.Value {
		if _, ok := self.(*value.Range); ok && p[1] != nil {
			return x.Failf(value.Type, "range.index() takes exactly one argument")
		}
		items := x.Elements(self)
		first, n := py.SliceIndices(len(items), x.OptInt(p[1]), x.OptInt(p[2]), 1)
		for i := first; i < first+n && x.Err == nil; i++ {
			if isOrEquals(x, items[i], p[0]) {
				return value.NewInt(int64(i))
			}
		}
		return x.Failf(value.Other, "%s is not in %s", value.ReprString(p[0]), self.TypeName())
	}),
}

func isOrEquals(x *rt.Context, a, b value.Value) bool {
	return value.Equal(x.Lim, a, b) || value.Same(a, b)
}

var listCopy = on("copy()", func(_ *rt.Context, l *value.List, _ rt.Params) value.Value { return &value.List{Items: l.Items} })

// IntMethods are the methods of int and bool.
var IntMethods = map[string]rt.Func{
	"bit_length": ofInt("bit_length()", func(self value.Value) value.Value {
		return value.Made(value.NewInt(int64(value.BigOf(self).BitLen())), value.Origin(self))
	}),
	"bit_count": ofInt("bit_count()", func(self value.Value) value.Value {
		ones := strings.Count(new(big.Int).Abs(value.BigOf(self)).Text(2), "1")
		return value.Made(value.NewInt(int64(ones)), value.Origin(self))
	}),
	"conjugate": ofInt("conjugate()", func(self value.Value) value.Value { return py.Plus(self) }),
	"as_integer_ratio": ofInt("as_integer_ratio()", func(self value.Value) value.Value {
		return &value.List{Items: []value.Value{py.Plus(self), value.NewInt(1)}, Tuple: true}
	}),
}

// ofInt declares a method without arguments for integers of any size.
func ofInt(signature string, f func(self value.Value) value.Value) rt.Func {
	return rt.Def(signature, func(x *rt.Context, self value.Value, _ rt.Params) value.Value {
		if !x.Lim.Integer(self) {
			return value.Stopped
		}
		return f(self)
	})
}

// FloatMethods are the methods of float.
var FloatMethods = map[string]rt.Func{
	"is_integer": on("is_integer()", func(_ *rt.Context, f *value.Float, _ rt.Params) value.Value {
		return value.NewBool(f.V == math.Trunc(f.V) && !math.IsInf(f.V, 0))
	}),
	"conjugate": on("conjugate()", func(_ *rt.Context, f *value.Float, _ rt.Params) value.Value { return f }),
	"as_integer_ratio": on("as_integer_ratio()", func(x *rt.Context, f *value.Float, _ rt.Params) value.Value {
		x.Make(1 << 10)
		r := new(big.Rat).SetFloat64(f.V)
		if r == nil {
			return x.Failf(value.Other, "cannot convert Infinity or NaN to integer ratio")
		}
		return &value.List{Items: []value.Value{value.Made(value.NewBig(r.Num()), f.F), value.Made(value.NewBig(r.Denom()), f.F)}, Tuple: true}
	}),
	"hex": on("hex()", func(_ *rt.Context, f *value.Float, _ rt.Params) value.Value { return value.Derived(hexFloat(f.V), f.F) }),
}

func hexFloat(f float64) string {
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		return pytext.Float(f)
	case f == 0:
		return map[bool]string{true: "-0x0.0p+0", false: "0x0.0p+0"}[math.Signbit(f)]
	}
	s := strconv.FormatFloat(f, 'x', 13, 64)
	i := strings.IndexByte(s, 'p')
	return s[:i] + "p" + strings.Replace(strings.Replace(s[i+1:], "+0", "+", 1), "-0", "-", 1)
}

// BytesMethods are the methods of bytes.
var BytesMethods = map[string]rt.Func{
	"decode": on("decode(encoding=, errors=)", func(x *rt.Context, b *value.Bytes, _ rt.Params) value.Value {
		if !x.Make(3 * len(b.B)) {
			return value.Stopped
		}
		return b.Made(strings.ToValidUTF8(b.B, "\uFFFD"))
	}),
	"hex": on("hex()", func(x *rt.Context, b *value.Bytes, _ rt.Params) value.Value {
		if !x.Make(4 * len(b.B)) {
			return value.Stopped
		}
		return b.Made(hex.EncodeToString([]byte(b.B)))
	}),
}
