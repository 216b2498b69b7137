package eval

import "github.com/turnpack/turnpack/tokenize/chat/internal/value"

func filterBatch(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_batch", 1, "linecount", "fill_with")
	if !ok {
		return undefined
	}
	return x.deferred(v, func() []value.Value { return x.batches(v, p[0], p[1]) })
}

func (x *exec) batches(v, size, fill value.Value) []value.Value {
	items, ok := elements(x, v)
	if !ok {
		return nil
	}
	if !x.make(80 * len(items)) {
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
			if !x.make(16 * int(n)) {
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

// maxNested bounds how many iterators walk over each other: each asks the next one.
const maxNested = 200

// nested is the depth of an iterator over v, which fails where there are too many.
func (x *exec) nested(v value.Value) int {
	depth := 0
	switch v := v.(type) {
	case *value.Iter:
		depth = v.Depth + 1
	case *Loop:
		depth = v.nested + 1
	}
	if depth > maxNested {
		x.failf(value.Limit, "more than %d iterators over each other", maxNested)
	}
	return depth
}

// deferred is a generator whose items are made when the first one is asked for.
func (x *exec) deferred(v value.Value, items func() []value.Value) value.Value {
	var g *value.Iter
	return &value.Iter{Name: "generator", Next: func() value.Value {
		if g == nil {
			g = generator(items())
		}
		return g.Next()
	}, Depth: x.nested(v)}
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
	return x.deferred(v, func() []value.Value { return x.slices(v, p[0], p[1]) })
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
	if !x.make(80*int(n) + 16*len(seq)) {
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
		if c := s.Char(&x.lim.Limits, -1); c != nil {
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
		return s.Substring(&x.lim.Limits, nil, nil, -1)
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
	if !x.make(16 * len(items)) {
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
		if !x.step(1) {
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
	if !x.make(8 * len(items)) {
		return undefined
	}
	strs := make([]*value.Str, len(items))
	for i, it := range items {
		if strs[i] = x.str(get(it)); !x.step(1) {
			return undefined
		}
	}
	return x.strFault(value.Join(&x.lim.Limits, sep, strs))
}
