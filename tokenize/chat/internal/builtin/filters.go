// Package builtin holds the filters, tests and globals of Jinja as transformers configures it, as tables of functions
// over values with declared parameters.
package builtin

import (
	"github.com/turnpack/turnpack/tokenize/chat/internal/object"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Library holds all builtins that templates can use.
var Library = &rt.Library{
	Filters: filters, Tests: tests, Globals: globals,
	Str: object.StrMethods, Dict: object.DictMethods, List: object.ListMethods,
	Int: object.IntMethods, Float: object.FloatMethods, Bytes: object.BytesMethods,
}

// filters are the filters of Jinja, with tojson as transformers replaces it. A new filter is a new entry: the name
// that a template uses, the Python signature of the parameters, and the function, which gets the bound arguments.
var filters = map[string]rt.Func{
	"abs":            rt.Def("abs()", filterAbs),
	"attr":           rt.Def("do_attr(name)", filterAttr),
	"batch":          rt.Def("do_batch(linecount, fill_with=)", filterBatch),
	"capitalize":     rt.Def("capitalize()", onText(py.Capitalize)),
	"center":         rt.Def("do_center(width=)", filterCenter),
	"count":          rt.Def("len()", filterLength),
	"d":              rt.Def("do_default(default_value=, boolean=)", filterDefault),
	"default":        rt.Def("do_default(default_value=, boolean=)", filterDefault),
	"dictsort":       rt.Def("do_dictsort(case_sensitive=, by=, reverse=)", filterDictsort),
	"e":              rt.Def("escape()", filterEscape),
	"escape":         rt.Def("escape()", filterEscape),
	"filesizeformat": rt.Def("do_filesizeformat(binary=)", filterFilesize),
	"first":          rt.Def("do_first()", filterFirst),
	"float":          rt.Def("do_float(default=)", filterFloat),
	"forceescape":    rt.Def("do_forceescape()", filterForceEscape),
	"format":         filterFormat,
	"groupby":        rt.Def("do_groupby(attribute, default=, case_sensitive=)", filterGroupby),
	"indent":         rt.Def("do_indent(width=, first=, blank=)", filterIndent),
	"int":            rt.Def("do_int(default=, base=)", filterInt),
	"items":          rt.Def("do_items()", filterItems),
	"join":           rt.Def("do_join(d=, attribute=)", filterJoin),
	"last":           rt.Def("do_last()", filterLast),
	"length":         rt.Def("len()", filterLength),
	"list":           rt.Def("do_list()", filterList),
	"lower":          rt.Def("lower()", onText(py.Lower)),
	"map":            filterMap,
	"max":            rt.Def("do_max(case_sensitive=, attribute=)", extreme(">")),
	"min":            rt.Def("do_min(case_sensitive=, attribute=)", extreme("<")),
	"pprint":         rt.Def("do_pprint()", filterPprint),
	"random":         filterRandom,
	"reject":         selection(false, false),
	"rejectattr":     selection(true, false),
	"replace":        rt.Def("do_replace(old, new, count=)", filterReplace),
	"reverse":        rt.Def("do_reverse()", filterReverse),
	"round":          rt.Def("do_round(precision=, method=)", filterRound),
	"safe":           rt.Def("do_mark_safe()", filterSafe),
	"select":         selection(false, true),
	"selectattr":     selection(true, true),
	"slice":          rt.Def("do_slice(slices, fill_with=)", filterSlice),
	"sort":           rt.Def("do_sort(reverse=, case_sensitive=, attribute=)", filterSort),
	"string":         rt.Def("soft_str()", filterString),
	"striptags":      rt.Def("do_striptags()", filterStriptags),
	"sum":            rt.Def("do_sum(attribute=, start=)", filterSum),
	"title":          rt.Def("title()", onText(py.TitleWords)),
	"tojson":         filterToJSON,
	"trim":           rt.Def("do_trim(chars=)", filterTrim),
	"truncate":       rt.Def("do_truncate(length=, killwords=, end=, leeway=)", filterTruncate),
	"unique":         rt.Def("do_unique(case_sensitive=, attribute=)", filterUnique),
	"upper":          rt.Def("upper()", onText(py.Upper)),
	"urlencode":      rt.Def("do_urlencode()", filterURLEncode),
	"urlize":         rt.Def("do_urlize(trim_url_limit=, nofollow=, target=, rel=, extra_schemes=)", filterURLize),
	"wordcount":      rt.Def("do_wordcount()", filterWordcount),
	"wordwrap":       rt.Def("do_wordwrap(width=, break_long_words=, wrapstring=, break_on_hyphens=)", filterWordwrap),
	"xmlattr":        rt.Def("do_xmlattr(autospace=)", filterXMLAttr),
}

// onText returns a filter that applies f to the text of a value.
func onText(f func(*value.Str, *value.Limits) *value.Str) func(*rt.Context, value.Value, rt.Params) value.Value {
	return func(x *rt.Context, v value.Value, _ rt.Params) value.Value { return f(x.SoftStr(v), x.Lim) }
}

func filterAttr(x *rt.Context, v value.Value, p rt.Params) value.Value {
	name, ok := p[0].(*value.Str)
	if !ok {
		return x.Failf(value.Type, "attribute name must be string, not '%s'", p[0].TypeName())
	}
	return object.AttributeOnly(x, v, name)
}

func filterCenter(x *rt.Context, v value.Value, p rt.Params) value.Value {
	if p[0] == nil {
		p[0] = value.NewInt(80)
	}
	return object.StrMethods["center"](x, x.SoftStr(v), rt.Args{Pos: p[:1]})
}

func filterLength(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	if s, ok := v.(*value.Str); ok {
		x.Spend(3 * len(s.S) / 4)
	}
	return value.NewInt(int64(value.Len(x.Lim, v)))
}

func filterDefault(x *rt.Context, v value.Value, p rt.Params) value.Value {
	if value.IsUndefined(v) || (p.Flag(1, false) && !value.Truth(v)) {
		if p[0] == nil {
			return value.Empty
		}
		return p[0]
	}
	return v
}

func filterEscape(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	return py.Escape(x.SoftStr(v), x.Lim)
}

func filterForceEscape(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	return py.Escape(x.Str(v), x.Lim)
}

func filterSafe(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	return x.SoftStr(v).Safe()
}

func filterString(x *rt.Context, v value.Value, _ rt.Params) value.Value { return x.SoftStr(v) }

func filterTrim(x *rt.Context, v value.Value, p rt.Params) value.Value {
	return py.Strip(x.SoftStr(v), x.Lim, x.Chars(p[0], "strip"), true, true)
}

func filterReplace(x *rt.Context, v value.Value, p rt.Params) value.Value {
	if value.IsNone(p[2]) {
		p[2] = nil
	}
	n, str := x.Int(p[2], -1), x.Str
	if x.Escape {
		str = x.SoftStr
	}
	return py.Replace(str(v), x.Lim, str(p[0]), str(p[1]), n)
}

func filterFormat(x *rt.Context, v value.Value, a rt.Args) value.Value {
	s := x.SoftStr(v)
	if len(a.Kw) == 0 {
		return py.Percent(x.Lim, s, &value.List{Items: append([]value.Value{}, a.Pos...), Tuple: true})
	}
	if len(a.Pos) > 0 {
		return x.Failf(value.Other, "can't handle positional and keyword arguments at the same time")
	}
	return py.Percent(x.Lim, s, a.Dict())
}

func filterRandom(x *rt.Context, v value.Value, _ rt.Args) value.Value {
	if value.Len(x.Lim, v) == 0 {
		return &value.Undefined{Hint: "No random item, sequence was empty."}
	}
	return x.Failf(value.Other, "the random filter has no place in a reproducible batch")
}
