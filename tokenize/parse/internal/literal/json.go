package literal

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Scan checks one JSON value byte by byte.
type Scan struct {
	Broken string // why the value ended early
	stack  []byte // the open '{' and '['
	want   want
	tok    []byte // the current number or literal
	back   want   // the state after the current escape
	hex    int    // hexadecimal digits of the escape still to come
}

type want uint8

const (
	wantValue want = iota
	wantValueOrEnd
	wantKeyOrEnd
	wantKey
	wantColon
	wantComma // or the closing bracket
	inString
	inKey
	inEscape
	inToken
	ended
)

const (
	maxDepth = 512
	maxToken = 4096
)

// byte reads the next byte and reports whether it may follow.
func (j *Scan) byte(c byte) bool {
	switch j.want {
	case inString, inKey:
		return j.inText(c)
	case inEscape:
		return j.escape(c)
	case inToken:
		if strings.IndexByte(",]} \t\r\n", c) < 0 {
			j.tok = append(j.tok, c)
			return len(j.tok) < maxToken
		}
		if !json.Valid(j.tok) {
			return false
		}
		j.tok = j.tok[:0]
		j.after()
	}
	if strings.IndexByte(Space, c) >= 0 {
		return true
	}
	switch j.want {
	case wantKey, wantKeyOrEnd:
		if c == '"' {
			j.want = inKey
			return true
		}
		return c == '}' && j.want == wantKeyOrEnd && j.pop('{')
	case wantColon:
		j.want = wantValue
		return c == ':'
	case wantComma:
		switch c {
		case ',':
			j.want = wantValue
			if j.stack[len(j.stack)-1] == '{' {
				j.want = wantKey
			}
			return true
		case '}':
			return j.pop('{')
		case ']':
			return j.pop('[')
		}
		return false
	case wantValue, wantValueOrEnd:
		return j.begins(c)
	}
	return false
}

func (j *Scan) begins(c byte) bool {
	switch c {
	case '{', '[':
		if len(j.stack) >= maxDepth {
			return false
		}
		j.stack = append(j.stack, c)
		j.want = wantKeyOrEnd
		if c == '[' {
			j.want = wantValueOrEnd
		}
	case '"':
		j.want = inString
	case ']':
		return j.want == wantValueOrEnd && j.pop('[')
	default:
		if c != '-' && (c < '0' || c > '9') && c != 't' && c != 'f' && c != 'n' {
			return false
		}
		j.tok, j.want = append(j.tok[:0], c), inToken
	}
	return true
}

func (j *Scan) inText(c byte) bool {
	switch {
	case c < ' ':
		return false
	case c == '\\':
		j.want, j.back, j.hex = inEscape, j.want, 0
	case c == '"' && j.want == inKey:
		j.want = wantColon
	case c == '"':
		j.after()
	}
	return true
}

func (j *Scan) escape(c byte) bool {
	if j.hex == 0 {
		if c == 'u' {
			j.hex = 4
			return true
		}
		j.want = j.back
		return strings.IndexByte(`"\/bfnrt`, c) >= 0
	}
	if j.hex--; j.hex == 0 {
		j.want = j.back
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (j *Scan) pop(open byte) bool {
	if len(j.stack) == 0 || j.stack[len(j.stack)-1] != open {
		return false
	}
	j.stack = j.stack[:len(j.stack)-1]
	j.after()
	return true
}

// after sets the state after a value.
func (j *Scan) after() {
	j.want = wantComma
	if len(j.stack) == 0 {
		j.want = ended
	}
}

// Feed reads text until the value ends or is malformed, and returns how much it read.
func (j *Scan) Feed(in string) (n int, done bool) {
	for i := 0; i < len(in); i++ {
		if !j.byte(in[i]) {
			j.Broken = fmt.Sprintf("%q cannot stand here in JSON", in[i])
			return i, false
		}
		if j.want == ended {
			return i + 1, true
		}
	}
	return len(in), false
}

// Begun reports whether the value has begun with a bracket.
func (j *Scan) Begun() bool { return len(j.stack) > 0 }

// Object scans a JSON object and passes its top-level members on.
type Object struct {
	Scan
	key   []byte
	value bool // inside a top-level value
}

// Members receives the top-level members of an object. A result other than "" ends the scan.
type Members interface {
	OnKey(key string) string
	OnValue(piece string) // verbatim
	OnValueEnd() string
}

// Feed reads text until the object ends or is malformed, and returns how much it read.
func (o *Object) Feed(in string, to Members) (n int, done bool) {
	from := 0
	for i := 0; i < len(in); i++ {
		was, depth := o.want, len(o.stack)
		if !o.byte(in[i]) {
			o.Broken = fmt.Sprintf("%q cannot stand here in JSON", in[i])
			if o.value {
				to.OnValue(in[from:i])
			}
			return i, false
		}
		if depth == 1 {
			inside := was == inKey || was == inEscape && o.back == inKey
			if inside || o.want == inKey {
				o.key = append(o.key, in[i])
			}
			if inside && o.want == wantColon {
				var key string
				_ = json.Unmarshal(o.key, &key)
				o.key = o.key[:0]
				o.Broken = to.OnKey(key)
			}
			if was == wantValue && o.want != wantValue {
				o.value, from = true, i
			}
		}
		if o.value && len(o.stack) <= 1 && (o.want == wantComma || o.want == wantKey || o.want == ended) {
			end := i + 1
			if was == inToken && depth == 1 {
				end = i // a number or literal ends before the next byte
			}
			to.OnValue(in[from:end])
			o.value, o.Broken = false, to.OnValueEnd()
		}
		if o.Broken != "" {
			return i + 1, false
		}
		if o.want == ended {
			return i + 1, true
		}
	}
	if o.value {
		to.OnValue(in[from:])
	}
	return len(in), false
}
