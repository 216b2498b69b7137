package value

import (
	"cmp"
	"math"
	"math/big"
	"strings"
)

// Arith applies one of + - * / // % **. A number keeps the origin of its operands:
// of the first, where both have one.
func Arith(l *Limits, op string, a, b Value) (Value, *Fault) {
	if op == "+" {
		if x, ok := a.(*Str); ok {
			if y, ok := b.(*Str); ok {
				return addStr(l, x, y)
			}
		}
	}
	if n := smallSum(op, a, b); n != nil {
		return n, nil
	}
	x, y := numberOf(a), numberOf(b)
	if x.ok() && y.ok() {
		v, fault := numeric(l, op, x, y)
		return Made(v, cmp.Or(Origin(a), Origin(b))), fault
	}
	if u, ok := a.(*Undefined); ok {
		return nil, u.Use()
	}
	if s, ok := a.(*Str); ok && op == "%" {
		return Percent(l, s, b)
	}
	if u, ok := b.(*Undefined); ok {
		return nil, u.Use()
	}
	if op == "*" {
		if n, ok := AsInt(b); ok {
			if v, fault := repeat(l, a, n); v != nil || fault != nil {
				return v, fault
			}
		} else if n, ok := AsInt(a); ok {
			if v, fault := repeat(l, b, n); v != nil || fault != nil {
				return v, fault
			}
		} else if x.isInt && isSequence(b) || y.isInt && isSequence(a) {
			return nil, valueError("cannot fit 'int' into an index-sized integer")
		}
	}
	if op == "+" {
		return add(l, a, b)
	}
	if op == "**" {
		op = "** or pow()"
	}
	return nil, typeError("unsupported operand type(s) for %s: '%s' and '%s'", op, a.TypeName(), b.TypeName())
}

// smallSum is the sum or difference of template integers that are far from
// overflowing, nil for any others.
func smallSum(op string, a, b Value) Value {
	x, ok := a.(*Int)
	if !ok {
		return nil
	}
	y, ok := b.(*Int)
	if !ok || x.F != nil || y.F != nil || x.Big != nil || y.Big != nil || x.V != int64(int32(x.V)) || y.V != int64(int32(y.V)) {
		return nil
	}
	switch op {
	case "+":
		return NewInt(x.V + y.V)
	case "-":
		return NewInt(x.V - y.V)
	}
	return nil
}

func numeric(l *Limits, op string, x, y number) (Value, *Fault) {
	if x.isInt && y.isInt {
		return intArith(l, op, x, y)
	}
	return floatArith(op, x, y)
}

func addStr(l *Limits, x, y *Str) (Value, *Fault) {
	if !x.Markup && !y.Markup {
		return Concat(l, x, y)
	}
	s, fault := Concat(l, x.Escape(l), y.Escape(l))
	if fault != nil {
		return nil, fault
	}
	return s.Safe(), nil
}

func add(l *Limits, a, b Value) (Value, *Fault) {
	switch x := a.(type) {
	case *Str:
		return nil, typeError("can only concatenate str (not \"%s\") to str", b.TypeName())
	case *List:
		y, ok := b.(*List)
		if !ok || x.Tuple != y.Tuple {
			return nil, typeError("can only concatenate %s (not \"%s\") to %s", a.TypeName(), b.TypeName(), a.TypeName())
		}
		if len(x.Items)+len(y.Items) > l.Items {
			return nil, limitError("list of %d items, more than %d", len(x.Items)+len(y.Items), l.Items)
		}
		if !l.Make(16 * (len(x.Items) + len(y.Items))) {
			return nil, l.Over()
		}
		out := make([]Value, 0, len(x.Items)+len(y.Items))
		return &List{Items: append(append(out, x.Items...), y.Items...), Tuple: x.Tuple}, nil
	case *Bytes:
		if y, ok := b.(*Bytes); ok {
			if n := len(x.B) + len(y.B); n > l.Bytes {
				return nil, limitError("%d bytes, more than %d", n, l.Bytes)
			} else if !l.Make(n) {
				return nil, l.Over()
			}
			return &Bytes{x.B + y.B, cmp.Or(x.F, y.F)}, nil
		}
	}
	return nil, typeError("unsupported operand type(s) for +: '%s' and '%s'", a.TypeName(), b.TypeName())
}

func isSequence(v Value) bool {
	switch v.(type) {
	case *Str, *List, *Bytes:
		return true
	}
	return false
}

// repeat is sequence * n; it returns nil when v is no sequence.
func repeat(l *Limits, v Value, n int64) (Value, *Fault) {
	n = max(n, 0)
	switch v := v.(type) {
	case *Str:
		if v.S != "" && n > int64(l.Bytes)/int64(len(v.S)) {
			return nil, limitError("string of %d times %d bytes, more than %d", n, len(v.S), l.Bytes)
		}
		if !v.tracked() {
			if !l.Make(len(v.S) * int(n)) {
				return nil, l.Over()
			}
			return &Str{S: strings.Repeat(v.S, int(n)), Markup: v.Markup}, nil
		}
		if v.S == "" {
			return v, nil
		}
		t := l.NewText(v)
		for ; n > 0 && l.Room(); n-- {
			t.Str(v)
		}
		return v.like(t), nil
	case *List:
		if len(v.Items) > 0 && n > int64(l.Items)/int64(len(v.Items)) {
			return nil, limitError("list of %d times %d items, more than %d", n, len(v.Items), l.Items)
		}
		if !l.Make(16 * len(v.Items) * int(n)) {
			return nil, l.Over()
		}
		out := &List{Tuple: v.Tuple, Items: []Value{}}
		if len(v.Items) > 0 {
			for ; n > 0; n-- {
				out.Items = append(out.Items, v.Items...)
			}
		}
		return out, nil
	}
	return nil, nil
}

func intArith(l *Limits, op string, x, y number) (Value, *Fault) {
	if x.b == nil && y.b == nil {
		a, b := x.i, y.i
		switch op {
		case "+":
			if s := a + b; (s > a) == (b > 0) {
				return NewInt(s), nil
			}
		case "-":
			if s := a - b; (s < a) == (b > 0) {
				return NewInt(s), nil
			}
		case "*":
			if a == 0 || b == 0 {
				return NewInt(0), nil
			}
			if p := a * b; p/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64) {
				return NewInt(p), nil
			}
		case "//", "%":
			if b == 0 {
				return nil, valueError("integer division or modulo by zero")
			}
			if a == math.MinInt64 && b == -1 {
				break
			}
			q, r := a/b, a%b
			if r != 0 && (r < 0) != (b < 0) {
				q, r = q-1, r+b
			}
			if op == "%" {
				return NewInt(r), nil
			}
			return NewInt(q), nil
		}
	}
	a, b := x.big(), y.big()
	bits := 0
	switch op {
	case "*":
		bits = a.BitLen() + b.BitLen()
	case "**":
		if b.Sign() >= 0 && a.BitLen() > 1 {
			if !b.IsInt64() || b.Int64() > int64(8*l.IntBytes) {
				return nil, limitError("integer power of more than %d bytes", l.IntBytes)
			}
			bits = int(b.Int64()) * a.BitLen()
		}
	default:
		bits = max(a.BitLen(), b.BitLen()) + 1
	}
	if bits/8 > l.IntBytes {
		return nil, limitError("integer of about %d bytes, more than %d", bits/8, l.IntBytes)
	}
	l.Make(bits / 8)
	switch op {
	case "+", "-":
	case "/":
		l.Spend(a.BitLen() * b.BitLen() / 64) // reducing the fraction
	case "**":
		l.product(bits/8, bits/8)
	default:
		l.product(a.BitLen()/8, b.BitLen()/8)
	}
	if fault := l.Over(); fault != nil {
		return nil, fault
	}
	switch op {
	case "+":
		return NewBig(new(big.Int).Add(a, b)), nil
	case "-":
		return NewBig(new(big.Int).Sub(a, b)), nil
	case "*":
		return NewBig(new(big.Int).Mul(a, b)), nil
	case "/":
		if b.Sign() == 0 {
			return nil, valueError("division by zero")
		}
		if a.BitLen() <= 53 && b.BitLen() <= 53 {
			return &Float{V: float64(a.Int64()) / float64(b.Int64())}, nil
		}
		f, _ := new(big.Rat).SetFrac(a, b).Float64()
		if math.IsInf(f, 0) {
			return nil, valueError("integer division result too large for a float")
		}
		return &Float{V: f}, nil
	case "//", "%":
		if b.Sign() == 0 {
			return nil, valueError("integer division or modulo by zero")
		}
		q, r := new(big.Int).QuoRem(a, b, new(big.Int))
		if r.Sign() != 0 && (r.Sign() < 0) != (b.Sign() < 0) {
			q.Sub(q, big.NewInt(1))
			r.Add(r, b)
		}
		if op == "%" {
			return NewBig(r), nil
		}
		return NewBig(q), nil
	}
	if b.Sign() < 0 {
		return floatArith(op, x, y)
	}
	return NewBig(new(big.Int).Exp(a, b, nil)), nil
}

func floatArith(op string, x, y number) (Value, *Fault) {
	a, fault := x.float()
	if fault != nil {
		return nil, fault
	}
	b, fault := y.float()
	if fault != nil {
		return nil, fault
	}
	switch op {
	case "+":
		return &Float{V: a + b}, nil
	case "-":
		return &Float{V: a - b}, nil
	case "*":
		return &Float{V: a * b}, nil
	case "/":
		if b == 0 {
			return nil, valueError("float division by zero")
		}
		return &Float{V: a / b}, nil
	case "//", "%":
		if b == 0 {
			return nil, valueError("float floor division by zero")
		}
		q, r := floatDivmod(a, b)
		if op == "%" {
			return &Float{V: r}, nil
		}
		return &Float{V: q}, nil
	}
	if a == 0 && b < 0 {
		return nil, valueError("0.0 cannot be raised to a negative power")
	}
	if a < 0 && b != math.Trunc(b) && !math.IsInf(b, 0) && !math.IsInf(a, 0) {
		return nil, valueError("complex numbers are not supported: %s ** %s", FormatFloat(a), FormatFloat(b))
	}
	p := pow(a, b)
	if math.IsInf(p, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		return nil, valueError("(34, 'Numerical result out of range')")
	}
	return &Float{V: p}, nil
}

// pow is the correctly rounded a**b for exponents that are a small multiple of
// 1/64, and otherwise what the library gives: C's pow is nearly always correctly
// rounded, and math.Pow is not.
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
func Sign(op string, v Value) (Value, *Fault) {
	if u, ok := v.(*Undefined); ok {
		return nil, u.Use()
	}
	n := numberOf(v)
	switch {
	case !n.ok():
		return nil, typeError("bad operand type for unary %s: '%s'", op, v.TypeName())
	case op == "-":
		return Made(n.negative(), Origin(v)), nil
	}
	if b, ok := v.(*Bool); ok {
		return Made(NewInt(n.i), b.F), nil
	}
	return v, nil
}

func (n number) negative() Value {
	switch {
	case n.isFloat:
		return &Float{V: -n.f}
	case n.b == nil && n.i != math.MinInt64:
		return NewInt(-n.i)
	}
	return NewBig(new(big.Int).Neg(n.big()))
}
