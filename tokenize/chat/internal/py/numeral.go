package py

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/decimal"
	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// ParseInt implements Python's int(text, base): it accepts surrounding white space, single underscores between
// digits, a sign, and a prefix for base 0 or the matching base.
func ParseInt(text string, base int) (*value.Int, bool) {
	s := strings.TrimFunc(text, pytext.IsSpace)
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
	if len(s) > value.MaxDigits && base&(base-1) != 0 {
		return nil, false
	}
	b, ok := new(big.Int).SetString(s, base)
	if !ok {
		return nil, false
	}
	if neg {
		b.Neg(b)
	}
	return value.NewBig(b), true
}

// Whole returns f, a float without fraction, as an integer.
func Whole(l *value.Limits, f float64) value.Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return l.Failf(value.Other, "cannot convert float %s to integer", pytext.Float(f))
	}
	if !l.Float(f) {
		return value.Stopped
	}
	b, _ := big.NewFloat(f).Int(nil)
	return value.NewBig(b)
}

// asciiDigits replaces decimal digits of any script by ASCII digits.
func asciiDigits(s string) (string, bool) {
	if isASCII(s) {
		return s, true
	}
	var b strings.Builder
	for _, r := range s {
		d := decimal.Digit(r)
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

// ParseFloat implements Python's float(text).
func ParseFloat(text string) (float64, bool) {
	s, ok := asciiDigits(strings.TrimFunc(text, pytext.IsSpace))
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
