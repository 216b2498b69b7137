package builtin

import (
	"slices"

	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

func filterBatch(x *rt.Context, v value.Value, p rt.Params) value.Value {
	return generator(x, v, func() func() value.Value { return each(batches(x, v, p[0], p[1])) })
}

func batches(x *rt.Context, v, size, fill value.Value) []value.Value {
	items := x.Elements(v)
	if !x.Make(80 * len(items)) {
		return nil
	}
	var groups []value.Value
	var row []value.Value
	for _, it := range items {
		if value.Equal(x.Lim, value.NewInt(int64(len(row))), size) {
			groups = append(groups, &value.List{Items: row})
			row = nil
		}
		row = append(row, it)
	}
	if len(row) > 0 {
		if !value.IsNone(fill) {
			n := x.Operand(size, 0)
			if n > int64(x.Lim.Items) {
				x.Failf(value.Limit, "batch of %d items, more than %d", n, x.Lim.Items)
				return nil
			}
			if !x.Make(16 * int(n)) {
				return nil
			}
			row = slices.Grow(row, max(0, int(n)-len(row)))
			for int64(len(row)) < n {
				row = append(row, fill)
			}
		}
		groups = append(groups, &value.List{Items: row})
	}
	return groups
}

// generator returns a generator over v. As in Python, nothing happens until its first item is requested; then start
// returns the function that returns the items, nil at the end.
func generator(x *rt.Context, v value.Value, start func() func() value.Value) *value.Iter {
	var nextItem func() value.Value
	return &value.Iter{Name: "generator", Next: func() value.Value {
		if nextItem == nil {
			nextItem = start()
		}
		return nextItem()
	}, Depth: x.Nested(v)}
}

// each returns an iterator over items.
func each(items []value.Value) func() value.Value {
	nextItem, _ := value.Iterate(&value.List{Items: items})
	return nextItem
}

// iterate returns an iterator over the items of v, which is empty after a failure.
func iterate(x *rt.Context, v value.Value) func() value.Value {
	nextItem, _ := value.Iterate(v)
	if nextItem == nil {
		x.Failf(value.Type, "'%s' object is not iterable", v.TypeName())
		return each(nil)
	}
	return nextItem
}

func filterSlice(x *rt.Context, v value.Value, p rt.Params) value.Value {
	return generator(x, v, func() func() value.Value { return each(sliced(x, v, p[0], p[1])) })
}

func sliced(x *rt.Context, v, count, fill value.Value) []value.Value {
	seq, n := x.Elements(v), x.Operand(count, 0)
	if n == 0 {
		x.Failf(value.Other, "integer division or modulo by zero")
		return nil
	}
	if n > int64(x.Lim.Items) {
		x.Failf(value.Limit, "%d slices, more than %d", n, x.Lim.Items)
		return nil
	}
	if !x.Make(80*int(n) + 16*len(seq)) {
		return nil
	}
	var out []value.Value
	for i := int64(0); i < n; i++ {
		per, extra := int64(len(seq))/n, int64(len(seq))%n
		start := i*per + min(i, extra)
		end := (i+1)*per + min(i+1, extra)
		part := append([]value.Value{}, seq[start:end]...)
		if !value.IsNone(fill) && i >= extra {
			part = append(part, fill)
		}
		out = append(out, &value.List{Items: part})
	}
	return out
}

func filterFirst(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	if r := iterate(x, v)(); r != nil {
		return r
	}
	return &value.Undefined{Hint: "No first item, sequence was empty."}
}

func filterLast(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	switch s := v.(type) {
	case *value.Str:
		if c := py.Char(s, x.Lim, -1); c != nil {
			return c
		}
	case *value.List, *value.Dict, *value.Range, *value.View, *value.Bytes:
		if items := x.Elements(v); len(items) > 0 {
			return items[len(items)-1]
		}
	case *value.Undefined:
	default:
		return x.Failf(value.Type, "'%s' object is not reversible", v.TypeName())
	}
	return &value.Undefined{Hint: "No last item, sequence was empty."}
}

func filterList(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	return &value.List{Items: x.Elements(v)}
}

func filterItems(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	return generator(x, v, func() func() value.Value {
		switch d := v.(type) {
		case *value.Undefined:
			return each(nil)
		case *value.Dict:
			return iterate(x, &value.View{D: d, Kind: "dict_items"})
		}
		x.Failf(value.Type, "Can only get item pairs from a mapping.")
		return each(nil)
	})
}

func filterReverse(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	switch s := v.(type) {
	case *value.Str:
		return py.Substring(s, x.Lim, nil, nil, -1)
	case *value.Undefined:
		return &value.Iter{Name: "reversed", Next: each(nil)}
	}
	items := x.Elements(v)
	if x.Err != nil {
		if x.Err.Class == value.Type {
			x.Err = value.Faultf(value.Other, "argument must be iterable")
		}
		return value.Stopped
	}
	if !x.Make(16 * len(items)) {
		return value.Stopped
	}
	out := slices.Clone(items)
	slices.Reverse(out)
	switch v.(type) {
	case *value.List, *value.Dict, *value.Range, *value.View, *value.Bytes:
		return &value.Iter{Name: "list_reverseiterator", Next: each(out)}
	}
	return &value.List{Items: out}
}

func filterSum(x *rt.Context, v value.Value, p rt.Params) value.Value {
	items := x.Elements(v)
	var total value.Value = value.NewInt(0)
	if p[1] != nil {
		total = p[1]
		if _, ok := total.(*value.Str); ok {
			return x.Failf(value.Type, "sum() can't sum strings [use ''.join(seq) instead]")
		}
	}
	get := attrGetter(x, p[0], false, nil)
	for _, it := range items {
		if !x.Step(1) {
			return value.Stopped
		}
		total = py.Arith(x.Lim, "+", total, get(it))
	}
	return total
}

func filterJoin(x *rt.Context, v value.Value, p rt.Params) value.Value {
	sep := value.Empty
	if p[0] != nil {
		sep = x.Str(p[0])
	}
	items := x.Elements(v)
	if !x.Make(8 * len(items)) {
		return value.Stopped
	}
	get := attrGetter(x, p[1], false, nil)
	strs := make([]*value.Str, len(items))
	for i, it := range items {
		if strs[i] = x.Str(get(it)); !x.Step(1) {
			return value.Stopped
		}
	}
	return py.Join(x.Lim, sep, strs)
}
