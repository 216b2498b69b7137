package value

import (
	"math"
	"math/big"
)

// number is an operand: an integer (i, or b when it is large) or a float.
type number struct {
	isFloat bool
	isInt   bool
	f       float64
	i       int64
	b       *big.Int
}

func numberOf(v Value) number {
	switch v := v.(type) {
	case *Int:
		return number{isInt: true, i: v.V, b: v.Big}
	case *Bool:
		if v.V {
			return number{isInt: true, i: 1}
		}
		return number{isInt: true}
	case *Float:
		return number{isFloat: true, f: v.V}
	}
	return number{}
}

func (n number) ok() bool { return n.isInt || n.isFloat }

func (n number) big() *big.Int {
	if n.b != nil {
		return n.b
	}
	return big.NewInt(n.i)
}

func (n number) float() (float64, *Fault) {
	if n.isFloat {
		return n.f, nil
	}
	if n.b == nil {
		return float64(n.i), nil
	}
	f, _ := new(big.Float).SetInt(n.b).Float64()
	if math.IsInf(f, 0) {
		return 0, valueError("int too large to convert to float")
	}
	return f, nil
}

// AsInt returns the value of an int or bool that fits into 64 bits.
func AsInt(v Value) (int64, bool) {
	if i, ok := v.(*Int); ok {
		return i.V, i.Big == nil
	}
	n := numberOf(v)
	return n.i, n.isInt && n.b == nil
}

// IsInt reports whether v is an int or a bool, of any size.
func IsInt(v Value) bool { return numberOf(v).isInt }

// ToFloat is Python's float() of a number.
func ToFloat(v Value) (float64, *Fault) {
	n := numberOf(v)
	if !n.ok() {
		return 0, typeError("must be real number, not %s", v.TypeName())
	}
	return n.float()
}

// BigOf is the value of an int or bool, which the caller must not change.
func BigOf(v Value) *big.Int { return numberOf(v).big() }
