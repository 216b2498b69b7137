package builtin

import (
	"math"
	"math/big"
	"strconv"

	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

func filterAbs(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	if !x.Lim.Integer(v) {
		return value.Stopped
	}
	switch n := v.(type) {
	case *value.Float:
		return &value.Float{V: math.Abs(n.V), F: n.F}
	case *value.Int:
		return value.Made(value.NewBig(new(big.Int).Abs(value.BigOf(n))), n.F)
	case *value.Bool:
		return py.Plus(n)
	}
	return x.Failf(value.Type, "bad operand type for abs(): '%s'", v.TypeName())
}

// conversion is the approximate work of reading, rounding or writing a float with all its digits.
const conversion = 20_000

func filterInt(x *rt.Context, v value.Value, p rt.Params) value.Value {
	n, ok := toInteger(x, v, p[1])
	switch {
	case ok:
		return value.Made(n, value.Origin(v))
	case p[0] != nil:
		return p[0]
	}
	return value.NewInt(0)
}

// toInteger returns the integer that v stands for, truncated, or false if v is not a number.
func toInteger(x *rt.Context, v, base value.Value) (value.Value, bool) {
	switch n := v.(type) {
	case *value.Undefined:
		return x.Fail(n.Use()), true
	case *value.Int, *value.Bool:
		return py.Plus(n), true
	case *value.Float:
		if math.IsInf(n.V, 0) {
			return x.Failf(value.Other, "cannot convert float infinity to integer"), true
		}
		return truncated(x, n.V)
	case *value.Str:
		if b, ok := intBase(base); ok {
			if !x.Lim.Digits(len(n.S)) {
				return value.Stopped, true
			}
			if i, ok := py.ParseInt(n.S, b); ok {
				return i, true
			}
		}
		f, ok := py.ParseFloat(n.S)
		if !ok || math.IsInf(f, 0) {
			return nil, false
		}
		return truncated(x, f)
	}
	return nil, false
}

func truncated(x *rt.Context, f float64) (value.Value, bool) {
	if math.IsNaN(f) {
		return nil, false
	}
	return py.Whole(x.Lim, math.Trunc(f)), true
}

// intBase returns the base for parsing an integer, or false if Python refuses it.
func intBase(v value.Value) (int, bool) {
	if v == nil {
		return 10, true
	}
	n, ok := value.AsInt(v)
	return int(n), ok && (n == 0 || n >= 2 && n <= 36)
}

func filterFloat(x *rt.Context, v value.Value, p rt.Params) value.Value {
	if !x.Lim.Integer(v) {
		return value.Stopped
	}
	switch n := v.(type) {
	case *value.Undefined:
		return x.Fail(n.Use())
	case *value.Float:
		return n
	case *value.Int, *value.Bool:
		return &value.Float{V: value.ToFloat(x.Lim, n), F: value.Origin(n)}
	case *value.Str:
		if f, ok := py.ParseFloat(n.S); ok {
			return &value.Float{V: f, F: n.Field()}
		}
	}
	if p[0] == nil {
		return &value.Float{}
	}
	return p[0]
}

func filterRound(x *rt.Context, v value.Value, p rt.Params) value.Value {
	if !x.Lim.Integer(v) {
		return value.Stopped
	}
	method := "common"
	if p[1] != nil {
		s, ok := p[1].(*value.Str)
		if !ok || (s.S != "common" && s.S != "ceil" && s.S != "floor") {
			value.Hashable(x.Lim, p[1])
			return x.Failf(value.Other, "method must be common, ceil or floor")
		}
		method = s.S
	}
	var precision value.Value = value.NewInt(0)
	if p[0] != nil {
		precision = p[0]
	}
	if method == "common" {
		if value.IsUndefined(v) {
			return x.Failf(value.Type, "type Undefined doesn't define __round__ method")
		}
		if value.IsNone(precision) {
			return value.Made(roundTo(x, v, nil), value.Origin(v))
		}
		n := x.Int(precision, 0)
		return value.Made(roundTo(x, v, &n), value.Origin(v))
	}
	scale := py.Arith(x.Lim, "**", value.NewInt(10), precision)
	scaled := py.Arith(x.Lim, "*", v, scale)
	if x.Err != nil {
		return value.Stopped
	}
	if f, ok := scaled.(*value.Float); ok {
		r := math.Floor(f.V)
		if method == "ceil" {
			r = math.Ceil(f.V)
		}
		x.Make(1 << 8)
		scaled = value.Made(py.Whole(x.Lim, r), f.F)
	} else if !value.IsInt(scaled) {
		return x.Failf(value.Type, "must be real number, not %s", v.TypeName())
	}
	return py.Arith(x.Lim, "/", scaled, scale)
}

// roundTo implements Python's round(v, n): half to even, on the decimal value.
func roundTo(x *rt.Context, v value.Value, n *int64) value.Value {
	switch f := v.(type) {
	case *value.Float:
		if n == nil {
			return py.Whole(x.Lim, math.RoundToEven(f.V))
		}
		if math.IsNaN(f.V) || math.IsInf(f.V, 0) || *n > 323 {
			return f
		}
		if *n < -308 {
			return &value.Float{V: math.Copysign(0, f.V)}
		}
		if !x.Spend(conversion) || !x.Make(1<<10) {
			return value.Stopped
		}
		if *n >= 0 {
			r, err := strconv.ParseFloat(strconv.FormatFloat(f.V, 'f', int(*n), 64), 64)
			if err != nil {
				return x.Failf(value.Other, "rounded value too large to represent")
			}
			return &value.Float{V: r}
		}
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(-*n), nil)
		r := new(big.Rat).SetFloat64(f.V)
		r.Quo(r, new(big.Rat).SetInt(unit))
		out, _ := new(big.Rat).SetInt(new(big.Int).Mul(roundRat(r), unit)).Float64()
		return &value.Float{V: math.Copysign(out, f.V)}
	case *value.Int, *value.Bool:
		if n == nil || *n >= 0 {
			return py.Plus(v)
		}
		if *n < -5000 {
			return value.NewInt(0)
		}
		if !x.Make(1<<10) || !x.Lim.Digits(int(-*n)) {
			return value.Stopped
		}
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(-*n), nil)
		r := new(big.Rat).SetFrac(value.BigOf(v), unit)
		return value.NewBig(new(big.Int).Mul(roundRat(r), unit))
	}
	return x.Failf(value.Type, "type %s doesn't define __round__ method", v.TypeName())
}

// roundRat rounds half to even.
func roundRat(r *big.Rat) *big.Int {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	c := new(big.Int).Lsh(m, 1).Cmp(r.Denom())
	if c > 0 || (c == 0 && q.Bit(0) == 1) {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func filterFilesize(x *rt.Context, v value.Value, p rt.Params) value.Value {
	var size float64
	if !x.Lim.Integer(v) {
		return value.Stopped
	}
	switch n := v.(type) {
	case *value.Str:
		var ok bool
		if size, ok = py.ParseFloat(n.S); !ok {
			return x.Failf(value.Other, "could not convert string to float: %s", value.ReprString(n))
		}
	case *value.Undefined:
		return x.Fail(n.Use())
	default:
		size = value.ToFloat(x.Lim, v)
	}
	if math.IsInf(size, -1) {
		return x.Failf(value.Other, "cannot convert float infinity to integer")
	}
	return value.Derived(fileSize(size, p.Flag(0, false)), value.Origin(v))
}

func fileSize(size float64, binary bool) string {
	base, names := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if binary {
		base, names = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	switch {
	case size == 1:
		return "1 Byte"
	case size < base:
		if size > -1 && size < 1 {
			size = 0 // avoid -0
		}
		return strconv.FormatFloat(math.Trunc(size), 'f', 0, 64) + " Bytes"
	case math.IsInf(size, 0) || math.IsNaN(size):
		return pytext.Float(size) + " " + names[len(names)-1]
	}
	i, unit := 0, base*base
	for i < len(names)-1 && size >= unit {
		i++
		unit = math.Pow(base, float64(i+2))
	}
	return strconv.FormatFloat(base*size/unit, 'f', 1, 64) + " " + names[i]
}
