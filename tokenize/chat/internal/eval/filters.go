package eval

import "github.com/turnpack/turnpack/tokenize/chat/internal/value"

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
func strFilter(name string, f func(*value.Str, *value.Limits) *value.Str) filterFunc {
	return func(x *exec, v value.Value, a args) value.Value {
		if _, ok := x.bind(a, name, 0); !ok {
			return undefined
		}
		return f(x.softStr(v), &x.lim.Limits)
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

func filterAttr(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_attr", 1, "name")
	if !ok {
		return undefined
	}
	name, ok := p[0].(*value.Str)
	if !ok {
		return x.failf(value.Type, "attribute name must be string, not '%s'", p[0].TypeName())
	}
	if u, ok := v.(*value.Undefined); ok && !objectAttrs[name.S] && !typeAttrs["Undefined"][name.S] {
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
	if len(a.pos)+len(a.kw) > 0 {
		x.bind(a, "len", 0) // fails
		return undefined
	}
	if s, ok := v.(*value.Str); ok {
		x.spend(3 * len(s.S) / 4)
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
	return x.softStr(v).Escape(&x.lim.Limits)
}

func filterForceEscape(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "do_forceescape", 0); !ok {
		return undefined
	}
	return x.str(v).Escape(&x.lim.Limits)
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
		return x.softStr(v).Strip(&x.lim.Limits, nil, true, true)
	}
	p, ok := x.bind(a, "do_trim", 0, "chars")
	if !ok {
		return undefined
	}
	set, ok := x.chars(p[0], "strip")
	if !ok {
		return undefined
	}
	return x.softStr(v).Strip(&x.lim.Limits, set, true, true)
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

func filterRandom(x *exec, v value.Value, _ args) value.Value {
	if n, fault := value.Len(v); fault != nil {
		return x.fail(fault)
	} else if n == 0 {
		return &value.Undefined{Hint: "No random item, sequence was empty."}
	}
	return x.failf(value.Other, "the random filter has no place in a reproducible batch")
}
