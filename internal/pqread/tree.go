package pqread

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// A node is one element of the schema, with its place in JSON rows.
type node struct {
	schema     element
	name       string
	key        []byte // key of the member in a JSON object, with colon
	repetition repetition
	def, rep   int16 // levels of an entry in which the node is present
	from, to   int   // range of its columns
	kids       []*node
	inner      *node // of a list or map: the repeated node
	element    *node // of a repeated node: the element, if the node only wraps it
	pairs      bool  // a map with text keys
	message    bool  // has the members role and content
}

// level holds the levels of a node's parent.
type level struct{ def, rep int16 }

// tree is a schema, as nested nodes and as flat columns.
type tree struct {
	columns   []*node
	all, flat []Leaf    // all columns in file order; the scalars and lists of scalars
	rest      []element // elements not read yet, in depth-first order
	path      []element // path to the current element
}

func readTree(schema []element) (*tree, error) {
	if len(schema) == 0 {
		return nil, errors.New("the schema is empty")
	}
	t := &tree{rest: schema[1:]}
	for range schema[0].children {
		n, err := t.build(level{})
		if err != nil {
			return nil, err
		}
		t.columns = append(t.columns, n)
	}
	if len(t.rest) > 0 {
		return nil, fmt.Errorf("the schema has %d elements outside of its tree", len(t.rest))
	}
	return t, nil
}

func (t *tree) build(above level) (*node, error) {
	if len(t.rest) == 0 || len(t.path) >= deepest {
		return nil, errors.New("the schema ends before its tree does, or is too deep")
	}
	e := t.rest[0]
	t.rest = t.rest[1:]
	t.path = append(t.path, e)
	defer func() { t.path = t.path[:len(t.path)-1] }()
	n := &node{schema: e, name: e.name, key: append(jsonscan.AppendText(nil, e.name), ':'), repetition: e.repetition, def: above.def, rep: above.rep, from: len(t.all)}
	switch e.repetition {
	case optional:
		n.def++
	case repeated:
		n.def++
		n.rep++
	}
	if e.children == 0 {
		t.leaf(n)
		n.to = len(t.all)
		return n, nil
	}
	has := map[string]bool{}
	for range e.children {
		kid, err := t.build(level{n.def, n.rep})
		if err != nil {
			return nil, err
		}
		has[kid.name] = true
		n.kids = append(n.kids, kid)
	}
	n.to = len(t.all)
	n.message = has["role"] && has["content"]
	n.container()
	return n, nil
}

// leaf adds the column of n, at the end of the path.
func (t *tree) leaf(n *node) {
	l := Leaf{Name: n.name, Type: n.schema.typ, List: n.rep > 0, index: len(t.all), maxRep: n.rep, maxDef: n.def, width: n.schema.width}
	t.all = append(t.all, l)
	if l.Name = t.path[0].name; l.flat(t.path) {
		t.flat = append(t.flat, l)
	}
}

// flat reports whether the column at the end of path is a scalar or a list of scalars, and sets
// repDef.
func (l *Leaf) flat(path []element) bool {
	if l.Type == Fixed || l.Type == Int96 || l.maxRep > 1 || !l.List && len(path) > 1 {
		return false
	}
	if !l.List {
		return true
	}
	at := slices.IndexFunc(path, func(e element) bool { return e.repetition == repeated })
	inside := path[at+1:]
	if len(inside) > 1 || path[at].children > 1 { // lists of structures
		return false
	}
	if at > 1 || at == 1 && path[0].children > 1 { // lists in structures
		return false
	}
	// Definition levels below that of the repeated element describe the list itself.
	l.repDef = l.maxDef
	if len(inside) == 1 && inside[0].repetition == optional {
		l.repDef--
	}
	return true
}

// container finds out whether n is a list or a map rather than a structure, including the forms
// that writers used before the annotations were standardised.
func (n *node) container() {
	if len(n.kids) != 1 || n.kids[0].repetition != repeated {
		return
	}
	e, inner := n.schema, n.kids[0]
	unsaid := !e.list && !e.pair && len(inner.kids) == 1 && (inner.name == "list" || inner.name == "bag")
	switch {
	case e.pair && len(inner.kids) == 2:
		n.inner = inner
		key := inner.kids[0]
		number := key.schema.decimal || key.schema.half
		n.pairs = key.kids == nil && key.repetition != repeated && key.schema.typ == ByteArray && !number
	case e.list || unsaid:
		n.inner = inner
		if len(inner.kids) == 1 && inner.kids[0].repetition != repeated && inner.name != "array" && inner.name != n.name+"_tuple" {
			inner.element = inner.kids[0]
		}
	}
}

// longText returns the text at the cursor, and whether it is one long enough to be given
// unescaped.
func (c *cursor) longText(n *node) (string, bool) {
	if e := &n.schema; e.typ != ByteArray || e.decimal || e.half || c.v >= len(c.out.Texts) || c.def() != c.leaf.maxDef {
		return "", false
	}
	s := c.out.Texts[c.v]
	return s, len(s) >= 64
}

// value writes the value at the cursor.
func (c *cursor) value(b []byte, n *node) ([]byte, error) {
	e, o, v := &n.schema, c.out, c.v
	if have := len(o.Ints) + len(o.Longs) + len(o.Floats) + len(o.Doubles) + len(o.Texts); v >= have || c.def() != c.leaf.maxDef {
		return b, errLevels // exactly one of the slices is filled
	}
	switch e.typ {
	case Boolean:
		return strconv.AppendBool(b, o.Ints[v] == 1), nil
	case Int32:
		if e.unsigned {
			return strconv.AppendUint(b, uint64(uint32(o.Ints[v])), 10), nil
		}
		return c.scaled(b, int64(o.Ints[v]), e)
	case Int64:
		if e.unsigned {
			return strconv.AppendUint(b, uint64(o.Longs[v]), 10), nil
		}
		return c.scaled(b, o.Longs[v], e)
	case Float:
		return jsonscan.AppendFloat(b, float64(o.Floats[v]), 32), nil
	case Double:
		return jsonscan.AppendFloat(b, o.Doubles[v], 64), nil
	}
	s := o.Texts[v]
	switch {
	case e.text:
		return jsonscan.AppendText(b, s), nil
	case e.decimal && len(s) > 0:
		return c.decimal(AppendDecimal(b, []byte(s), e.scale))
	case e.half && len(s) == 2:
		return jsonscan.AppendFloat(b, HalfFloat(binary.LittleEndian.Uint16([]byte(s))), 32), nil
	case e.typ == ByteArray && utf8.ValidString(s):
		return jsonscan.AppendText(b, s), nil
	}
	return jsonscan.AppendBase64(b, []byte(s)), nil
}

func (c *cursor) scaled(b []byte, x int64, e *element) ([]byte, error) {
	if e.decimal && e.scale != 0 {
		return c.decimal(appendDecimal(b, big.NewInt(x), e.scale))
	}
	return strconv.AppendInt(b, x, 10), nil
}

// decimal adds the column to the error of a decimal.
func (c *cursor) decimal(b []byte, err error) ([]byte, error) {
	if err != nil {
		err = fmt.Errorf("column %s: %w", c.leaf.Name, err)
	}
	return b, err
}

// maxDecimal is the greatest number of bytes of a decimal, that of Arrow's decimal256.
const maxDecimal = 32

// AppendDecimal writes a big-endian two's complement number with scale digits after the point. If
// scale is negative, the number is a multiple of 10^-scale.
func AppendDecimal(b, digits []byte, scale int) ([]byte, error) {
	for len(digits) > 1 && (digits[0] == 0 && digits[1] < 0x80 || digits[0] == 0xff && digits[1] >= 0x80) {
		digits = digits[1:] // it repeats the sign
	}
	if len(digits) > maxDecimal {
		return b, fmt.Errorf("a decimal of %d bytes, expected at most %d", len(digits), maxDecimal)
	}
	x := new(big.Int).SetBytes(digits)
	if digits[0] >= 0x80 { // two's complement
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(digits))))
	}
	return appendDecimal(b, x, scale)
}

// maxScale is the greatest number of digits after the point, and of zeros that a negative scale
// stands for.
const maxScale = 1000

// appendDecimal writes x with scale digits after the point.
func appendDecimal(b []byte, x *big.Int, scale int) ([]byte, error) {
	if scale < -maxScale || scale > maxScale {
		return b, fmt.Errorf("a decimal of scale %d, expected %d to %d", scale, -maxScale, maxScale)
	}
	if scale <= 0 {
		if b = x.Append(b, 10); x.Sign() != 0 {
			b = append(b, slices.Repeat([]byte{'0'}, -scale)...)
		}
		return b, nil
	}
	if x.Sign() < 0 {
		b = append(b, '-')
	}
	digits := new(big.Int).Abs(x).Append(nil, 10)
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = append(slices.Repeat([]byte{'0'}, missing), digits...)
	}
	at := len(digits) - scale
	return append(append(append(b, digits[:at]...), '.'), digits[at:]...), nil
}

// HalfFloat returns the value of a 16-bit float.
func HalfFloat(h uint16) float64 {
	sign, exponent, fraction := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 == 1 {
		sign = -1
	}
	switch {
	case exponent == 0:
		return sign * math.Ldexp(fraction, -24)
	case exponent < 31:
		return sign * math.Ldexp(1+fraction/1024, exponent-15)
	case fraction == 0:
		return sign * math.Inf(1)
	}
	return math.NaN()
}
