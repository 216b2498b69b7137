// Package py computes with values as Python does: operators, methods of str, % and brace formatting, conversions
// between numbers and text. Strings keep the origin of their bytes.
package py

import (
	"cmp"
	"math"
	"math/big"
	"strings"

	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Arith applies one of + - * / // % **. A number keeps the origin of its operands, of the first if both have one.
func Arith(l *value.Limits, op string, a, b value.Value) value.Value {
	if op == "+" {
		if x, ok := a.(*value.Str); ok {
			if y, ok := b.(*value.Str); ok {
				return addStr(l, x, y)
			}
		}
	}
	x, y := value.NumberOf(a), value.NumberOf(b)
	if x.OK() && y.OK() {
		return value.Made(numeric(l, op, x, y), cmp.Or(value.Origin(a), value.Origin(b)))
	}
	if u, ok := a.(*value.Undefined); ok {
		return l.Fail(u.Use())
	}
	if s, ok := a.(*value.Str); ok && op == "%" {
		return Percent(l, s, b)
	}
	if u, ok := b.(*value.Undefined); ok {
		return l.Fail(u.Use())
	}
	if op == "*" {
		if n, ok := value.AsInt(b); ok {
			if v := repeat(l, a, n); v != nil {
				return v
			}
		} else if n, ok := value.AsInt(a); ok {
			if v := repeat(l, b, n); v != nil {
				return v
			}
		} else if x.IsInt && isSequence(b) || y.IsInt && isSequence(a) {
			return l.Failf(value.Other, "cannot fit 'int' into an index-sized integer")
		}
	}
	if op == "+" {
		return add(l, a, b)
	}
	if op == "**" {
		op = "** or pow()"
	}
	return l.Failf(value.Type, "unsupported operand type(s) for %s: '%s' and '%s'", op, a.TypeName(), b.TypeName())
}

func numeric(l *value.Limits, op string, x, y value.Number) value.Value {
	if x.IsInt && y.IsInt {
		return intArith(l, op, x, y)
	}
	return floatArith(l, op, x, y)
}

func addStr(l *value.Limits, x, y *value.Str) value.Value {
	if !x.Markup && !y.Markup {
		return value.Concat(l, x, y)
	}
	return value.Concat(l, Escape(x, l), Escape(y, l)).Safe()
}

func add(l *value.Limits, a, b value.Value) value.Value {
	switch x := a.(type) {
	case *value.Str:
		return l.Failf(value.Type, "can only concatenate str (not \"%s\") to str", b.TypeName())
	case *value.List:
		y, ok := b.(*value.List)
		if !ok || x.Tuple != y.Tuple {
			return l.Failf(value.Type, "can only concatenate %s (not \"%s\") to %s", a.TypeName(), b.TypeName(), a.TypeName())
		}
		if len(x.Items)+len(y.Items) > l.Items {
			return l.Failf(value.Limit, "list of %d items, more than %d", len(x.Items)+len(y.Items), l.Items)
		}
		if !l.Make(16 * (len(x.Items) + len(y.Items))) {
			return value.Stopped
		}
		out := make([]value.Value, 0, len(x.Items)+len(y.Items))
		return &value.List{Items: append(append(out, x.Items...), y.Items...), Tuple: x.Tuple}
	case *value.Bytes:
		if y, ok := b.(*value.Bytes); ok {
			if !l.Text(len(x.B) + len(y.B)) {
				return value.Stopped
			}
			return &value.Bytes{B: x.B + y.B, F: cmp.Or(x.F, y.F)}
		}
	}
	return l.Failf(value.Type, "unsupported operand type(s) for +: '%s' and '%s'", a.TypeName(), b.TypeName())
}

func isSequence(v value.Value) bool {
	switch v.(type) {
	case *value.Str, *value.List, *value.Bytes:
		return true
	}
	return false
}

// repeat implements sequence * n; it returns nil if v is not a sequence.
func repeat(l *value.Limits, v value.Value, n int64) value.Value {
	n = max(n, 0)
	switch v := v.(type) {
	case *value.Str:
		if v.S != "" && n > int64(l.Bytes)/int64(len(v.S)) {
			return l.Failf(value.Limit, "string of %d times %d bytes, more than %d", n, len(v.S), l.Bytes)
		}
		if !v.Tracked() {
			if !l.Make(len(v.S) * int(n)) {
				return value.Stopped
			}
			return &value.Str{S: strings.Repeat(v.S, int(n)), Markup: v.Markup}
		}
		if v.S == "" {
			return v
		}
		t := &value.Text{Lim: l}
		for ; n > 0 && l.Err == nil; n-- {
			t.Str(v)
		}
		return v.Like(t)
	case *value.List:
		if len(v.Items) > 0 && n > int64(l.Items)/int64(len(v.Items)) {
			return l.Failf(value.Limit, "list of %d times %d items, more than %d", n, len(v.Items), l.Items)
		}
		if !l.Make(16 * len(v.Items) * int(n)) {
			return value.Stopped
		}
		items := make([]value.Value, 0, len(v.Items)*int(n))
		for len(items) < cap(items) {
			items = append(items, v.Items...)
		}
		return &value.List{Tuple: v.Tuple, Items: items}
	}
	return nil
}

func intArith(l *value.Limits, op string, x, y value.Number) value.Value {
	if x.B == nil && y.B == nil {
		if v := smallArith(op, x.I, y.I); v != nil {
			return v
		}
	}
	a, b := x.Big(), y.Big()
	if !intWork(l, op, a, b) {
		return value.Stopped
	}
	out := new(big.Int)
	switch op {
	case "+":
		out.Add(a, b)
	case "-":
		out.Sub(a, b)
	case "*":
		out.Mul(a, b)
	case "/":
		return quotient(l, a, b)
	case "//", "%":
		if b.Sign() == 0 {
			return l.Failf(value.Other, "integer division or modulo by zero")
		}
		_, r := out.QuoRem(a, b, new(big.Int))
		if r.Sign() != 0 && (r.Sign() < 0) != (b.Sign() < 0) {
			out.Sub(out, big.NewInt(1))
			r.Add(r, b)
		}
		if op == "%" {
			out = r
		}
	default:
		if b.Sign() < 0 {
			return floatArith(l, op, x, y)
		}
		out.Exp(a, b, nil)
	}
	return value.NewBig(out)
}

// smallArith computes with numbers that are too small to overflow. It returns nil for larger ones and for failures.
func smallArith(op string, a, b int64) value.Value {
	if a != int64(int32(a)) || b != int64(int32(b)) {
		return nil
	}
	switch op {
	case "+":
		return value.NewInt(a + b)
	case "-":
		return value.NewInt(a - b)
	case "*":
		return value.NewInt(a * b)
	case "//", "%": // non-negative operands only, as in a counting loop
		if a >= 0 && b > 0 {
			if op == "%" {
				return value.NewInt(a % b)
			}
			return value.NewInt(a / b)
		}
	}
	return nil
}

// intWork counts the work and memory of an operation, and reports whether the run may continue. It refuses a result that
// is too large.
func intWork(l *value.Limits, op string, a, b *big.Int) bool {
	n, m := a.BitLen(), b.BitLen()
	bits := max(n, m) + 1
	switch op {
	case "*":
		bits = n + m
	case "**":
		if bits = 0; b.Sign() >= 0 && n > 1 {
			if !b.IsInt64() || b.Int64() > int64(8*l.IntBytes) {
				l.Failf(value.Limit, "integer power of more than %d bytes", l.IntBytes)
				return false
			}
			bits = int(b.Int64()) * n
		}
	}
	if bits/8 > l.IntBytes {
		l.Failf(value.Limit, "integer of about %d bytes, more than %d", bits/8, l.IntBytes)
		return false
	}
	l.Make(bits / 8)
	switch op {
	case "+", "-":
	case "/":
		l.Spend(n * m / 64) // reducing the fraction
	case "**":
		l.Product(bits/8, bits/8)
	default:
		l.Product(n/8, m/8)
	}
	return l.Err == nil
}

// quotient returns a / b as a float.
func quotient(l *value.Limits, a, b *big.Int) value.Value {
	switch {
	case b.Sign() == 0:
		return l.Failf(value.Other, "division by zero")
	case a.BitLen() <= 53 && b.BitLen() <= 53:
		return &value.Float{V: float64(a.Int64()) / float64(b.Int64())}
	}
	f, _ := new(big.Rat).SetFrac(a, b).Float64()
	if math.IsInf(f, 0) {
		return l.Failf(value.Other, "integer division result too large for a float")
	}
	return &value.Float{V: f}
}

func floatArith(l *value.Limits, op string, x, y value.Number) value.Value {
	a, b := x.Float(l), y.Float(l)
	switch op {
	case "+":
		return &value.Float{V: a + b}
	case "-":
		return &value.Float{V: a - b}
	case "*":
		return &value.Float{V: a * b}
	case "/":
		if b == 0 {
			return l.Failf(value.Other, "float division by zero")
		}
		return &value.Float{V: a / b}
	case "//", "%":
		if b == 0 {
			return l.Failf(value.Other, "float floor division by zero")
		}
		if !l.Spend(remainderWork(a, b)) {
			return value.Stopped
		}
		q, r := floatDivmod(a, b)
		if op == "%" {
			return &value.Float{V: r}
		}
		return &value.Float{V: q}
	}
	if a == 0 && b < 0 {
		return l.Failf(value.Other, "0.0 cannot be raised to a negative power")
	}
	if a < 0 && b != math.Trunc(b) && !math.IsInf(b, 0) && !math.IsInf(a, 0) {
		return l.Failf(value.Other, "complex numbers are not supported: %s ** %s", pytext.Float(a), pytext.Float(b))
	}
	if !l.Spend(powWork) || !l.Make(powSize) {
		return value.Stopped
	}
	p := pow(a, b)
	if math.IsInf(p, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		return l.Failf(value.Other, "(34, 'Numerical result out of range')")
	}
	return &value.Float{V: p}
}

// powWork and powSize are the work of pow and the memory it allocates.
const powWork, powSize = 40_000, 16 << 10

// pow returns the correctly rounded a**b for exponents that are a small multiple of 1/64, and otherwise math.Pow's
// result: C's pow is nearly always correctly rounded, and math.Pow is not.
func pow(a, b float64) float64 {
	k := b * 64
	if a <= 0 || math.IsInf(a, 0) || math.IsNaN(a) || k != math.Trunc(k) || math.Abs(b) > 1024 {
		return math.Pow(a, b)
	}
	if p := math.Pow(a, b); p == 0 || math.IsInf(p, 0) {
		return p
	}
	root := new(big.Float).SetPrec(512).SetFloat64(a)
	n := int64(math.Abs(k))
	for i := 0; i < 6 && n != 0; i++ { // a**(n/64): halve n or take a root
		if n%2 == 0 {
			n /= 2
			continue
		}
		for ; i < 6; i++ {
			root.Sqrt(root)
		}
	}
	out := new(big.Float).SetPrec(512).SetInt64(1)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			out.Mul(out, root)
		}
		root.Mul(root, root)
	}
	if k < 0 {
		out.Quo(new(big.Float).SetPrec(512).SetInt64(1), out)
	}
	f, _ := out.Float64()
	return f
}

// remainderWork returns the work of math.Mod, which subtracts bit by bit.
func remainderWork(a, b float64) int {
	_, m := math.Frexp(a)
	_, n := math.Frexp(b)
	return 20 * max(0, m-n)
}

// floatDivmod follows CPython's float_divmod.
func floatDivmod(a, b float64) (q, r float64) {
	r = math.Mod(a, b)
	div := (a - r) / b
	if r != 0 {
		if (b < 0) != (r < 0) {
			r += b
			div--
		}
	} else {
		r = math.Copysign(0, b)
	}
	if div == 0 {
		return math.Copysign(0, a/b), r
	}
	q = math.Floor(div)
	if div-q > 0.5 {
		q++
	}
	return q, r
}

// Sign applies unary + or -.
func Sign(l *value.Limits, op string, v value.Value) value.Value {
	if u, ok := v.(*value.Undefined); ok {
		return l.Fail(u.Use())
	}
	n := value.NumberOf(v)
	switch {
	case !n.OK():
		return l.Failf(value.Type, "bad operand type for unary %s: '%s'", op, v.TypeName())
	case op == "-":
		return value.Made(negative(n), value.Origin(v))
	}
	return Plus(v)
}

// Plus returns +v for a number v.
func Plus(v value.Value) value.Value {
	if b, ok := v.(*value.Bool); ok {
		return value.Made(value.NewInt(value.NumberOf(b).I), b.F)
	}
	return v
}

func negative(n value.Number) value.Value {
	switch {
	case n.IsFloat:
		return &value.Float{V: -n.F}
	case n.B == nil && n.I != math.MinInt64:
		return value.NewInt(-n.I)
	}
	return value.NewBig(new(big.Int).Neg(n.Big()))
}
