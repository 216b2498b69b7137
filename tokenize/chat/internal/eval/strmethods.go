package eval

import (
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

type strMethod func(x *exec, s *value.Str, a args) value.Value

func method(f strMethod) methodFunc {
	return func(x *exec, self value.Value, a args) value.Value { return f(x, self.(*value.Str), a) }
}

// simple is a method without arguments.
func simple(name string, f func(*value.Str, *value.Limits) *value.Str) methodFunc {
	return method(func(x *exec, s *value.Str, a args) value.Value {
		if _, ok := x.bind(a, name, 0); !ok {
			return undefined
		}
		return f(s, &x.lim.Limits)
	})
}

func is(name string) methodFunc {
	return method(func(x *exec, s *value.Str, a args) value.Value {
		x.bind(a, name, 0)
		r, _ := s.Is(&x.lim.Limits, name)
		return value.NewBool(r)
	})
}

// strMethods are the methods of str. Adding one is adding an entry.
var strMethods = map[string]methodFunc{
	"upper":      simple("upper", (*value.Str).Upper),
	"lower":      simple("lower", (*value.Str).Lower),
	"capitalize": simple("capitalize", (*value.Str).Capitalize),
	"title":      simple("title", (*value.Str).Title),
	"swapcase":   simple("swapcase", (*value.Str).SwapCase),
	"casefold":   simple("casefold", (*value.Str).Casefold),

	"isalpha": is("isalpha"), "isdecimal": is("isdecimal"), "isdigit": is("isdigit"), "isnumeric": is("isnumeric"),
	"isalnum": is("isalnum"), "isspace": is("isspace"), "isascii": is("isascii"), "isprintable": is("isprintable"),
	"isidentifier": is("isidentifier"), "isupper": is("isupper"), "islower": is("islower"), "istitle": is("istitle"),

	"strip":  strip("strip", true, true),
	"lstrip": strip("lstrip", true, false),
	"rstrip": strip("rstrip", false, true),

	"split":  split("split", false),
	"rsplit": split("rsplit", true),
	"splitlines": method(func(x *exec, s *value.Str, a args) value.Value {
		p, ok := x.bind(a, "splitlines", 0, "keepends")
		keep := int64(0)
		if p[0] != nil {
			keep, ok = x.intArg(p[0])
		}
		if !ok {
			return undefined
		}
		lines, fault := s.Lines(&x.lim.Limits, keep != 0)
		x.fail(fault)
		return &value.List{Items: lines}
	}),
	"partition":  partition("partition", false),
	"rpartition": partition("rpartition", true),

	"startswith": affix("startswith", false),
	"endswith":   affix("endswith", true),
	"find":       find("find", false, false),
	"rfind":      find("rfind", true, false),
	"index":      find("index", false, true),
	"rindex":     find("rindex", true, true),
	"count": method(func(x *exec, s *value.Str, a args) value.Value {
		sub, start, stop, ok := x.search(a, "count")
		if !ok {
			return undefined
		}
		return value.NewInt(s.CountOf(&x.lim.Limits, sub.S, start, stop))
	}),

	"removeprefix": method(func(x *exec, s *value.Str, a args) value.Value {
		if p, ok := x.oneStr(a, "removeprefix"); ok && strings.HasPrefix(s.S, p.S) {
			return s.Slice(len(p.S), len(s.S))
		}
		return s
	}),
	"removesuffix": method(func(x *exec, s *value.Str, a args) value.Value {
		if p, ok := x.oneStr(a, "removesuffix"); ok && strings.HasSuffix(s.S, p.S) {
			return s.Slice(0, len(s.S)-len(p.S))
		}
		return s
	}),
	"replace": method(func(x *exec, s *value.Str, a args) value.Value {
		if !x.positional(a, "replace", 2, 3) {
			return undefined
		}
		old, ok1 := x.strArg(a.pos[0])
		new, ok2 := x.strArg(a.pos[1])
		if !ok1 || !ok2 {
			return undefined
		}
		n := int64(-1)
		if len(a.pos) == 3 {
			if n, ok1 = x.intArg(a.pos[2]); !ok1 {
				return undefined
			}
		}
		if s.Markup {
			new = new.Escape(&x.lim.Limits)
		}
		return x.strFault(s.Replace(&x.lim.Limits, old, new, n))
	}),
	"join": method(func(x *exec, s *value.Str, a args) value.Value {
		if !x.positional(a, "join", 1, 1) {
			return undefined
		}
		items, ok := elements(x, a.pos[0])
		if !ok {
			return undefined
		}
		if !x.make(8 * len(items)) {
			return undefined
		}
		strs := make([]*value.Str, len(items))
		for i, it := range items {
			v, ok := it.(*value.Str)
			if !ok {
				return x.failf(value.Type, "sequence item %d: expected str instance, %s found", i, it.TypeName())
			}
			if s.Markup {
				v = v.Escape(&x.lim.Limits)
			}
			strs[i] = v
		}
		return x.strFault(value.Join(&x.lim.Limits, s, strs))
	}),

	"center": pad("center", func(n int64, width int64) (int64, int64) {
		left := n/2 + n&width&1
		return left, n - left
	}),
	"ljust": pad("ljust", func(n, _ int64) (int64, int64) { return 0, n }),
	"rjust": pad("rjust", func(n, _ int64) (int64, int64) { return n, 0 }),
	"zfill": method(func(x *exec, s *value.Str, a args) value.Value {
		if !x.positional(a, "zfill", 1, 1) {
			return undefined
		}
		width, ok := x.intArg(a.pos[0])
		if !ok {
			return undefined
		}
		x.spend(len(s.S))
		n := width - int64(s.RuneCount())
		if n <= 0 {
			return s
		}
		sign := 0
		if s.S != "" && (s.S[0] == '+' || s.S[0] == '-') {
			sign = 1
		}
		digits, fault := s.Slice(sign, len(s.S)).Pad(&x.lim.Limits, value.Lit("0"), n, 0)
		if fault != nil {
			return x.fail(fault)
		}
		return x.strFault(value.Concat(&x.lim.Limits, s.Slice(0, sign), digits))
	}),
	"expandtabs": method(func(x *exec, s *value.Str, a args) value.Value {
		p, ok := x.bind(a, "expandtabs", 0, "tabsize")
		if !ok {
			return undefined
		}
		size := int64(8)
		if p[0] != nil {
			if size, ok = x.intArg(p[0]); !ok {
				return undefined
			}
		}
		return x.strFault(s.ExpandTabs(&x.lim.Limits, size))
	}),
	"encode": method(func(x *exec, s *value.Str, a args) value.Value {
		p, ok := x.bind(a, "encode", 0, "encoding", "errors")
		for _, v := range p[:2] {
			if v != nil && ok {
				_, ok = x.strArg(v)
			}
		}
		if !ok {
			return undefined
		}
		if e, ok := p[0].(*value.Str); ok {
			switch strings.ReplaceAll(strings.ToLower(e.S), "_", "-") {
			case "utf-8", "utf8":
			case "ascii":
				if r, _ := s.Is(&x.lim.Limits, "isascii"); !r {
					return x.failf(value.Other, "'ascii' codec can't encode characters: ordinal not in range(128)")
				}
			default:
				return x.failf(value.Other, "unknown encoding: %s", e.S)
			}
		}
		return &value.Bytes{B: s.S, F: s.Field()}
	}),
	"translate": method(func(x *exec, s *value.Str, a args) value.Value {
		if !x.positional(a, "translate", 1, 1) {
			return undefined
		}
		return x.translate(s, a.pos[0])
	}),
	"maketrans": func(x *exec, _ value.Value, a args) value.Value { return x.makeTrans(a) },
	"format": method(func(x *exec, s *value.Str, a args) value.Value {
		return x.format(s, a.pos, func(name string) (value.Value, *value.Fault) { return a.get(name), nil })
	}),
	"format_map": method(func(x *exec, s *value.Str, a args) value.Value {
		if !x.positional(a, "format_map", 1, 1) {
			return undefined
		}
		return x.format(s, nil, func(name string) (value.Value, *value.Fault) {
			d, ok := a.pos[0].(*value.Dict)
			if !ok {
				return nil, value.Faultf(value.Type, "'%s' object is not a mapping", a.pos[0].TypeName())
			}
			return d.GetString(name), nil
		})
	}),
}

func (x *exec) format(s *value.Str, pos []value.Value, kw func(string) (value.Value, *value.Fault)) value.Value {
	lookup := func(get func() value.Value) (value.Value, *value.Fault) {
		v := get()
		return v, x.err
	}
	return x.strFault(value.Format(&x.lim.Limits, s, value.FormatArgs{
		Pos: pos,
		Kw:  kw,
		Attr: func(v value.Value, name string) (value.Value, *value.Fault) {
			return lookup(func() value.Value { return x.getattr(v, name, value.Lit(name)) })
		},
		Item: func(v, key value.Value) (value.Value, *value.Fault) {
			return lookup(func() value.Value { return x.getitem(v, key) })
		},
	}))
}

// strFault passes a string through, or records the fault.
func (x *exec) strFault(s *value.Str, fault *value.Fault) value.Value {
	if fault != nil {
		return x.fail(fault)
	}
	return s
}

func strip(name string, left, right bool) methodFunc {
	return method(func(x *exec, s *value.Str, a args) value.Value {
		if !x.positional(a, name, 0, 1) {
			return undefined
		}
		var v value.Value
		if len(a.pos) == 1 {
			v = a.pos[0]
		}
		set, ok := x.chars(v, name)
		if !ok {
			return undefined
		}
		return s.Strip(&x.lim.Limits, set, left, right)
	})
}

func split(name string, fromRight bool) methodFunc {
	return method(func(x *exec, s *value.Str, a args) value.Value {
		p, ok := x.bind(a, name, 0, "sep", "maxsplit")
		if !ok {
			return undefined
		}
		max := int64(-1)
		if p[1] != nil {
			if max, ok = x.intArg(p[1]); !ok {
				return undefined
			}
		}
		sep, ok := x.chars(p[0], name)
		if !ok {
			return undefined
		}
		var l *value.List
		var fault *value.Fault
		switch {
		case sep == nil:
			l, fault = s.Fields(&x.lim.Limits, max, fromRight)
		case sep.S == "":
			return x.failf(value.Other, "empty separator")
		default:
			l, fault = s.Split(&x.lim.Limits, sep.S, max, fromRight)
		}
		if fault != nil {
			return x.fail(fault)
		}
		x.step(len(l.Items))
		return l
	})
}

func partition(name string, last bool) methodFunc {
	return method(func(x *exec, s *value.Str, a args) value.Value {
		sep, ok := x.oneStr(a, name)
		if !ok {
			return undefined
		}
		if sep.S == "" {
			return x.failf(value.Other, "empty separator")
		}
		x.make(len(s.S)/4 + 200)
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

// search reads the arguments (sub, start, stop).
func (x *exec) search(a args, name string) (sub *value.Str, start, stop *int64, ok bool) {
	if !x.positional(a, name, 1, 3) {
		return nil, nil, nil, false
	}
	if sub, ok = x.strArg(a.pos[0]); !ok {
		return nil, nil, nil, false
	}
	if len(a.pos) > 1 {
		start = x.optInt(a.pos[1])
	}
	if len(a.pos) > 2 {
		stop = x.optInt(a.pos[2])
	}
	return sub, start, stop, x.err == nil
}

func find(name string, last, must bool) methodFunc {
	return method(func(x *exec, s *value.Str, a args) value.Value {
		sub, start, stop, ok := x.search(a, name)
		if !ok {
			return undefined
		}
		i := s.Find(&x.lim.Limits, sub.S, start, stop, last)
		if i < 0 && must {
			return x.failf(value.Other, "substring not found")
		}
		return value.NewInt(i)
	})
}

func affix(name string, suffix bool) methodFunc {
	return method(func(x *exec, s *value.Str, a args) value.Value {
		if !x.positional(a, name, 1, 3) {
			return undefined
		}
		var start, stop *int64
		if len(a.pos) > 1 {
			start = x.optInt(a.pos[1])
		}
		if len(a.pos) > 2 {
			stop = x.optInt(a.pos[2])
		}
		switch p := a.pos[0].(type) {
		case *value.Str:
			return value.NewBool(s.HasAffix(&x.lim.Limits, p.S, start, stop, suffix))
		case *value.List:
			if !p.Tuple {
				break
			}
			for _, it := range p.Items {
				if !x.step(1) {
					return undefined
				}
				t, ok := it.(*value.Str)
				if !ok {
					return x.failf(value.Type, "tuple for %s must only contain str, not %s", name, it.TypeName())
				}
				if s.HasAffix(&x.lim.Limits, t.S, start, stop, suffix) {
					return value.True
				}
			}
			return value.False
		}
		return x.failf(value.Type, "%s first arg must be str or a tuple of str, not %s", name, a.pos[0].TypeName())
	})
}

func pad(name string, sides func(n, width int64) (int64, int64)) methodFunc {
	return method(func(x *exec, s *value.Str, a args) value.Value {
		if !x.positional(a, name, 1, 2) {
			return undefined
		}
		width, ok := x.intArg(a.pos[0])
		if !ok {
			return undefined
		}
		fill := value.Lit(" ")
		if len(a.pos) == 2 {
			if fill, ok = x.strArg(a.pos[1]); !ok {
				return undefined
			}
			if fill.RuneCount() != 1 {
				return x.failf(value.Type, "The fill character must be exactly one character long")
			}
		}
		x.spend(len(s.S))
		n := max(width-int64(s.RuneCount()), 0)
		left, right := sides(n, width)
		return x.strFault(s.Pad(&x.lim.Limits, fill, left, right))
	})
}
