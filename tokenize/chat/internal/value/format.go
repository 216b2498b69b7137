package value

import (
	"strconv"
	"strings"
)

// FormatArgs are what the fields of str.format refer to.
type FormatArgs struct {
	Pos  []Value
	Kw   func(name string) (Value, *Fault) // nil value: no such name
	Attr func(obj Value, name string) (Value, *Fault)
	Item func(obj Value, key Value) (Value, *Fault)
}

// Format is str.format.
func Format(l *Limits, s *Str, args FormatArgs) (*Str, *Fault) {
	t := &Text{Track: true}
	auto := 0
	if fault := format(t, l, s, 0, len(s.S), &args, &auto, 2); fault != nil {
		return nil, fault
	}
	return s.like(t), nil
}

// format expands s.S[i:j] into t. auto is the next automatic index, -1 once
// fields were numbered by hand.
func format(t *Text, l *Limits, s *Str, i, j int, args *FormatArgs, auto *int, depth int) *Fault {
	if depth < 0 {
		return valueError("Max string recursion exceeded")
	}
	for i < j {
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
		if s.S[i] == '}' {
			return valueError("Single '}' encountered in format string")
		}
		open, end := 1, i+1
		for end < j && open > 0 {
			switch s.S[end] {
			case '{':
				open++
			case '}':
				open--
			}
			end++
		}
		if open > 0 {
			return valueError("expected '}' before end of string")
		}
		if fault := formatField(t, l, s, i+1, end-1, args, auto, depth); fault != nil {
			return fault
		}
		i = end
		if len(t.B) > l.Bytes {
			return limitError("string of more than %d bytes", l.Bytes)
		}
	}
	return nil
}

func formatField(t *Text, l *Limits, s *Str, i, j int, args *FormatArgs, auto *int, depth int) *Fault {
	body := s.S[i:j]
	end := len(body)
	for k, bracket := 0, false; k < len(body); k++ {
		c := body[k]
		if c == '[' {
			bracket = true
		}
		if c == ']' {
			bracket = false
		}
		if !bracket && (c == '!' || c == ':') {
			end = k
			break
		}
	}
	name, rest := body[:end], body[end:]
	conv := byte(0)
	if strings.HasPrefix(rest, "!") {
		if len(rest) < 2 {
			return valueError("end of string while looking for conversion specifier")
		}
		conv = rest[1]
		rest = rest[2:]
		if rest != "" && rest[0] != ':' {
			return valueError("expected ':' after conversion specifier")
		}
	}
	v, fault := lookupField(name, args, auto)
	if fault != nil {
		return fault
	}
	switch conv {
	case 0:
	case 's':
		if v, fault = ToStr(l, v, true); fault != nil {
			return fault
		}
	case 'r', 'a':
		r := &Text{Track: true}
		if fault := WriteRepr(r, l, v, l.Depth); fault != nil {
			return fault
		}
		if v = r.Value(); conv == 'a' {
			v = v.(*Str).ASCII()
		}
	default:
		return valueError("Unknown conversion specifier %c", conv)
	}
	spec := Empty
	if rest != "" {
		inner := &Text{Track: true}
		at := j - len(rest) + 1
		if fault := format(inner, l, s, at, j, args, auto, depth-1); fault != nil {
			return fault
		}
		spec = inner.Value()
	}
	out, fault := FormatValue(l, v, spec)
	if fault != nil {
		return fault
	}
	if s.Markup {
		if x, ok := v.(*Str); !ok || !x.Markup {
			out = out.Escape()
		}
	}
	t.Str(out)
	return nil
}

func lookupField(name string, args *FormatArgs, auto *int) (Value, *Fault) {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	first, rest := name[:end], name[end:]
	var v Value
	index, err := strconv.Atoi(first)
	switch {
	case first == "" && rest != "": // the sandbox looks for an argument named ""
		return nil, Faultf(Other, "''")
	case first == "":
		if *auto < 0 {
			return nil, valueError("cannot switch from manual field specification to automatic field numbering")
		}
		index = *auto
		*auto++
		err = nil
	case err == nil && rest == "":
		if *auto > 0 {
			return nil, valueError("cannot switch from automatic field numbering to manual field specification")
		}
		*auto = -1
	}
	if err == nil {
		if index < 0 || index >= len(args.Pos) {
			return nil, Faultf(Other, "Replacement index %d out of range for positional args tuple", index)
		}
		v = args.Pos[index]
	} else {
		var fault *Fault
		if v, fault = args.Kw(first); fault != nil {
			return nil, fault
		}
		if v == nil {
			return nil, Faultf(Other, "'%s'", first)
		}
	}
	for rest != "" {
		var fault *Fault
		if rest[0] == '.' {
			n := strings.IndexAny(rest[1:], ".[") + 1
			if n == 0 {
				n = len(rest)
			}
			if n == 1 {
				return nil, valueError("Empty attribute in format string")
			}
			v, fault = args.Attr(v, rest[1:n])
			rest = rest[n:]
		} else {
			n := strings.IndexByte(rest, ']')
			if n < 0 {
				return nil, valueError("Missing ']' in format string")
			}
			if n == 1 {
				return nil, valueError("Empty attribute in format string")
			}
			var key Value = Lit(rest[1:n])
			if i, err := strconv.ParseInt(rest[1:n], 10, 64); err == nil {
				key = NewInt(i)
			}
			v, fault = args.Item(v, key)
			rest = rest[n+1:]
			if fault == nil && rest != "" && rest[0] != '.' && rest[0] != '[' {
				return nil, valueError("Only '.' or '[' may follow ']' in format field specifier")
			}
		}
		if fault != nil {
			return nil, fault
		}
	}
	return v, nil
}
