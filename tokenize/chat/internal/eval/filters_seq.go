package eval

import (
	"strings"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

func filterBatch(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_batch", 1, "linecount", "fill_with")
	if !ok {
		return undefined
	}
	return deferred(func() []value.Value { return x.batches(v, p[0], p[1]) })
}

func (x *exec) batches(v, size, fill value.Value) []value.Value {
	items, ok := elements(x, v)
	if !ok {
		return nil
	}
	var groups []value.Value
	var row []value.Value
	for _, it := range items {
		if eq, _ := value.Equal(&x.lim.Limits, value.NewInt(int64(len(row))), size); eq {
			groups = append(groups, &value.List{Items: row})
			row = nil
		}
		row = append(row, it)
	}
	if len(row) > 0 {
		if !isNone(fill) {
			n, ok := x.operandArg(size)
			if !ok {
				return nil
			}
			if n > int64(x.lim.Items) {
				x.failf(value.Limit, "batch of %d items, more than %d", n, x.lim.Items)
				return nil
			}
			for int64(len(row)) < n {
				row = append(row, fill)
			}
		}
		groups = append(groups, &value.List{Items: row})
	}
	return groups
}

// deferred is a generator whose items are made when the first one is asked for.
func deferred(make func() []value.Value) *value.Iter {
	var g *value.Iter
	return &value.Iter{Name: "generator", Next: func() value.Value {
		if g == nil {
			g = generator(make())
		}
		return g.Next()
	}}
}

// generator is a one-shot iterator over items.
func generator(items []value.Value) *value.Iter {
	i := 0
	return &value.Iter{Name: "generator", Next: func() value.Value {
		if i >= len(items) {
			return nil
		}
		i++
		return items[i-1]
	}}
}

func filterSlice(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_slice", 1, "slices", "fill_with")
	if !ok {
		return undefined
	}
	return deferred(func() []value.Value { return x.slices(v, p[0], p[1]) })
}

func (x *exec) slices(v, count, fill value.Value) []value.Value {
	seq, ok1 := elements(x, v)
	n, ok2 := x.operandArg(count)
	if !ok1 || !ok2 {
		return nil
	}
	if n == 0 {
		x.failf(value.Other, "integer division or modulo by zero")
		return nil
	}
	if n > int64(x.lim.Items) {
		x.failf(value.Limit, "%d slices, more than %d", n, x.lim.Items)
		return nil
	}
	var out []value.Value
	for i := int64(0); i < n; i++ {
		per, extra := int64(len(seq))/n, int64(len(seq))%n
		start := i*per + min(i, extra)
		end := (i+1)*per + min(i+1, extra)
		part := append([]value.Value{}, seq[start:end]...)
		if !isNone(fill) && i >= extra {
			part = append(part, fill)
		}
		out = append(out, &value.List{Items: part})
	}
	return out
}

func filterFirst(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "do_first", 0); !ok {
		return undefined
	}
	nextItem, _, fault := value.Iterate(v)
	if fault != nil {
		return x.fail(fault)
	}
	if r := nextItem(); r != nil {
		return r
	}
	return &value.Undefined{Hint: "No first item, sequence was empty."}
}

func filterLast(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "do_last", 0); !ok {
		return undefined
	}
	switch s := v.(type) {
	case *value.Str:
		if c := s.Char(-1); c != nil {
			return c
		}
	case *value.List, *value.Dict, *value.Range, *value.View, *value.Bytes:
		items, ok := elements(x, v)
		if !ok {
			return undefined
		}
		if len(items) > 0 {
			return items[len(items)-1]
		}
	case *value.Undefined:
	default:
		return x.failf(value.Type, "'%s' object is not reversible", v.TypeName())
	}
	return &value.Undefined{Hint: "No last item, sequence was empty."}
}

func filterList(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "do_list", 0); !ok {
		return undefined
	}
	items, ok := elements(x, v)
	if !ok {
		return undefined
	}
	if items == nil {
		items = []value.Value{}
	}
	return &value.List{Items: items}
}

func filterItems(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "do_items", 0); !ok {
		return undefined
	}
	switch d := v.(type) {
	case *value.Undefined:
		return generator(nil)
	case *value.Dict:
		view := &value.View{D: d, Kind: "dict_items"}
		nextItem, _, _ := value.Iterate(view)
		return &value.Iter{Name: "generator", Next: nextItem}
	}
	// The generator fails when it is first asked for an item.
	return &value.Iter{Name: "generator", Next: func() value.Value {
		x.failf(value.Type, "Can only get item pairs from a mapping.")
		return nil
	}}
}

func filterReverse(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "do_reverse", 0); !ok {
		return undefined
	}
	switch s := v.(type) {
	case *value.Str:
		return s.Substring(nil, nil, -1)
	case *value.Undefined:
		return &value.Iter{Name: "reversed", Next: func() value.Value { return nil }}
	}
	items, _ := elements(x, v)
	if x.err != nil {
		if x.err.Class == value.Type {
			x.err = value.Faultf(value.Other, "argument must be iterable")
		}
		return undefined
	}
	out := make([]value.Value, len(items))
	for i, it := range items {
		out[len(items)-1-i] = it
	}
	switch v.(type) {
	case *value.List, *value.Dict, *value.Range, *value.View, *value.Bytes:
		g := generator(out)
		g.Name = "list_reverseiterator"
		return g
	}
	return &value.List{Items: out}
}

// attrGetter returns the function that fetches "a.b.0" from an item.
func (x *exec) attrGetter(attr value.Value, fold bool, def value.Value) func(value.Value) value.Value {
	var parts []value.Value
	switch at := attr.(type) {
	case nil, *value.None:
	case *value.Str:
		for _, p := range strings.Split(at.S, ".") {
			if d, _ := value.Lit(p).Is("isdigit"); d {
				if n, ok := value.ParseInt(p, 10); ok {
					parts = append(parts, n)
					continue
				}
			}
			parts = append(parts, value.Lit(p))
		}
	default:
		parts = []value.Value{attr}
	}
	return func(v value.Value) value.Value {
		for _, p := range parts {
			v = x.getitem(v, p)
			if !isNone(def) && isUndefined(v) {
				v = def
			}
		}
		if s, ok := v.(*value.Str); ok && fold {
			return s.Lower()
		}
		return v
	}
}

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
	items := make([]value.Value, d.Len())
	for i := range items {
		items[i] = &value.List{Items: []value.Value{d.Key(i), d.Val(i)}, Tuple: true}
	}
	return x.sorted(items, p[2], func(it value.Value) value.Value {
		key := it.(*value.List).Items[pos]
		if s, ok := key.(*value.Str); ok && fold {
			return s.Lower()
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
	keys := make([]value.Value, len(items))
	for i, it := range items {
		keys[i] = key(it)
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
			old, fault := seen.Get(key)
			if fault != nil {
				x.fail(fault)
				return nil
			}
			if old == nil {
				x.fail(seen.Set(key, value.True))
				return it
			}
		}
		return nil
	}}
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

func filterSum(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_sum", 0, "attribute", "start")
	if !ok {
		return undefined
	}
	items, ok := elements(x, v)
	if !ok {
		return undefined
	}
	var total value.Value = value.NewInt(0)
	if p[1] != nil {
		total = p[1]
		if _, ok := total.(*value.Str); ok {
			return x.failf(value.Type, "sum() can't sum strings [use ''.join(seq) instead]")
		}
	}
	get := x.attrGetter(p[0], false, nil)
	for _, it := range items {
		if x.err != nil {
			return undefined
		}
		total = x.val(value.Arith(&x.lim.Limits, "+", total, get(it)))
	}
	return total
}

func filterJoin(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_join", 0, "d", "attribute")
	if !ok {
		return undefined
	}
	sep := value.Empty
	if p[0] != nil {
		sep = x.str(p[0])
	}
	items, ok := elements(x, v)
	if !ok {
		return undefined
	}
	get := x.attrGetter(p[1], false, nil)
	strs := make([]*value.Str, len(items))
	for i, it := range items {
		strs[i] = x.str(get(it))
	}
	return x.strFault(value.Join(&x.lim.Limits, sep, strs))
}

func filterMap(x *exec, v value.Value, a args) value.Value {
	pos := append([]value.Value(nil), a.pos...)
	var each func(value.Value) value.Value
	if at := a.get("attribute"); len(pos) == 0 && at != nil {
		for _, k := range a.kw {
			if k.name != "attribute" && k.name != "default" {
				return failingIter(x, v, value.Other, "Unexpected keyword argument '"+k.name+"'")
			}
		}
		each = x.attrGetter(at, false, a.get("default"))
	} else {
		if len(pos) == 0 {
			return failingIter(x, v, value.Other, "map requires a filter argument")
		}
		name, ok := pos[0].(*value.Str)
		rest := args{pos: pos[1:], kw: a.kw}
		each = func(it value.Value) value.Value {
			var f filterFunc
			if ok {
				f = x.lib.filters[name.S]
			}
			if f == nil {
				x.fail(value.Hashable(pos[0]))
				return x.failf(value.Other, "No filter named %s.", value.ReprString(pos[0]))
			}
			return f(x, it, rest)
		}
	}
	return x.lazy(v, func(it value.Value) value.Value { return each(it) })
}

// failingIter is a generator over v that fails when it is first asked for an
// item, if there are any.
func failingIter(x *exec, v value.Value, c value.Class, msg string) *value.Iter {
	return &value.Iter{Name: "generator", Next: func() value.Value {
		if value.Truth(v) {
			x.fail(&value.Fault{Class: c, Msg: msg})
		}
		return nil
	}}
}

// lazy is a generator of f of each item, without those for which f gives nil.
// As in Jinja nothing happens before the first item is asked for.
func (x *exec) lazy(v value.Value, f func(value.Value) value.Value) *value.Iter {
	var source func() value.Value
	return &value.Iter{Name: "generator", Next: func() value.Value {
		if source == nil {
			source = func() value.Value { return nil }
			if value.Truth(v) {
				s, _, fault := value.Iterate(v)
				if fault != nil {
					x.fail(fault)
					return nil
				}
				source = s
			}
		}
		for it := source(); it != nil && x.step(1); it = source() {
			r := f(it)
			if x.err != nil {
				return nil
			}
			if r != nil {
				return r
			}
		}
		return nil
	}}
}

// selection is select, reject, selectattr and rejectattr.
func selection(byAttr, keep bool) filterFunc {
	return func(x *exec, v value.Value, a args) value.Value {
		pos := append([]value.Value(nil), a.pos...)
		get := func(it value.Value) value.Value { return it }
		if byAttr {
			if len(pos) == 0 {
				return failingIter(x, v, value.Other, "Missing parameter for attribute name")
			}
			get = x.attrGetter(pos[0], false, nil)
			pos = pos[1:]
		}
		holds := value.Truth
		if len(pos) > 0 {
			name, ok := pos[0].(*value.Str)
			rest := args{pos: pos[1:], kw: a.kw}
			holds = func(it value.Value) bool {
				var t testFunc
				if ok {
					t = x.lib.tests[name.S]
				}
				if t == nil {
					x.fail(value.Hashable(pos[0]))
					x.failf(value.Other, "No test named %s.", value.ReprString(pos[0]))
					return false
				}
				return t(x, it, rest)
			}
		}
		return x.lazy(v, func(it value.Value) value.Value {
			if holds(get(it)) == keep {
				return it
			}
			return nil
		})
	}
}
