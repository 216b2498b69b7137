package value

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Number is an operand: an integer (I, or B when it is large) or a float.
type Number struct {
	IsFloat, IsInt bool
	F              float64
	I              int64
	B              *big.Int
}

// NumberOf returns v as an operand; if v is not a number, neither IsInt nor IsFloat is set.
func NumberOf(v Value) Number {
	switch v := v.(type) {
	case *Int:
		return Number{IsInt: true, I: v.V, B: v.Big}
	case *Bool:
		if v.V {
			return Number{IsInt: true, I: 1}
		}
		return Number{IsInt: true}
	case *Float:
		return Number{IsFloat: true, F: v.V}
	}
	return Number{}
}

// OK reports whether n is a number.
func (n Number) OK() bool { return n.IsInt || n.IsFloat }

// Big returns an integer operand as a big.Int that the caller must not change.
func (n Number) Big() *big.Int {
	if n.B != nil {
		return n.B
	}
	return big.NewInt(n.I)
}

// Float returns the float64 nearest to n; an integer beyond all of them is a failure.
func (n Number) Float(l *Limits) float64 {
	if n.IsFloat {
		return n.F
	}
	if n.B == nil {
		return float64(n.I)
	}
	f, _ := new(big.Float).SetInt(n.B).Float64()
	if math.IsInf(f, 0) {
		l.Failf(Other, "int too large to convert to float")
	}
	return f
}

// AsInt returns the value of an int or bool that fits into 64 bits.
func AsInt(v Value) (int64, bool) {
	if i, ok := v.(*Int); ok {
		return i.V, i.Big == nil
	}
	n := NumberOf(v)
	return n.I, n.IsInt && n.B == nil
}

// IsInt reports whether v is an int or a bool, of any size.
func IsInt(v Value) bool { return NumberOf(v).IsInt }

// ToFloat implements Python's float() for numbers.
func ToFloat(l *Limits, v Value) float64 {
	n := NumberOf(v)
	if !n.OK() {
		l.Failf(Type, "must be real number, not %s", v.TypeName())
	}
	return n.Float(l)
}

// BigOf returns the value of an int or bool as a big.Int that the caller must not change.
func BigOf(v Value) *big.Int { return NumberOf(v).Big() }

// MaxDigits is Python's limit for converting between integers and text.
const MaxDigits = 4300

// String returns the decimal text.
func (v *Int) String() string {
	if v.Big != nil {
		return v.Big.String()
	}
	return strconv.FormatInt(v.V, 10)
}

func (v *Int) text(l *Limits) string {
	l.digits(v)
	s := v.String()
	if v.Big != nil && len(strings.TrimPrefix(s, "-")) > MaxDigits {
		l.Failf(Other, "Exceeds the limit (%d digits) for integer string conversion", MaxDigits)
	}
	return s
}

// text returns the literal of the number, or format's result if it has none.
func (v *Float) text(format func(float64) string) string {
	if v.Literal != "" {
		return v.Literal
	}
	return format(v.V)
}

// digits counts the work of converting v to text.
func (l *Limits) digits(v *Int) {
	if v.Big != nil {
		n := v.Big.BitLen() / 8
		l.Product(n, n)
	}
}
