package value

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxDigits is Python's bound on integer to text conversion.
const maxDigits = 4300

// String returns the decimal text.
func (v *Int) String() string {
	if v.Big != nil {
		return v.Big.String()
	}
	return strconv.FormatInt(v.V, 10)
}

func (v *Int) text() (string, *Fault) {
	if v.Big != nil && v.Big.BitLen() > maxDigits*3321928/1000000 {
		s := v.Big.String()
		if len(strings.TrimPrefix(s, "-")) > maxDigits {
			return "", valueError("Exceeds the limit (%d digits) for integer string conversion", maxDigits)
		}
		return s, nil
	}
	return v.String(), nil
}

// text is how the number was spelled, or else what format makes of it.
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

// ParseInt is Python's int(text, base): white space around, one underscore
// between digits, a sign, and for base 0 or the matching one a prefix.
func ParseInt(text string, base int) (*Int, bool) {
	s := strings.TrimFunc(text, IsSpace)
	neg := false
	if s != "" && (s[0] == '+' || s[0] == '-') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if len(s) > 1 && s[0] == '0' {
		p := map[byte]int{'x': 16, 'o': 8, 'b': 2}[s[1]|0x20]
		if p != 0 && (base == 0 || base == p) {
			base, s = p, s[2:]
			s = strings.TrimPrefix(s, "_")
		}
	}
	if base == 0 {
		base = 10
		if len(s) > 1 && s[0] == '0' && strings.Trim(s, "0_") != "" {
			return nil, false
		}
	}
	s, ok := asciiDigits(s)
	if !ok || s == "" || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") || s[0] == '+' || s[0] == '-' {
		return nil, false
	}
	s = strings.ReplaceAll(s, "_", "")
	if len(s) > maxDigits && base&(base-1) != 0 {
		return nil, false
	}
	b, ok := new(big.Int).SetString(s, base)
	if !ok {
		return nil, false
	}
	if neg {
		b.Neg(b)
	}
	return NewBig(b), true
}

// asciiDigits maps decimal digits of any script to ASCII.
func asciiDigits(s string) (string, bool) {
	if isASCII(s) {
		return s, true
	}
	var b strings.Builder
	for _, r := range s {
		d := digitValue(r)
		if r >= 128 && d < 0 {
			return "", false
		}
		if d >= 0 {
			b.WriteByte(byte('0' + d))
			continue
		}
		b.WriteRune(r)
	}
	return b.String(), true
}

// ParseFloat is Python's float(text).
func ParseFloat(text string) (float64, bool) {
	s, ok := asciiDigits(strings.TrimFunc(text, IsSpace))
	if !ok || s == "" || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		return 0, false
	}
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case "inf", "infinity", "nan":
		if len(s)-len(strings.TrimLeft(s, "+-")) > 1 {
			return 0, false
		}
	default:
		for i := 0; i < len(s); i++ {
			c := s[i]
			if c == '_' && !(isDigit(s[i-1]) && isDigit(s[i+1])) {
				return 0, false
			}
			if !isDigit(c) && !strings.ContainsRune("+-.eE_", rune(c)) {
				return 0, false
			}
		}
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digits counts the work of writing v as text.
func (l *Limits) digits(v *Int) {
	if v.Big != nil {
		n := v.Big.BitLen() / 8
		l.product(n, n)
	}
}
