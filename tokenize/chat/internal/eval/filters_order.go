package eval

import (
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

func filterDictsort(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_dictsort", 0, "case_sensitive", "by", "reverse")
	if !ok {
		return undefined
	}
	pos := 0
	if p[1] != nil {
		by, _ := p[1].(*value.Str)
		switch {
		case by != nil && by.S == "key":
		case by != nil && by.S == "value":
			pos = 1
		default:
			return x.failf(value.Other, `You can only sort by either "key" or "value"`)
		}
	}
	d, ok := v.(*value.Dict)
	if !ok {
		if u, ok := v.(*value.Undefined); ok {
			return x.fail(u.Use())
		}
		return x.failf(value.Other, "'%s' object has no attribute 'items'", v.TypeName())
	}
	if !x.step(d.Len()) {
		return undefined
	}
	fold := p[0] == nil || !value.Truth(p[0])
	if !x.make(160 * d.Len()) {
		return undefined
	}
	items := make([]value.Value, d.Len())
	for i := range items {
		items[i] = &value.List{Items: []value.Value{d.Key(i), d.Val(i)}, Tuple: true}
	}
	return x.sorted(items, p[2], func(it value.Value) value.Value {
		key := it.(*value.List).Items[pos]
		if s, ok := key.(*value.Str); ok && fold {
			return s.Lower(&x.lim.Limits)
		}
		return key
	})
}

func (x *exec) sorted(items []value.Value, reverse value.Value, key func(value.Value) value.Value) value.Value {
	descending := int64(0)
	if reverse != nil {
		descending, _ = x.intArg(reverse)
	}
	if x.err != nil {
		return undefined
	}
	if !x.make(120 * len(items)) {
		return undefined
	}
	keys := make([]value.Value, len(items))
	for i, it := range items {
		if keys[i] = key(it); !x.step(1) {
			return undefined
		}
	}
	if x.err != nil {
		return undefined
	}
	out, fault := value.Sort(&x.lim.Limits, items, keys, descending != 0)
	if fault != nil {
		return x.fail(fault)
	}
	return &value.List{Items: out}
}

func filterSort(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_sort", 0, "reverse", "case_sensitive", "attribute")
	if !ok {
		return undefined
	}
	items, ok := elements(x, v)
	if !ok {
		return undefined
	}
	fold := p[1] == nil || !value.Truth(p[1])
	var getters []func(value.Value) value.Value
	if s, ok := p[2].(*value.Str); ok {
		for _, part := range strings.Split(s.S, ",") {
			getters = append(getters, x.attrGetter(value.Lit(part), fold, nil))
		}
	} else {
		getters = append(getters, x.attrGetter(p[2], fold, nil))
	}
	return x.sorted(items, p[0], func(it value.Value) value.Value {
		key := &value.List{}
		for _, g := range getters {
			key.Items = append(key.Items, g(it))
		}
		return key
	})
}

func filterUnique(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_unique", 0, "case_sensitive", "attribute")
	if !ok {
		return undefined
	}
	get := x.attrGetter(p[1], p[0] == nil || !value.Truth(p[0]), nil)
	seen := value.NewDict(8)
	var source func() value.Value
	return &value.Iter{Name: "generator", Next: func() value.Value {
		if source == nil {
			var fault *value.Fault
			if source, _, fault = value.Iterate(v); fault != nil {
				x.fail(fault)
				source = func() value.Value { return nil }
			}
		}
		for it := source(); it != nil && x.step(1); it = source() {
			key := get(it)
			old, fault := seen.Get(&x.lim.Limits, key)
			if fault != nil {
				x.fail(fault)
				return nil
			}
			if old == nil {
				x.fail(seen.Set(&x.lim.Limits, key, value.True))
				return it
			}
		}
		return nil
	}, Depth: x.nested(v)}
}

// extreme is min and max: the first of the best items.
func extreme(name, op string) filterFunc {
	return func(x *exec, v value.Value, a args) value.Value {
		p, ok := x.bind(a, "do_"+name, 0, "case_sensitive", "attribute")
		if !ok {
			return undefined
		}
		items, ok := elements(x, v)
		if !ok {
			return undefined
		}
		if len(items) == 0 {
			return &value.Undefined{Hint: "No aggregated item, sequence was empty."}
		}
		get := x.attrGetter(p[1], p[0] == nil || !value.Truth(p[0]), nil)
		best, bestKey := items[0], get(items[0])
		for _, it := range items[1:] {
			key := get(it)
			better, fault := value.Compare(&x.lim.Limits, op, key, bestKey)
			if fault != nil {
				return x.fail(fault)
			}
			if better {
				best, bestKey = it, key
			}
		}
		return best
	}
}

func filterGroupby(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_groupby", 1, "attribute", "default", "case_sensitive")
	if !ok {
		return undefined
	}
	items, ok := elements(x, v)
	if !ok {
		return undefined
	}
	fold := p[2] == nil || !value.Truth(p[2])
	get := x.attrGetter(p[0], fold, p[1])
	real := x.attrGetter(p[0], false, p[1])
	if !x.make(160 * len(items)) {
		return undefined
	}
	keys := make([]value.Value, len(items))
	for i, it := range items {
		keys[i] = get(it)
	}
	if x.err != nil {
		return undefined
	}
	sorted, fault := value.Sort(&x.lim.Limits, items, keys, false)
	if fault != nil {
		return x.fail(fault)
	}
	var out []value.Value
	var last value.Value
	var members *value.List
	for _, it := range sorted {
		key := get(it)
		if last != nil {
			eq, fault := value.Equal(&x.lim.Limits, last, key)
			if fault != nil {
				return x.fail(fault)
			}
			if eq {
				members.Items = append(members.Items, it)
				continue
			}
		}
		last = key
		members = &value.List{Items: []value.Value{it}}
		out = append(out, &value.List{Items: []value.Value{real(it), members}, Tuple: true, Group: true})
	}
	if out == nil {
		out = []value.Value{}
	}
	return &value.List{Items: out}
}
