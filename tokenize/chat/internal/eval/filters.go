package eval

import (
	"math"
	"math/big"
	"strconv"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// filterFunc computes "v|name(args)".
type filterFunc func(x *exec, v value.Value, a args) value.Value

// filters are the filters of Jinja, with tojson as transformers replaces it.
// Adding one is adding an entry.
var filters = map[string]filterFunc{
	"abs":            filterAbs,
	"attr":           filterAttr,
	"batch":          filterBatch,
	"capitalize":     strFilter("capitalize", (*value.Str).Capitalize),
	"center":         filterCenter,
	"count":          filterLength,
	"d":              filterDefault,
	"default":        filterDefault,
	"dictsort":       filterDictsort,
	"e":              filterEscape,
	"escape":         filterEscape,
	"filesizeformat": filterFilesize,
	"first":          filterFirst,
	"float":          filterFloat,
	"forceescape":    filterForceEscape,
	"format":         filterFormat,
	"groupby":        filterGroupby,
	"indent":         filterIndent,
	"int":            filterInt,
	"items":          filterItems,
	"join":           filterJoin,
	"last":           filterLast,
	"length":         filterLength,
	"list":           filterList,
	"lower":          strFilter("lower", (*value.Str).Lower),
	"map":            filterMap,
	"max":            extreme("max", ">"),
	"min":            extreme("min", "<"),
	"pprint":         filterPprint,
	"random":         filterRandom,
	"reject":         selection(false, false),
	"rejectattr":     selection(true, false),
	"replace":        filterReplace,
	"reverse":        filterReverse,
	"round":          filterRound,
	"safe":           filterSafe,
	"select":         selection(false, true),
	"selectattr":     selection(true, true),
	"slice":          filterSlice,
	"sort":           filterSort,
	"string":         filterString,
	"striptags":      filterStriptags,
	"sum":            filterSum,
	"title":          strFilter("title", (*value.Str).TitleWords),
	"tojson":         filterToJSON,
	"trim":           filterTrim,
	"truncate":       filterTruncate,
	"unique":         filterUnique,
	"upper":          strFilter("upper", (*value.Str).Upper),
	"urlencode":      filterURLEncode,
	"urlize":         filterURLize,
	"wordcount":      filterWordcount,
	"wordwrap":       filterWordwrap,
	"xmlattr":        filterXMLAttr,
}

// strFilter is a filter that turns its value into a string and has no arguments.
func strFilter(name string, f func(*value.Str) *value.Str) filterFunc {
	return func(x *exec, v value.Value, a args) value.Value {
		if _, ok := x.bind(a, name, 0); !ok {
			return undefined
		}
		return f(x.softStr(v))
	}
}

func isNone(v value.Value) bool {
	_, ok := v.(*value.None)
	return v == nil || ok
}

func isUndefined(v value.Value) bool {
	_, ok := v.(*value.Undefined)
	return ok
}

func filterAbs(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "abs", 0); !ok {
		return undefined
	}
	switch n := v.(type) {
	case *value.Float:
		return &value.Float{V: math.Abs(n.V)}
	case *value.Int:
		return value.NewBig(new(big.Int).Abs(n.BigInt()))
	case *value.Bool:
		return x.val(value.Sign("+", n))
	}
	return x.failf(value.Type, "bad operand type for abs(): '%s'", v.TypeName())
}

func filterAttr(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_attr", 1, "name")
	if !ok {
		return undefined
	}
	name, ok := p[0].(*value.Str)
	if !ok {
		return x.failf(value.Type, "attribute name must be string, not '%s'", p[0].TypeName())
	}
	if u, ok := v.(*value.Undefined); ok && !objectAttrs[name.S] {
		return x.fail(u.Use())
	}
	if r := x.attribute(v, name.S, name); r != nil {
		return r
	}
	return &value.Undefined{Obj: v, Name: name}
}

func filterCenter(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_center", 0, "width")
	if !ok {
		return undefined
	}
	if p[0] == nil {
		p[0] = value.NewInt(80)
	}
	return strMethods["center"](x, x.softStr(v), args{pos: p[:1]})
}

func filterLength(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "len", 0); !ok {
		return undefined
	}
	n, fault := value.Len(v)
	if fault != nil {
		return x.fail(fault)
	}
	return value.NewInt(int64(n))
}

func filterDefault(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_default", 0, "default_value", "boolean")
	if !ok {
		return undefined
	}
	if isUndefined(v) || (p[1] != nil && value.Truth(p[1]) && !value.Truth(v)) {
		if p[0] == nil {
			return value.Empty
		}
		return p[0]
	}
	return v
}

func filterEscape(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "escape", 0); !ok {
		return undefined
	}
	return x.softStr(v).Escape()
}

func filterForceEscape(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "do_forceescape", 0); !ok {
		return undefined
	}
	return x.str(v).Escape()
}

func filterSafe(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "do_mark_safe", 0); !ok {
		return undefined
	}
	return x.softStr(v).Safe()
}

func filterString(x *exec, v value.Value, a args) value.Value {
	if s, ok := v.(*value.Str); ok && len(a.pos)+len(a.kw) == 0 {
		return s
	}
	if _, ok := x.bind(a, "soft_str", 0); !ok {
		return undefined
	}
	return x.softStr(v)
}

func filterTrim(x *exec, v value.Value, a args) value.Value {
	if len(a.pos)+len(a.kw) == 0 {
		return x.softStr(v).Strip(nil, true, true)
	}
	p, ok := x.bind(a, "do_trim", 0, "chars")
	if !ok {
		return undefined
	}
	set, ok := x.chars(p[0], "strip")
	if !ok {
		return undefined
	}
	return x.softStr(v).Strip(set, true, true)
}

func filterReplace(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_replace", 2, "old", "new", "count")
	if !ok {
		return undefined
	}
	n := int64(-1)
	if !isNone(p[2]) {
		if n, ok = x.intArg(p[2]); !ok {
			return undefined
		}
	}
	s := x.str(v)
	if x.escape {
		s = x.softStr(v)
		return x.strFault(s.Replace(&x.lim.Limits, x.softStr(p[0]), x.softStr(p[1]), n))
	}
	return x.strFault(s.Replace(&x.lim.Limits, x.str(p[0]), x.str(p[1]), n))
}

func filterFormat(x *exec, v value.Value, a args) value.Value {
	s := x.softStr(v)
	if len(a.kw) == 0 {
		return x.strFault(value.Percent(&x.lim.Limits, s, &value.List{Items: append([]value.Value{}, a.pos...), Tuple: true}))
	}
	if len(a.pos) > 0 {
		return x.failf(value.Other, "can't handle positional and keyword arguments at the same time")
	}
	d := value.NewDict(len(a.kw))
	for _, k := range a.kw {
		d.SetString(k.name, k.v)
	}
	return x.strFault(value.Percent(&x.lim.Limits, s, d))
}

func filterInt(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_int", 0, "default", "base")
	if !ok {
		return undefined
	}
	var def value.Value = value.NewInt(0)
	if p[0] != nil {
		def = p[0]
	}
	switch n := v.(type) {
	case *value.Undefined:
		return x.fail(n.Use())
	case *value.Int:
		return n
	case *value.Bool:
		return x.val(value.Sign("+", n))
	case *value.Float:
		if math.IsNaN(n.V) || math.IsInf(n.V, 0) {
			if math.IsInf(n.V, 0) {
				return x.failf(value.Other, "cannot convert float infinity to integer")
			}
			return def
		}
		b, _ := big.NewFloat(math.Trunc(n.V)).Int(nil)
		return value.NewBig(b)
	case *value.Str:
		base := int64(10)
		if p[1] != nil {
			if base, ok = x.intArg(p[1]); !ok {
				x.err, x.errPos = nil, -1 // a TypeError is answered by the fallback
				base = -1
			}
		}
		if base == 0 || (base >= 2 && base <= 36) {
			if i, ok := value.ParseInt(n.S, int(base)); ok {
				return i
			}
		}
		f, ok := value.ParseFloat(n.S)
		if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
			return def
		}
		b, _ := big.NewFloat(math.Trunc(f)).Int(nil)
		return value.NewBig(b)
	}
	return def
}

func filterFloat(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_float", 0, "default")
	if !ok {
		return undefined
	}
	switch n := v.(type) {
	case *value.Undefined:
		return x.fail(n.Use())
	case *value.Float:
		return n
	case *value.Int, *value.Bool:
		f, fault := value.ToFloat(n)
		if fault != nil {
			return x.fail(fault)
		}
		return &value.Float{V: f}
	case *value.Str:
		if f, ok := value.ParseFloat(n.S); ok {
			return &value.Float{V: f}
		}
	}
	if p[0] == nil {
		return &value.Float{}
	}
	return p[0]
}

func filterRound(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_round", 0, "precision", "method")
	if !ok {
		return undefined
	}
	method := "common"
	if p[1] != nil {
		s, ok := p[1].(*value.Str)
		if !ok || (s.S != "common" && s.S != "ceil" && s.S != "floor") {
			x.fail(value.Hashable(p[1]))
			return x.failf(value.Other, "method must be common, ceil or floor")
		}
		method = s.S
	}
	var precision value.Value = value.NewInt(0)
	if p[0] != nil {
		precision = p[0]
	}
	if method == "common" {
		if isUndefined(v) {
			return x.failf(value.Type, "type Undefined doesn't define __round__ method")
		}
		if isNone(precision) {
			return x.roundTo(v, nil)
		}
		n, ok := x.intArg(precision)
		if !ok {
			return undefined
		}
		return x.roundTo(v, &n)
	}
	scale := x.val(value.Arith(&x.lim.Limits, "**", value.NewInt(10), precision))
	scaled := x.val(value.Arith(&x.lim.Limits, "*", v, scale))
	if x.err != nil {
		return undefined
	}
	if f, ok := scaled.(*value.Float); ok {
		if math.IsNaN(f.V) || math.IsInf(f.V, 0) {
			return x.failf(value.Other, "cannot convert float %s to integer", value.FormatFloat(f.V))
		}
		r := math.Floor(f.V)
		if method == "ceil" {
			r = math.Ceil(f.V)
		}
		b, _ := big.NewFloat(r).Int(nil)
		scaled = value.NewBig(b)
	} else if !value.IsInt(scaled) {
		return x.failf(value.Type, "must be real number, not %s", v.TypeName())
	}
	return x.val(value.Arith(&x.lim.Limits, "/", scaled, scale))
}

// roundTo is Python's round(v, n): half to even, on the decimal value.
func (x *exec) roundTo(v value.Value, n *int64) value.Value {
	switch f := v.(type) {
	case *value.Float:
		if n == nil {
			if math.IsNaN(f.V) || math.IsInf(f.V, 0) {
				return x.failf(value.Other, "cannot convert float %s to integer", value.FormatFloat(f.V))
			}
			b, _ := big.NewFloat(math.RoundToEven(f.V)).Int(nil)
			return value.NewBig(b)
		}
		if math.IsNaN(f.V) || math.IsInf(f.V, 0) || *n > 323 {
			return f
		}
		if *n < -308 {
			return &value.Float{V: math.Copysign(0, f.V)}
		}
		if *n >= 0 {
			r, err := strconv.ParseFloat(strconv.FormatFloat(f.V, 'f', int(*n), 64), 64)
			if err != nil {
				return x.failf(value.Other, "rounded value too large to represent")
			}
			return &value.Float{V: r}
		}
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(-*n), nil)
		r := new(big.Rat).SetFloat64(f.V)
		r.Quo(r, new(big.Rat).SetInt(unit))
		out, _ := new(big.Rat).SetInt(new(big.Int).Mul(roundRat(r), unit)).Float64()
		return &value.Float{V: math.Copysign(out, f.V)}
	case *value.Int, *value.Bool:
		if n == nil || *n >= 0 {
			return x.val(value.Sign("+", v))
		}
		if *n < -5000 {
			return value.NewInt(0)
		}
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(-*n), nil)
		r := new(big.Rat).SetFrac(bigOf(v), unit)
		return value.NewBig(new(big.Int).Mul(roundRat(r), unit))
	}
	return x.failf(value.Type, "type %s doesn't define __round__ method", v.TypeName())
}

// roundRat rounds half to even.
func roundRat(r *big.Rat) *big.Int {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	c := new(big.Int).Lsh(m, 1).Cmp(r.Denom())
	if c > 0 || (c == 0 && q.Bit(0) == 1) {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func filterFilesize(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_filesizeformat", 0, "binary")
	if !ok {
		return undefined
	}
	var size float64
	switch n := v.(type) {
	case *value.Str:
		if size, ok = value.ParseFloat(n.S); !ok {
			return x.failf(value.Other, "could not convert string to float: %s", value.ReprString(n))
		}
	case *value.Undefined:
		return x.fail(n.Use())
	default:
		f, fault := value.ToFloat(v)
		if fault != nil {
			return x.fail(fault)
		}
		size = f
	}
	base, names := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if p[0] != nil && value.Truth(p[0]) {
		base, names = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	switch {
	case size == 1:
		return value.Lit("1 Byte")
	case size < base:
		if size > -1 && size < 1 {
			size = 0 // never -0
		}
		return value.Lit(strconv.FormatFloat(math.Trunc(size), 'f', 0, 64) + " Bytes")
	}
	for i, name := range names {
		unit := math.Pow(base, float64(i+2))
		if size < unit || i == len(names)-1 {
			return value.Lit(strconv.FormatFloat(base*size/unit, 'f', 1, 64) + " " + name)
		}
	}
	return value.Empty
}

func filterRandom(x *exec, v value.Value, _ args) value.Value {
	if n, fault := value.Len(v); fault != nil {
		return x.fail(fault)
	} else if n == 0 {
		return &value.Undefined{Hint: "No random item, sequence was empty."}
	}
	return x.failf(value.Other, "the random filter has no place in a reproducible batch")
}
