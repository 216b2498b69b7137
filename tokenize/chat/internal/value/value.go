// Package value defines the values of a chat template: a small closed set of types that are compared, hashed and
// printed as in Python, and strings that record which part of the input each byte came from. Package py computes with
// them.
package value

import (
	"math/big"

	"github.com/turnpack/turnpack/tokenize/internal/origin"
)

// Field is a place in the input.
type Field = origin.Field

// Value is one of the types of this package, or a callable or context object of the evaluator. Values are immutable
// once a template can see them, except namespaces, loops, cyclers and one-shot iterators.
type Value interface {
	// TypeName is Python's name of the type.
	TypeName() string
}

// Scalars carry the Field they were read from, or nil.
type (
	None struct{ F *Field }
	Bool struct {
		V bool
		F *Field
	}
	// Int is V, or Big if the integer does not fit into V.
	Int struct {
		V   int64
		Big *big.Int
		F   *Field
	}
	Float struct {
		V float64
		F *Field
		// Literal is the number as spelled in the input, "" for Python's spelling. It is written wherever the number
		// is written by itself.
		Literal string
	}
)

// Undefined stands for a missing value. It prints as nothing and fails with its own message when used.
type Undefined struct {
	Hint   string // the whole message, if not empty
	Obj    Value  // object that lacks it; nil for a variable
	Name   Value  // variable, attribute or key
	Unsafe bool   // forbidden rather than missing
}

// List is a list or, with Tuple set, a tuple.
type List struct {
	Items []Value
	Tuple bool
	Group bool   // a tuple of groupby, which also has the attributes grouper and list
	F     *Field // set for lists of the input
}

// Range is Python's range object.
type Range struct {
	Start, Stop, Step int64
	F                 *Field // that the bounds come from, or nil
}

// View is dict.keys(), dict.values() or dict.items().
type View struct {
	D    *Dict
	Kind string // "dict_keys", "dict_values" or "dict_items"
}

// Iter is a one-shot iterator: Next returns nil at the end.
type Iter struct {
	Name  string // Python's type name
	Next  func() Value
	Depth int // number of nested iterators it reads from
}

// Bytes is the result of str.encode.
type Bytes struct {
	B string
	F *Field // that the bytes come from, or nil
}

// At returns byte i as a number.
func (b *Bytes) At(i int) Value {
	return Made(NewInt(int64(b.B[i])), b.F)
}

// Made returns text as a string derived from the bytes.
func (b *Bytes) Made(text string) *Str {
	t := Text{}
	t.From(text, b.F, 0, len(b.B))
	return t.Own()
}

func (*None) TypeName() string      { return "NoneType" }
func (*Bool) TypeName() string      { return "bool" }
func (*Int) TypeName() string       { return "int" }
func (*Float) TypeName() string     { return "float" }
func (*Str) TypeName() string       { return "str" }
func (*Undefined) TypeName() string { return "Undefined" }
func (*Dict) TypeName() string      { return "dict" }
func (*Range) TypeName() string     { return "range" }
func (*Bytes) TypeName() string     { return "bytes" }
func (v *View) TypeName() string    { return v.Kind }
func (v *Iter) TypeName() string    { return v.Name }
func (v *List) TypeName() string {
	if v.Tuple {
		return "tuple"
	}
	return "list"
}

// Constants without origin.
var (
	Nil   = &None{}
	True  = &Bool{V: true}
	False = &Bool{V: false}
	Empty = &Str{}
)

// smallInts caches the common lengths and positions that loops over messages create.
var smallInts = func() (t [8448]Int) {
	for i := range t {
		t[i].V = int64(i - 256)
	}
	return t
}()

// NewBool returns True or False.
func NewBool(b bool) Value {
	if b {
		return True
	}
	return False
}

// NewInt returns an integer without origin.
func NewInt(i int64) *Int {
	if i >= -256 && i < 8192 {
		return &smallInts[i+256]
	}
	return &Int{V: i}
}

// NewBig returns an integer without origin; it keeps b.
func NewBig(b *big.Int) *Int {
	if b.IsInt64() {
		return NewInt(b.Int64())
	}
	return &Int{Big: b}
}

// Made returns v with origin f if v is a number and f is not nil, else v itself.
func Made(v Value, f *Field) Value {
	if f == nil {
		return v
	}
	switch v := v.(type) {
	case *Int:
		return &Int{V: v.V, Big: v.Big, F: f}
	case *Float:
		return &Float{V: v.V, F: f}
	}
	return v
}

// Origin returns the Field of a scalar, the first Field of a string, or nil.
func Origin(v Value) *Field {
	switch v := v.(type) {
	case *Str:
		return v.Field()
	case *Bytes:
		return v.F
	case *Range:
		return v.F
	case *None:
		return v.F
	case *Bool:
		return v.F
	case *Int:
		return v.F
	case *Float:
		return v.F
	}
	return nil
}

// IsNone reports whether v is None, or nil.
func IsNone(v Value) bool {
	_, ok := v.(*None)
	return v == nil || ok
}

// IsUndefined reports whether v is an Undefined.
func IsUndefined(v Value) bool {
	_, ok := v.(*Undefined)
	return ok
}

// Truth implements Python's bool().
func Truth(v Value) bool {
	if b, ok := v.(*Bool); ok { // by far the most frequent
		return b.V
	}
	switch v := v.(type) {
	case *None, *Undefined:
		return false
	case *Int:
		return v.V != 0 || v.Big != nil
	case *Float:
		return v.V != 0
	case *Str:
		return v.S != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return v.Len() > 0
	case *Range:
		return v.Len() > 0
	case *View:
		return v.D.Len() > 0
	case *Bytes:
		return v.B != ""
	case interface{ Truth() bool }:
		return v.Truth()
	}
	return true
}

// Len implements Python's len().
func Len(l *Limits, v Value) int {
	switch v := v.(type) {
	case *Str:
		return v.RuneCount()
	case *List:
		return len(v.Items)
	case *Undefined:
		return 0
	case *View:
		return v.D.Len()
	case *Bytes:
		return len(v.B)
	case interface{ Len() int }:
		return v.Len()
	}
	l.Failf(Type, "object of type '%s' has no len()", v.TypeName())
	return 0
}

// Len returns the number of integers in the range.
func (r *Range) Len() int {
	var n uint64
	switch {
	case r.Step > 0 && r.Start < r.Stop:
		n = (uint64(r.Stop)-uint64(r.Start)-1)/uint64(r.Step) + 1
	case r.Step < 0 && r.Start > r.Stop:
		n = (uint64(r.Start)-uint64(r.Stop)-1)/(-uint64(r.Step)) + 1
	}
	if n > 1<<62 {
		n = 1 << 62
	}
	return int(n)
}

// At returns element i, 0 <= i < Len.
func (r *Range) At(i int) Value { return Made(NewInt(r.Start+int64(i)*r.Step), r.F) }

// Use returns the fault of using an undefined value.
func (u *Undefined) Use() *Fault {
	c := UndefinedUse
	if u.Unsafe {
		c = Security
	}
	return &Fault{Class: c, Msg: u.Message()}
}

// Message returns Jinja's message for u.
func (u *Undefined) Message() string {
	if u.Hint != "" {
		return u.Hint
	}
	name := "None"
	if u.Name != nil {
		name = ReprString(u.Name)
	}
	if u.Obj == nil {
		return name + " is undefined"
	}
	obj := "None"
	if _, ok := u.Obj.(*None); !ok {
		obj = u.Obj.TypeName() + " object"
	}
	if _, ok := u.Name.(*Str); ok {
		return "'" + obj + "' has no attribute " + name
	}
	return obj + " has no element " + name
}

// Elements returns the items of any iterable as a slice that the caller must not change. It consumes a one-shot
// iterator. At most l.Items items are read.
func Elements(l *Limits, v Value) []Value {
	switch v := v.(type) {
	case *List:
		return v.Items
	case *Undefined:
		return nil
	case *Iter:
		var out []Value
		for x := v.Next(); x != nil && l.Item(len(out)); x = v.Next() {
			out = append(out, x)
		}
		return out
	}
	next, n := Iterate(v)
	if next == nil {
		l.Failf(Type, "'%s' object is not iterable", v.TypeName())
		return nil
	}
	if n > l.Items {
		l.Failf(Limit, "%d items, more than %d", n, l.Items)
	}
	size := 16
	switch v := v.(type) {
	case *Str:
		size += StrSize
		n = v.RuneCount()
	case *View, *Range, *Bytes:
		size += 2 * StrSize
	}
	if !l.Make(size * n) {
		return nil
	}
	out := make([]Value, 0, n)
	for x := next(); x != nil; x = next() {
		if len(out) >= l.Items {
			l.Failf(Limit, "more than %d items", l.Items)
			return nil
		}
		out = append(out, x)
	}
	return out
}

// Iterate implements Python's iter(): next returns nil at the end, and is nil if v is not iterable. n is the expected
// number of items, as a hint.
func Iterate(v Value) (next func() Value, n int) {
	i := 0
	index := func(n int, at func(int) Value) func() Value {
		return func() Value {
			if i >= n {
				return nil
			}
			i++
			return at(i - 1)
		}
	}
	switch v := v.(type) {
	case *List:
		return index(len(v.Items), func(i int) Value { return v.Items[i] }), len(v.Items)
	case *Str:
		return func() Value {
			if i >= len(v.S) {
				return nil
			}
			j := i + RuneLen(v.S[i:])
			s := v.Slice(i, j).Plain()
			i = j
			return s
		}, len(v.S)
	case *Dict:
		return index(v.Len(), v.Key), v.Len()
	case *Range:
		return index(v.Len(), v.At), v.Len()
	case *View:
		return index(v.D.Len(), v.At), v.D.Len()
	case *Undefined:
		return func() Value { return nil }, 0
	case *Iter:
		return v.Next, 0
	case *Bytes:
		return index(len(v.B), v.At), len(v.B)
	case interface{ Iterate() func() Value }:
		return v.Iterate(), 0
	}
	return nil, 0
}

// At returns element i of the view.
func (v *View) At(i int) Value {
	switch v.Kind {
	case "dict_keys":
		return v.D.Key(i)
	case "dict_values":
		return v.D.Val(i)
	}
	return &List{Items: []Value{v.D.Key(i), v.D.Val(i)}, Tuple: true}
}
