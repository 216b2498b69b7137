package object

import (
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// text declares a method of str without arguments that returns a str.
func text(name string, f func(*value.Str, *value.Limits) *value.Str) rt.Func {
	return on(name+"()", func(x *rt.Context, s *value.Str, _ rt.Params) value.Value { return f(s, x.Lim) })
}

func is(name string) rt.Func {
	return on(name+"()", func(x *rt.Context, s *value.Str, _ rt.Params) value.Value {
		return value.NewBool(py.Is(s, x.Lim, name))
	})
}

// StrMethods are the methods of str.
var StrMethods = map[string]rt.Func{
	"upper":      text("upper", py.Upper),
	"lower":      text("lower", py.Lower),
	"capitalize": text("capitalize", py.Capitalize),
	"title":      text("title", py.Title),
	"swapcase":   text("swapcase", py.SwapCase),
	"casefold":   text("casefold", py.Casefold),

	"isalpha": is("isalpha"), "isdecimal": is("isdecimal"), "isdigit": is("isdigit"), "isnumeric": is("isnumeric"),
	"isalnum": is("isalnum"), "isspace": is("isspace"), "isascii": is("isascii"), "isprintable": is("isprintable"),
	"isidentifier": is("isidentifier"), "isupper": is("isupper"), "islower": is("islower"), "istitle": is("istitle"),

	"strip":  strip("strip", true, true),
	"lstrip": strip("lstrip", true, false),
	"rstrip": strip("rstrip", false, true),

	"split":      split("split", false),
	"rsplit":     split("rsplit", true),
	"splitlines": on("splitlines(keepends=)", splitlines),
	"partition":  partition("partition", false),
	"rpartition": partition("rpartition", true),

	"startswith": affix("startswith", false),
	"endswith":   affix("endswith", true),
	"find":       find("find", false, false),
	"rfind":      find("rfind", true, false),
	"index":      find("index", false, true),
	"rindex":     find("rindex", true, true),
	"count": on("count(sub, start=, stop=, /)", func(x *rt.Context, s *value.Str, p rt.Params) value.Value {
		sub := x.StrArg(p[0])
		return value.NewInt(py.CountOf(s, x.Lim, sub.S, x.OptInt(p[1]), x.OptInt(p[2])))
	}),

	"removeprefix": on("removeprefix(prefix, /)", func(x *rt.Context, s *value.Str, p rt.Params) value.Value {
		return s.Slice(len(s.S)-len(strings.TrimPrefix(s.S, x.StrArg(p[0]).S)), len(s.S))
	}),
	"removesuffix": on("removesuffix(suffix, /)", func(x *rt.Context, s *value.Str, p rt.Params) value.Value {
		return s.Slice(0, len(strings.TrimSuffix(s.S, x.StrArg(p[0]).S)))
	}),
	"replace": on("replace(old, new, count=, /)", func(x *rt.Context, s *value.Str, p rt.Params) value.Value {
		old, by, n := x.StrArg(p[0]), x.StrArg(p[1]), x.Int(p[2], -1)
		if s.Markup {
			by = py.Escape(by, x.Lim)
		}
		return py.Replace(s, x.Lim, old, by, n)
	}),
	"join": on("join(iterable, /)", join),

	"center": pad("center", func(n, width int64) (int64, int64) {
		left := n/2 + n&width&1
		return left, n - left
	}),
	"ljust": pad("ljust", func(n, _ int64) (int64, int64) { return 0, n }),
	"rjust": pad("rjust", func(n, _ int64) (int64, int64) { return n, 0 }),
	"zfill": on("zfill(width, /)", zfill),
	"expandtabs": on("expandtabs(tabsize=)", func(x *rt.Context, s *value.Str, p rt.Params) value.Value {
		return py.ExpandTabs(s, x.Lim, x.Int(p[0], 8))
	}),
	"encode":    on("encode(encoding=, errors=)", encode),
	"translate": on("translate(table, /)", translate),
	"maketrans": rt.Def("maketrans(x, y=, z=, /)", maketrans),
	"format": func(x *rt.Context, self value.Value, a rt.Args) value.Value {
		return format(x, self.(*value.Str), a.Pos, a.Get)
	},
	"format_map": on("format_map(mapping, /)", func(x *rt.Context, s *value.Str, p rt.Params) value.Value {
		return format(x, s, nil, func(name string) value.Value {
			d, ok := p[0].(*value.Dict)
			if !ok {
				return x.Failf(value.Type, "'%s' object is not a mapping", p[0].TypeName())
			}
			return d.GetString(name)
		})
	}),
}

func splitlines(x *rt.Context, s *value.Str, p rt.Params) value.Value {
	return &value.List{Items: py.Lines(s, x.Lim, x.Int(p[0], 0) != 0)}
}

func join(x *rt.Context, s *value.Str, p rt.Params) value.Value {
	items := x.Elements(p[0])
	if !x.Make(8 * len(items)) {
		return value.Stopped
	}
	strs := make([]*value.Str, len(items))
	for i, it := range items {
		v, ok := it.(*value.Str)
		if !ok {
			return x.Failf(value.Type, "sequence item %d: expected str instance, %s found", i, it.TypeName())
		}
		if s.Markup {
			v = py.Escape(v, x.Lim)
		}
		strs[i] = v
	}
	return py.Join(x.Lim, s, strs)
}

func zfill(x *rt.Context, s *value.Str, p rt.Params) value.Value {
	x.Spend(len(s.S))
	n := x.Int(p[0], 0) - int64(s.RuneCount())
	if n <= 0 {
		return s
	}
	sign := 0
	if s.S != "" && (s.S[0] == '+' || s.S[0] == '-') {
		sign = 1
	}
	return value.Concat(x.Lim, s.Slice(0, sign), py.Pad(s.Slice(sign, len(s.S)), x.Lim, value.Lit("0"), n, 0))
}

func encode(x *rt.Context, s *value.Str, p rt.Params) value.Value {
	for _, v := range p[:2] {
		if v != nil {
			x.StrArg(v)
		}
	}
	if e, ok := p[0].(*value.Str); ok {
		switch strings.ReplaceAll(strings.ToLower(e.S), "_", "-") {
		case "utf-8", "utf8":
		case "ascii":
			if !py.Is(s, x.Lim, "isascii") {
				return x.Failf(value.Other, "'ascii' codec can't encode characters: ordinal not in range(128)")
			}
		default:
			return x.Failf(value.Other, "unknown encoding: %s", e.S)
		}
	}
	return &value.Bytes{B: s.S, F: s.Field()}
}

// format implements str.format.
func format(x *rt.Context, s *value.Str, pos []value.Value, kw func(string) value.Value) value.Value {
	return py.Format(x.Lim, s, py.FormatArgs{
		Pos:  pos,
		Kw:   kw,
		Attr: func(v value.Value, name string) value.Value { return Getattr(x, v, name, value.Lit(name)) },
		Item: func(v, key value.Value) value.Value { return Getitem(x, v, key) },
	})
}

func strip(name string, left, right bool) rt.Func {
	return on(name+"(chars=, /)", func(x *rt.Context, s *value.Str, p rt.Params) value.Value {
		return py.Strip(s, x.Lim, x.Chars(p[0], name), left, right)
	})
}

func split(name string, fromRight bool) rt.Func {
	return on(name+"(sep=, maxsplit=)", func(x *rt.Context, s *value.Str, p rt.Params) value.Value {
		max, sep := x.Int(p[1], -1), x.Chars(p[0], name)
		var l *value.List
		switch {
		case sep == nil:
			l = py.Fields(s, x.Lim, max, fromRight)
		case sep.S == "":
			return x.Failf(value.Other, "empty separator")
		default:
			l = py.Split(s, x.Lim, sep.S, max, fromRight)
		}
		x.Step(len(l.Items))
		return l
	})
}

func partition(name string, last bool) rt.Func {
	return on(name+"(sep, /)", func(x *rt.Context, s *value.Str, p rt.Params) value.Value {
		sep := x.StrArg(p[0])
		if sep.S == "" {
			return x.Failf(value.Other, "empty separator")
		}
		x.Make(len(s.S)/4 + 200)
		i := strings.Index(s.S, sep.S)
		if last {
			i = strings.LastIndex(s.S, sep.S)
		}
		parts := []value.Value{s, s.Slice(0, 0), s.Slice(0, 0)}
		if i >= 0 {
			end := i + len(sep.S)
			parts = []value.Value{s.Slice(0, i), s.Slice(i, end), s.Slice(end, len(s.S))}
		} else if last {
			parts[0], parts[2] = parts[2], parts[0]
		}
		return &value.List{Items: parts, Tuple: true}
	})
}

func find(name string, last, must bool) rt.Func {
	return on(name+"(sub, start=, stop=, /)", func(x *rt.Context, s *value.Str, p rt.Params) value.Value {
		sub := x.StrArg(p[0])
		i := py.Find(s, x.Lim, sub.S, x.OptInt(p[1]), x.OptInt(p[2]), last)
		if i < 0 && must {
			return x.Failf(value.Other, "substring not found")
		}
		return value.NewInt(i)
	})
}

func affix(name string, suffix bool) rt.Func {
	return on(name+"(affix, start=, stop=, /)", func(x *rt.Context, s *value.Str, p rt.Params) value.Value {
		start, stop := x.OptInt(p[1]), x.OptInt(p[2])
		any := []value.Value{p[0]}
		if l, ok := p[0].(*value.List); ok && l.Tuple {
			any = l.Items
		} else if _, ok := p[0].(*value.Str); !ok {
			return x.Failf(value.Type, "%s first arg must be str or a tuple of str, not %s", name, p[0].TypeName())
		}
		for _, it := range any {
			t, ok := it.(*value.Str)
			if !ok {
				return x.Failf(value.Type, "tuple for %s must only contain str, not %s", name, it.TypeName())
			}
			if !x.Step(1) {
				return value.Stopped
			}
			if py.HasAffix(s, x.Lim, t.S, start, stop, suffix) {
				return value.True
			}
		}
		return value.False
	})
}

func pad(name string, sides func(n, width int64) (int64, int64)) rt.Func {
	return on(name+"(width, fill=, /)", func(x *rt.Context, s *value.Str, p rt.Params) value.Value {
		width, fill := x.Int(p[0], 0), value.Lit(" ")
		if p[1] != nil {
			if fill = x.StrArg(p[1]); fill.RuneCount() != 1 {
				return x.Failf(value.Type, "The fill character must be exactly one character long")
			}
		}
		x.Spend(len(s.S))
		left, right := sides(max(width-int64(s.RuneCount()), 0), width)
		return py.Pad(s, x.Lim, fill, left, right)
	})
}
