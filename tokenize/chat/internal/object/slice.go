package object

import (
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Slice implements v[start:stop:step]; nil parts were omitted.
func Slice(x *rt.Context, v value.Value, parts [3]value.Value) value.Value {
	if x.Err != nil {
		return value.Stopped
	}
	switch v := v.(type) {
	case *value.Str, *value.List, *value.Range, *value.Bytes:
	case *value.Undefined:
		return x.Fail(v.Use())
	case *value.Dict:
		return x.Failf(value.Type, "unhashable type: 'slice'")
	default:
		return x.Failf(value.Type, "'%s' object is not subscriptable", v.TypeName())
	}
	step := int64(1)
	if p := x.OptInt(parts[2]); p != nil { // step first, as in Python
		step = *p
	}
	if step == 0 {
		return x.Failf(value.Other, "slice step cannot be zero")
	}
	start, stop := x.OptInt(parts[0]), x.OptInt(parts[1])
	if !x.Make(rt.CallSize) {
		return value.Stopped
	}
	switch v := v.(type) {
	case *value.Str:
		return py.Substring(v, x.Lim, start, stop, step)
	case *value.List:
		first, n := py.SliceIndices(len(v.Items), start, stop, step)
		if step == 1 {
			return &value.List{Items: v.Items[first : first+n : first+n], Tuple: v.Tuple}
		}
		if !x.Make(16*n + 64) {
			return value.Stopped
		}
		items := make([]value.Value, n)
		for k, i := 0, first; k < n; k, i = k+1, i+int(step) {
			items[k] = v.Items[i]
		}
		return &value.List{Items: items, Tuple: v.Tuple}
	case *value.Bytes:
		first, n := py.SliceIndices(len(v.B), start, stop, step)
		if !x.Make(2 * n) {
			return value.Stopped
		}
		b := make([]byte, 0, n)
		for k, i := 0, first; k < n; k, i = k+1, i+int(step) {
			b = append(b, v.B[i])
		}
		return &value.Bytes{B: string(b), F: v.F}
	}
	r := v.(*value.Range)
	a, b := py.SliceBounds(r.Len(), start, stop, step)
	return &value.Range{Start: r.Start + a*r.Step, Stop: r.Start + b*r.Step, Step: r.Step * step, F: r.F}
}
