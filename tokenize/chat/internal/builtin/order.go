package builtin

import (
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

func filterDictsort(x *rt.Context, v value.Value, p rt.Params) value.Value {
	pos := 0
	if p[1] != nil {
		by, _ := p[1].(*value.Str)
		switch {
		case by != nil && by.S == "key":
		case by != nil && by.S == "value":
			pos = 1
		default:
			return x.Failf(value.Other, `You can only sort by either "key" or "value"`)
		}
	}
	d, ok := v.(*value.Dict)
	if !ok {
		return x.NoAttr(v, "items")
	}
	fold := !p.Flag(0, false)
	if !x.Step(d.Len()) || !x.Make(160*d.Len()) {
		return value.Stopped
	}
	view := &value.View{D: d, Kind: "dict_items"}
	items := make([]value.Value, d.Len())
	for i := range items {
		items[i] = view.At(i)
	}
	return sorted(x, items, p[2], func(it value.Value) value.Value {
		key := it.(*value.List).Items[pos]
		if s, ok := key.(*value.Str); ok && fold {
			return py.Lower(s, x.Lim)
		}
		return key
	})
}

func sorted(x *rt.Context, items []value.Value, reverse value.Value, key func(value.Value) value.Value) value.Value {
	descending := x.Int(reverse, 0)
	if !x.Make(120 * len(items)) {
		return value.Stopped
	}
	keys := make([]value.Value, len(items))
	for i, it := range items {
		if keys[i] = key(it); !x.Step(1) {
			return value.Stopped
		}
	}
	return &value.List{Items: value.Sort(x.Lim, items, keys, descending != 0)}
}

func filterSort(x *rt.Context, v value.Value, p rt.Params) value.Value {
	items := x.Elements(v)
	fold := !p.Flag(1, false)
	names := []value.Value{p[2]}
	if s, ok := p[2].(*value.Str); ok {
		names = nil
		for _, part := range strings.Split(s.S, ",") {
			names = append(names, value.Lit(part))
		}
	}
	var getters []func(value.Value) value.Value
	for _, name := range names {
		getters = append(getters, attrGetter(x, name, fold, nil))
	}
	return sorted(x, items, p[0], func(it value.Value) value.Value {
		key := &value.List{}
		for _, g := range getters {
			key.Items = append(key.Items, g(it))
		}
		return key
	})
}

func filterUnique(x *rt.Context, v value.Value, p rt.Params) value.Value {
	get := attrGetter(x, p[1], !p.Flag(0, false), nil)
	seen := value.NewDict(8)
	return generator(x, v, func() func() value.Value {
		return mapped(x, iterate(x, v), func(it value.Value) value.Value {
			key := get(it)
			if seen.Get(x.Lim, key) != nil {
				return nil
			}
			seen.Set(x.Lim, key, value.True)
			return it
		})
	})
}

// extreme returns the filter min or max, which returns the first of several best items.
func extreme(op string) func(*rt.Context, value.Value, rt.Params) value.Value {
	return func(x *rt.Context, v value.Value, p rt.Params) value.Value {
		items := x.Elements(v)
		if len(items) == 0 {
			return &value.Undefined{Hint: "No aggregated item, sequence was empty."}
		}
		get := attrGetter(x, p[1], !p.Flag(0, false), nil)
		best, bestKey := items[0], get(items[0])
		for _, it := range items[1:] {
			if key := get(it); value.Compare(x.Lim, op, key, bestKey) {
				best, bestKey = it, key
			}
		}
		return best
	}
}

func filterGroupby(x *rt.Context, v value.Value, p rt.Params) value.Value {
	items := x.Elements(v)
	get := attrGetter(x, p[0], !p.Flag(2, false), p[1])
	real := attrGetter(x, p[0], false, p[1])
	if !x.Make(160 * len(items)) {
		return value.Stopped
	}
	keys := make([]value.Value, len(items))
	for i, it := range items {
		keys[i] = get(it)
	}
	out := []value.Value{}
	var last value.Value
	var members *value.List
	for _, it := range value.Sort(x.Lim, items, keys, false) {
		key := get(it)
		if last != nil && value.Equal(x.Lim, last, key) {
			members.Items = append(members.Items, it)
			continue
		}
		last = key
		members = &value.List{Items: []value.Value{it}}
		out = append(out, &value.List{Items: []value.Value{real(it), members}, Tuple: true, Group: true})
	}
	return &value.List{Items: out}
}
