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
	Kw   func(name string) value.Value // returns nil if there is no such name
	Attr func(obj value.Value, name string) value.Value
	Item func(obj value.Value, key value.Value) value.Value
}

// fieldSize is the approximate memory in bytes of formatting one field.
const fieldSize = 256

// Format implements str.format.
func Format(l *value.Limits, s *value.Str, args FormatArgs) *value.Str {
	t := &value.Text{Lim: l}
	auto := 0
	format(t, l, s, 0, len(s.S), &args, &auto, 2)
	return s.Like(t)
}

// format expands s.S[i:j] into t. auto is the next automatic index, -1 once a field has an explicit number.
func format(t *value.Text, l *value.Limits, s *value.Str, i, j int, args *FormatArgs, auto *int, depth int) {
	if depth < 0 {
		l.Failf(value.Other, "Max string recursion exceeded")
	}
	for i < j && l.Make(fieldSize) {
		k := strings.IndexAny(s.S[i:j], "{}")
		if k < 0 {
			t.Part(s, i, j)
			return
		}
		t.Part(s, i, i+k)
		i += k
		if i+1 < j && s.S[i+1] == s.S[i] {
			t.Part(s, i, i+1)
			i += 2
			continue
		}
		if i+1 == j || s.S[i] == '}' {
			l.Failf(value.Other, "Single '%c' encountered in format string", s.S[i])
			return
		}
		f, problem := parseField(s.S, i+1, j)
		if problem != "" {
			l.Failf(value.Other, "%s", problem)
			return
		}
		formatField(t, l, s, &f, args, auto, depth)
		i = f.end
		if len(t.B) > l.Bytes {
			l.Failf(value.Limit, "string of more than %d bytes", l.Bytes)
		}
	}
}

// replacement is a replacement field of a format string: the text between its braces.
type replacement struct {
	name       string
	conv       rune // 0 for none
	spec, stop int  // the format specification [spec, stop)
	end        int  // after the closing brace
}

// parseField parses a field of text[i:j] from the byte after its opening brace. problem is not empty if it is malformed.
func parseField(text string, i, j int) (f replacement, problem string) {
	from, c := i, byte(0)
name:
	for i < j {
		c = text[i]
		i++
		switch c {
		case '{':
			return f, "unexpected '{' in field name"
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
		return f, ""
	case ':', '!':
	default:
		return f, "expected '}' before end of string"
	}
	if c == '!' {
		if i == j {
			return f, "end of string while looking for conversion specifier"
		}
		var n int
		f.conv, n = utf8.DecodeRuneInString(text[i:j])
		if i += n; i < j {
			i++
			switch text[i-1] {
			case '}':
				f.end = i
				return f, ""
			case ':':
			default:
				return f, "expected ':' after conversion specifier"
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
				return f, ""
			}
		}
	}
	return f, "unmatched '{' in format spec"
}

func formatField(t *value.Text, l *value.Limits, s *value.Str, f *replacement, args *FormatArgs, auto *int, depth int) {
	v := lookupField(l, f.name, args, auto)
	switch f.conv {
	case 0:
	case 's', 'r', 'a':
		v = converted(l, v, f.conv)
	default:
		l.Failf(value.Other, "Unknown conversion specifier %c", f.conv)
	}
	spec := value.Empty
	if f.spec < f.stop {
		inner := &value.Text{Lim: l}
		format(inner, l, s, f.spec, f.stop, args, auto, depth-1)
		spec = inner.Own()
	}
	if l.Err != nil {
		return
	}
	out := formatValue(l, v, spec)
	if s.Markup {
		if x, ok := v.(*value.Str); !ok || !x.Markup {
			out = Escape(out, l)
		}
	}
	t.Str(out)
}

// converted returns v as text: str(v), repr(v) or, for conversion 'a', ascii(v).
func converted(l *value.Limits, v value.Value, conv rune) *value.Str {
	if conv == 's' {
		return value.ToStr(l, v)
	}
	t := &value.Text{Lim: l}
	value.WriteRepr(t, l, v, l.Depth)
	if conv == 'a' {
		return asciiOf(t.Own(), l)
	}
	return t.Own()
}

func lookupField(l *value.Limits, name string, args *FormatArgs, auto *int) value.Value {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	first, rest := name[:end], name[end:]
	index := formatIndex(l, first)
	numbered := Is(value.Lit(name), l, "isdigit")
	switch {
	case l.Err != nil:
		return value.Stopped
	case name == "":
		if *auto < 0 {
			return l.Failf(value.Other, "cannot switch from manual field specification to automatic field numbering")
		}
		index = int64(*auto)
		*auto++
	case numbered:
		if *auto > 0 {
			return l.Failf(value.Other, "cannot switch from automatic field numbering to manual field specification")
		}
		*auto = -1
	}
	var v value.Value
	switch {
	case index >= int64(len(args.Pos)):
		return l.Failf(value.Other, "Replacement index %d out of range for positional args tuple", index)
	case index >= 0:
		v = args.Pos[index]
	default:
		if v = args.Kw(first); v == nil {
			return l.Failf(value.Other, "'%s'", first)
		}
	}
	for rest != "" && l.Spend(value.StepWork) {
		if rest[0] == '.' {
			n := strings.IndexAny(rest[1:], ".[") + 1
			if n == 0 {
				n = len(rest)
			}
			if n == 1 {
				return l.Failf(value.Other, "Empty attribute in format string")
			}
			v = args.Attr(v, rest[1:n])
			rest = rest[n:]
		} else {
			n := strings.IndexByte(rest, ']')
			if n < 0 {
				return l.Failf(value.Other, "Missing ']' in format string")
			}
			if n == 1 {
				return l.Failf(value.Other, "Empty attribute in format string")
			}
			var key value.Value = value.Lit(rest[1:n])
			if index := formatIndex(l, rest[1:n]); index >= 0 {
				key = value.NewInt(index)
			}
			v = args.Item(v, key)
			rest = rest[n+1:]
			if rest != "" && rest[0] != '.' && rest[0] != '[' {
				return l.Failf(value.Other, "Only '.' or '[' may follow ']' in format field specifier")
			}
		}
	}
	return v
}

// formatIndex returns the number that the name of a field spells in decimal digits of any script, -1 if it is not a
// number.
func formatIndex(l *value.Limits, name string) int64 {
	if name == "" {
		return -1
	}
	n := int64(0)
	for _, r := range name {
		d := int64(decimal.Digit(r))
		if d < 0 {
			return -1
		}
		if n > (math.MaxInt64-d)/10 {
			l.Failf(value.Other, "Too many decimal digits in format string")
			return 0
		}
		n = n*10 + d
	}
	return n
}
