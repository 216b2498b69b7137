package py

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/decimal"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// FormatArgs are the values that the fields of str.format refer to.
type FormatArgs struct {
	Pos  []value.Value
	Kw   func(name string) (value.Value, *value.Fault) // returns nil if there is no such name
	Attr func(obj value.Value, name string) (value.Value, *value.Fault)
	Item func(obj value.Value, key value.Value) (value.Value, *value.Fault)
}

// fieldSize is the approximate memory in bytes of formatting one field.
const fieldSize = 256

// Format implements str.format.
func Format(l *value.Limits, s *value.Str, args FormatArgs) (*value.Str, *value.Fault) {
	t := &value.Text{Track: true, Lim: l}
	auto := 0
	if fault := format(t, l, s, 0, len(s.S), &args, &auto, 2); fault != nil {
		return nil, fault
	}
	return s.Like(t), nil
}

// format expands s.S[i:j] into t. auto is the next automatic index, -1 once a field has an explicit number.
func format(t *value.Text, l *value.Limits, s *value.Str, i, j int, args *FormatArgs, auto *int, depth int) *value.Fault {
	if depth < 0 {
		return value.ValueError("Max string recursion exceeded")
	}
	for i < j && l.Make(fieldSize) {
		k := strings.IndexAny(s.S[i:j], "{}")
		if k < 0 {
			t.Part(s, i, j)
			return nil
		}
		t.Part(s, i, i+k)
		i += k
		if i+1 < j && s.S[i+1] == s.S[i] {
			t.Part(s, i, i+1)
			i += 2
			continue
		}
		if i+1 == j || s.S[i] == '}' {
			return value.ValueError("Single '%c' encountered in format string", s.S[i])
		}
		f, fault := parseField(s.S, i+1, j)
		if fault == nil {
			fault = formatField(t, l, s, &f, args, auto, depth)
		}
		if fault != nil {
			return fault
		}
		i = f.end
		if len(t.B) > l.Bytes {
			return value.LimitError("string of more than %d bytes", l.Bytes)
		}
	}
	return nil
}

// replacement is a replacement field of a format string: the text between its braces.
type replacement struct {
	name       string
	conv       rune // 0 for none
	spec, stop int  // the format specification [spec, stop)
	end        int  // after the closing brace
}

// parseField parses a field of text[i:j] from the byte after its opening brace.
func parseField(text string, i, j int) (f replacement, fault *value.Fault) {
	from, c := i, byte(0)
name:
	for i < j {
		c = text[i]
		i++
		switch c {
		case '{':
			return f, value.ValueError("unexpected '{' in field name")
		case '[': // everything up to the closing bracket is part of the key
			if n := strings.IndexByte(text[i:j], ']'); n >= 0 {
				i += n
			} else {
				i = j
			}
		case '}', ':', '!':
			break name
		}
	}
	f.name = text[from : i-1]
	f.spec, f.stop, f.end = i, i, i
	switch c {
	case '}':
		return f, nil
	case ':', '!':
	default:
		return f, value.ValueError("expected '}' before end of string")
	}
	if c == '!' {
		if i == j {
			return f, value.ValueError("end of string while looking for conversion specifier")
		}
		var n int
		f.conv, n = utf8.DecodeRuneInString(text[i:j])
		if i += n; i < j {
			i++
			switch text[i-1] {
			case '}':
				f.end = i
				return f, nil
			case ':':
			default:
				return f, value.ValueError("expected ':' after conversion specifier")
			}
		}
	}
	f.spec = i
	for open := 1; i < j; i++ {
		switch text[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				f.stop, f.end = i, i+1
				return f, nil
			}
		}
	}
	return f, value.ValueError("unmatched '{' in format spec")
}

func formatField(t *value.Text, l *value.Limits, s *value.Str, f *replacement, args *FormatArgs, auto *int, depth int) *value.Fault {
	v, fault := lookupField(l, f.name, args, auto)
	if fault != nil {
		return fault
	}
	switch f.conv {
	case 0:
	case 's', 'r', 'a':
		if v, fault = converted(l, v, f.conv); fault != nil {
			return fault
		}
	default:
		return value.ValueError("Unknown conversion specifier %c", f.conv)
	}
	spec := value.Empty
	if f.spec < f.stop {
		inner := &value.Text{Track: true, Lim: l}
		if fault := format(inner, l, s, f.spec, f.stop, args, auto, depth-1); fault != nil {
			return fault
		}
		spec = inner.Own()
	}
	out, fault := formatValue(l, v, spec)
	if fault != nil {
		return fault
	}
	if s.Markup {
		if x, ok := v.(*value.Str); !ok || !x.Markup {
			out = Escape(out, l)
		}
	}
	t.Str(out)
	return nil
}

// converted returns v as text: str(v), repr(v) or, for conversion 'a', ascii(v).
func converted(l *value.Limits, v value.Value, conv rune) (*value.Str, *value.Fault) {
	if conv == 's' {
		return value.ToStr(l, v, true)
	}
	t := &value.Text{Track: true, Lim: l}
	if fault := value.WriteRepr(t, l, v, l.Depth); fault != nil {
		return nil, fault
	}
	if conv == 'a' {
		return asciiOf(t.Own(), l), nil
	}
	return t.Own(), nil
}

func lookupField(l *value.Limits, name string, args *FormatArgs, auto *int) (value.Value, *value.Fault) {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	first, rest := name[:end], name[end:]
	var v value.Value
	index, fault := formatIndex(first)
	numbered := Is(value.Lit(name), l, "isdigit")
	switch {
	case fault != nil:
		return nil, fault
	case name == "":
		if *auto < 0 {
			return nil, value.ValueError("cannot switch from manual field specification to automatic field numbering")
		}
		index = int64(*auto)
		*auto++
	case numbered:
		if *auto > 0 {
			return nil, value.ValueError("cannot switch from automatic field numbering to manual field specification")
		}
		*auto = -1
	}
	switch {
	case index >= int64(len(args.Pos)):
		return nil, value.Faultf(value.Other, "Replacement index %d out of range for positional args tuple", index)
	case index >= 0:
		v = args.Pos[index]
	default:
		if v, fault = args.Kw(first); fault != nil {
			return nil, fault
		}
		if v == nil {
			return nil, value.Faultf(value.Other, "'%s'", first)
		}
	}
	for rest != "" && l.Spend(value.StepWork) {
		if rest[0] == '.' {
			n := strings.IndexAny(rest[1:], ".[") + 1
			if n == 0 {
				n = len(rest)
			}
			if n == 1 {
				return nil, value.ValueError("Empty attribute in format string")
			}
			v, fault = args.Attr(v, rest[1:n])
			rest = rest[n:]
		} else {
			n := strings.IndexByte(rest, ']')
			if n < 0 {
				return nil, value.ValueError("Missing ']' in format string")
			}
			if n == 1 {
				return nil, value.ValueError("Empty attribute in format string")
			}
			if index, fault = formatIndex(rest[1:n]); fault != nil {
				return nil, fault
			}
			var key value.Value = value.Lit(rest[1:n])
			if index >= 0 {
				key = value.NewInt(index)
			}
			v, fault = args.Item(v, key)
			rest = rest[n+1:]
			if fault == nil && rest != "" && rest[0] != '.' && rest[0] != '[' {
				return nil, value.ValueError("Only '.' or '[' may follow ']' in format field specifier")
			}
		}
		if fault != nil {
			return nil, fault
		}
	}
	return v, nil
}

// formatIndex returns the number that the name of a field spells in decimal digits of any script, -1 if it is not a
// number.
func formatIndex(name string) (int64, *value.Fault) {
	if name == "" {
		return -1, nil
	}
	n := int64(0)
	for _, r := range name {
		d := int64(decimal.Digit(r))
		if d < 0 {
			return -1, nil
		}
		if n > (math.MaxInt64-d)/10 {
			return 0, value.ValueError("Too many decimal digits in format string")
		}
		n = n*10 + d
	}
	return n, nil
}
