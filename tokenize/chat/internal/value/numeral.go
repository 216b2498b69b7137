package value

import (
	"math"
	"strconv"
	"strings"
)

// MaxDigits is Python's bound on integer to text conversion.
const MaxDigits = 4300

// String returns the decimal text.
func (v *Int) String() string {
	if v.Big != nil {
		return v.Big.String()
	}
	return strconv.FormatInt(v.V, 10)
}

func (v *Int) text() (string, *Fault) {
	if v.Big != nil && v.Big.BitLen() > MaxDigits*3321928/1000000 {
		s := v.Big.String()
		if len(strings.TrimPrefix(s, "-")) > MaxDigits {
			return "", ValueError("Exceeds the limit (%d digits) for integer string conversion", MaxDigits)
		}
		return s, nil
	}
	return v.String(), nil
}

// text is how the Number was spelled, or else what format makes of it.
func (v *Float) text(format func(float64) string) string {
	if v.Literal != "" {
		return v.Literal
	}
	return format(v.V)
}

// FormatFloat is Python's repr of a float.
func FormatFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	exp := 0
	if f != 0 {
		e := strconv.FormatFloat(f, 'e', -1, 64)
		exp, _ = strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	}
	if exp < -4 || exp >= 16 {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// digits counts the work of writing v as text.
func (l *Limits) digits(v *Int) {
	if v.Big != nil {
		n := v.Big.BitLen() / 8
		l.Product(n, n)
	}
}
