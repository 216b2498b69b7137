package jsonscan

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"
)

// Kind is the kind of a Value.
type Kind uint8

// The kinds. Absent is the kind of the zero Value, such as a missing key.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"nothing", "null", "a boolean", "a number", "a string", "a list", "an object"}

// String returns the kind with its article, for error texts.
func (k Kind) String() string { return kindNames[k] }

const (
	flagEscaped  = 1 << iota // the string holds a backslash
	flagPacked               // the array holds numbers only and has no nodes of its own
	flagTrue                 // the boolean is true
	flagNotFinit             // the number is NaN, Infinity or -Infinity
	flagUnicode              // the string holds a \u escape
	flagGiven                // the string is one of Options.Given
)

// node is one value (or object key). An object's children are key, value, key,
// value, …; next is the node after the whole subtree.
type node struct {
	start, end, next uint32
	kind             Kind
	flags            uint8
}

// Options configures Parse.
type Options struct {
	Depth     int     // deepest nesting, 0 = 512
	Values    int     // initial capacity, in values and keys
	NonFinite bool    // accept NaN, Infinity and -Infinity, as Python writes them
	Given     []Given // strings left out of the parsed text, in order
}

const defaultDepth = 512

// The classes of SyntaxError.
const (
	Malformed = iota // not JSON
	Truncated        // the text ends inside the value
	BadUTF8          // a string is not valid UTF-8
	TooDeep          // nested deeper than Options.Depth
	TooBig           // longer than 4 GiB
	Trailing         // a whole value is followed by more text
)

// SyntaxError says where a text is not JSON.
type SyntaxError struct {
	Offset int // byte offset in the text
	Class  int
	Msg    string
}

// Error returns the message with the offset.
func (e *SyntaxError) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Msg) }

// Doc is a parsed text. Parse may be called again, which invalidates earlier Values. A Doc
// and its Values must be used by one goroutine at a time.
type Doc struct {
	src   []byte
	nodes []node
	opt   Options
	words map[string]string // see Value.Word
	// NonFinite is true if NaN or an infinity occurred.
	NonFinite bool
}

// Parse parses src, which must hold exactly one value and white space. The Doc keeps src,
// which must not change while Values are in use.
func (d *Doc) Parse(src []byte, opt Options) (Value, error) {
	if opt.Depth <= 0 {
		opt.Depth = defaultDepth
	}
	d.src, d.nodes, d.opt, d.NonFinite = src, d.nodes[:0], opt, false
	if len(src) >= math.MaxUint32 {
		return Value{}, &SyntaxError{0, TooBig, "the text is longer than 4 GiB"}
	}
	if n := max(8+min(len(src)/16, 1<<10), opt.Values); d.nodes == nil || cap(d.nodes) < opt.Values {
		d.nodes = make([]node, 0, n)
	}
	i, err := d.value(skipSpace(src, 0), 1)
	if err != nil {
		return Value{}, err
	}
	if i = skipSpace(src, i); i < len(src) {
		return Value{}, &SyntaxError{i, Trailing, "expected the end after the value, found " + show(src[i])}
	}
	return d.at(0), nil
}

func (d *Doc) fail(at int, format string, args ...any) error {
	class := Malformed
	if at >= len(d.src) {
		class = Truncated
	}
	return &SyntaxError{at, class, fmt.Sprintf(format, args...)}
}

func show(c byte) string {
	if c < 0x20 || c >= 0x7f {
		return fmt.Sprintf("byte 0x%02x", c)
	}
	return fmt.Sprintf("%q", c)
}

func skipSpace(src []byte, i int) int {
	for i < len(src) && (src[i] == ' ' || src[i] == '\n' || src[i] == '\r' || src[i] == '\t') {
		i++
	}
	return i
}

func (d *Doc) add(start int, kind Kind) int {
	d.nodes = append(d.nodes, node{start: uint32(start), kind: kind})
	return len(d.nodes) - 1
}

func (d *Doc) close(at, end int) {
	d.nodes[at].end = uint32(end)
	d.nodes[at].next = uint32(len(d.nodes))
}

func (d *Doc) value(i, depth int) (int, error) {
	if i >= len(d.src) {
		return i, d.fail(i, "the text ends where a value is expected")
	}
	switch c := d.src[i]; c {
	case '{':
		return d.nested(i, depth, Object, '}')
	case '[':
		return d.nested(i, depth, Array, ']')
	case '"':
		return d.str(i)
	case 't':
		return d.word(i, "true", Bool, flagTrue)
	case 'f':
		return d.word(i, "false", Bool, 0)
	case 'n':
		return d.word(i, "null", Null, 0)
	default:
		end, flags, err := d.number(i)
		if err != nil {
			return i, err
		}
		at := d.add(i, Number)
		d.nodes[at].flags = flags
		d.close(at, end)
		return end, nil
	}
}

func (d *Doc) word(i int, word string, kind Kind, flags uint8) (int, error) {
	for k := range len(word) {
		if i+k >= len(d.src) || d.src[i+k] != word[k] {
			return i, d.fail(i+k, "expected %s", word)
		}
	}
	at := d.add(i, kind)
	d.nodes[at].flags = flags
	d.close(at, i+len(word))
	return i + len(word), nil
}

// nested parses the object or list at i, which ends with the closing bracket.
func (d *Doc) nested(i, depth int, kind Kind, closing byte) (int, error) {
	if depth > d.opt.Depth {
		return i, &SyntaxError{i, TooDeep, fmt.Sprintf("nested deeper than %d levels", d.opt.Depth)}
	}
	at := d.add(i, kind)
	i = skipSpace(d.src, i+1)
	if i < len(d.src) && d.src[i] == closing {
		d.close(at, i+1)
		return i + 1, nil
	}
	if kind == Array {
		if end := d.packed(i); end > 0 {
			d.nodes[at].flags = flagPacked
			d.close(at, end)
			return end, nil
		}
	}
	for {
		var err error
		if kind == Object {
			if i >= len(d.src) || d.src[i] != '"' {
				return i, d.expected(i, "a key")
			}
			if i, err = d.str(i); err != nil {
				return i, err
			}
			i = skipSpace(d.src, i)
			if i >= len(d.src) || d.src[i] != ':' {
				return i, d.expected(i, "':' after the key")
			}
			i = skipSpace(d.src, i+1)
		}
		if i, err = d.value(i, depth+1); err != nil {
			return i, err
		}
		i = skipSpace(d.src, i)
		if i < len(d.src) && d.src[i] == closing {
			d.close(at, i+1)
			return i + 1, nil
		}
		if i >= len(d.src) || d.src[i] != ',' {
			return i, d.expected(i, "',' or '"+string(closing)+"'")
		}
		i = skipSpace(d.src, i+1)
	}
}

func (d *Doc) expected(i int, what string) error {
	if i >= len(d.src) {
		return d.fail(i, "expected %s, found the end of the text", what)
	}
	return d.fail(i, "expected %s, found %s", what, show(d.src[i]))
}

// packed returns the end of a list of finite numbers, 0 if it is another list.
func (d *Doc) packed(i int) int {
	for {
		if i >= len(d.src) || (d.src[i] != '-' && !digit(d.src[i])) {
			return 0
		}
		end, flags, err := d.number(i)
		if err != nil || flags != 0 {
			return 0
		}
		i = skipSpace(d.src, end)
		if i < len(d.src) && d.src[i] == ']' {
			return i + 1
		}
		if i >= len(d.src) || d.src[i] != ',' {
			return 0
		}
		i = skipSpace(d.src, i+1)
	}
}

func digit(c byte) bool { return c-'0' <= 9 }

func (d *Doc) number(i int) (end int, flags uint8, err error) {
	start := i
	at := func(i int) byte {
		if i < len(d.src) {
			return d.src[i]
		}
		return 0
	}
	if at(i) == '-' {
		i++
	}
	switch c := at(i); {
	case c == '0':
		i++
	case digit(c):
		for digit(at(i)) {
			i++
		}
	case d.opt.NonFinite && (c == 'N' && start == i || c == 'I'):
		word := "Infinity"
		if c == 'N' {
			word = "NaN"
		}
		if len(d.src)-i < len(word) || string(d.src[i:i+len(word)]) != word {
			return i, 0, d.expected(min(i+1, len(d.src)), word)
		}
		d.NonFinite = true
		return i + len(word), flagNotFinit, nil
	default:
		return i, 0, d.expected(i, "a value")
	}
	if at(i) == '.' {
		i++
		if !digit(at(i)) {
			return i, 0, d.expected(i, "a digit after '.'")
		}
		for digit(at(i)) {
			i++
		}
	}
	if c := at(i); c == 'e' || c == 'E' {
		i++
		if c := at(i); c == '+' || c == '-' {
			i++
		}
		if !digit(at(i)) {
			return i, 0, d.expected(i, "a digit in the exponent")
		}
		for digit(at(i)) {
			i++
		}
	}
	return i, 0, nil
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// escaped marks the first of eight bytes that needs an escape in a JSON string by its high
// bit; higher bits may be wrong.
func escaped(w uint64) uint64 {
	quote, slash := w^(lowBits*'"'), w^(lowBits*'\\')
	return ((quote-lowBits)&^quote | (slash-lowBits)&^slash | (w-lowBits*0x20)&^w) & highBits
}

// str parses the string at i and adds its node.
func (d *Doc) str(i int) (int, error) {
	end, flags, err := d.scanString(i + 1)
	if err != nil {
		return end, err
	}
	at := d.add(i, String)
	if end == i+2 && d.isGiven(i) {
		flags = flagGiven
	}
	d.nodes[at].flags = flags
	d.close(at, end)
	return end, nil
}

// scanString checks a string from i, after its opening quote, and returns the offset after
// its closing quote or, with an error, the offset of the character that is wrong or cut
// off.
func (d *Doc) scanString(i int) (end int, flags uint8, err error) {
	src := d.src
	for {
		for i+8 <= len(src) {
			w := binary.LittleEndian.Uint64(src[i:])
			if special := escaped(w) | w&highBits; special != 0 {
				i += bits.TrailingZeros64(special) >> 3
				break
			}
			i += 8
		}
		if i >= len(src) {
			return i, flags, d.fail(i, "the text ends inside a string")
		}
		switch c := src[i]; {
		case c == '"':
			return i + 1, flags, nil
		case c == '\\':
			flags |= flagEscaped
			n, err := d.escape(i)
			if err != nil {
				return i, flags, err
			}
			if n > 2 {
				flags |= flagUnicode
			}
			i += n
		case c < 0x20:
			return i, flags, d.fail(i, "control %s inside a string, expected an escape", show(c))
		case c < utf8.RuneSelf:
			i++
		case c >= 0xC2 && c < 0xE0 && i+1 < len(src) && src[i+1]&0xC0 == 0x80:
			i += 2
		default:
			r, n := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && n <= 1 {
				class := BadUTF8
				if !utf8.FullRune(src[i:]) {
					class = Truncated
				}
				return i, flags, &SyntaxError{i, class, fmt.Sprintf("byte 0x%02x is not valid UTF-8", c)}
			}
			i += n
		}
	}
}

func (d *Doc) escape(i int) (int, error) {
	src := d.src
	if i+1 >= len(src) {
		return 0, d.fail(len(src), "the text ends inside an escape")
	}
	switch src[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, nil
	case 'u':
		for k := i + 2; k < i+6; k++ {
			if k >= len(src) {
				return 0, d.fail(k, "the text ends inside an escape")
			}
			if hex(src[k]) < 0 {
				return 0, d.fail(k, "expected four hexadecimal digits after \\u, found %s", show(src[k]))
			}
		}
		return 6, nil
	}
	return 0, d.fail(i+1, "unknown escape \\%s", show(src[i+1]))
}

func hex(c byte) int {
	switch {
	case digit(c):
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
