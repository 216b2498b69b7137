package arrowfile

import (
	"errors"
	"fmt"

	"github.com/turnpack/turnpack/internal/pqread"
)

// A Type is the type of a column: a Kind or a list of it.
type Type struct {
	Kind Kind
	List bool
	// Other describes a type that File does not read; it is empty otherwise.
	Other string
}

// String returns the type as named in error messages.
func (t Type) String() string {
	switch {
	case t.Other != "":
		return t.Other
	case t.List:
		return "a list of " + t.Kind.String()
	}
	return t.Kind.String()
}

// Members of the union Type of Schema.fbs that are used.
const (
	typeNull        = 1
	typeInt         = 2
	typeFloat       = 3
	typeBinary      = 4
	typeUtf8        = 5
	typeBool        = 6
	typeDecimal     = 7
	typeDate        = 8
	typeTime        = 9
	typeStamp       = 10
	typeList        = 12
	typeStruct      = 13
	typeUnion       = 14
	typeFixed       = 15
	typeFixedList   = 16
	typeMap         = 17
	typeDuration    = 18
	typeBigBinary   = 19
	typeBigUtf8     = 20
	typeBigList     = 21
	typeBytesView   = 23
	typeTextView    = 24
	typeListView    = 25
	typeBigListView = 26
)

// buffersOf is the number of buffers per type id, without those of child columns. It is needed
// for all columns, since a column's buffers follow those of the columns before it.
var buffersOf = [...]int{-1, 0, 2, 2, 3, 3, 2, 2, 2, 2, 2, 2, 2, 1, 1, 2, 1, 2, 2, 3, 3, 2, 0, 2, 2, 3, 3}

type field struct {
	name     string
	typ      Type
	buffers  int
	children []field

	id     int  // member of the union Type
	width  int  // bits of a number, bytes of a fixed-size binary, elements of a fixed-size list
	signed bool // of an integer
	scale  int  // of a decimal
	// If the column holds dictionary indices, of describes the values and number is the
	// dictionary's id.
	of     *field
	number int64
}

type schema struct {
	fields []field
	kv     []pqread.KV
}

// deepest is the greatest nesting of lists and structures.
const deepest = 16

func readSchema(t table) (*schema, error) {
	if t.at == 0 {
		return nil, errors.New("the schema is missing")
	}
	if t.number(0, 2) != 0 {
		return nil, errors.New("numbers are big-endian, which is not read")
	}
	out := &schema{}
	r := schemaReader{left: len(t.b)}
	var err error
	if out.fields, err = r.fields(t.vector(1, 4), 0); err != nil {
		return nil, err
	}
	kv := t.vector(2, 4)
	for i := range kv.n {
		e := kv.table(i)
		out.kv = append(out.kv, pqread.KV{Key: e.text(0), Value: e.text(1)})
	}
	return out, t.err
}

// A schemaReader limits the number of fields by the bytes of the schema: tables may be shared,
// and may contain each other.
type schemaReader struct {
	left   int
	values bool // read the next field as the values of its dictionary
}

func (r *schemaReader) fields(v vector, depth int) ([]field, error) {
	if r.left -= 4 * v.n; r.left < 0 || depth > deepest {
		return nil, errors.New("the schema has more fields than it has bytes for")
	}
	out := make([]field, v.n)
	for i := range out {
		var err error
		if out[i], err = r.field(v.table(i), depth); err != nil {
			return nil, err
		}
	}
	return out, v.err
}

func (r *schemaReader) field(t table, depth int) (out field, err error) {
	out.name = t.text(0)
	id, typ := int(t.number(2, 1)), t.table(3)
	if d := t.table(4); d.at != 0 && !r.values { // dictionary indices
		r.values = true
		of, err := r.field(t, depth)
		if err != nil {
			return out, err
		}
		out.of, out.number = &of, int64(d.number(0, 8))
		out.buffers, out.typ = 2, Type{Other: "a dictionary"}
		if out.id, out.width, out.signed = typeInt, 32, true; d.table(1).at != 0 {
			out.integer(d.table(1))
		}
		return out, t.err
	}
	r.values = false
	if out.children, err = r.fields(t.vector(5, 4), depth+1); err != nil {
		return out, err
	}
	if id < 1 || id >= len(buffersOf) {
		return out, fmt.Errorf("column %s has the type %d, which is unknown", out.name, id)
	}
	out.buffers = buffersOf[id]
	out.typ = Type{Other: fmt.Sprintf("type %d of Arrow", id)}
	out.detail(id, typ)
	switch {
	case id == typeUnion && typ.number(0, 2) == 1: // dense
		out.buffers = 2
	case id == typeBool:
		out.typ = Type{Kind: Bool}
	case id == typeUtf8:
		out.typ = Type{Kind: Text}
	case id == typeFloat && typ.number(0, 2) == 1: // single
		out.typ = Type{Kind: Float32}
	case id == typeInt && typ.number(1, 1) == 1: // signed
		kinds := map[uint64]Kind{8: Int8, 32: Int32, 64: Int64}
		if k, ok := kinds[typ.number(0, 4)]; ok {
			out.typ = Type{Kind: k}
		}
	case id == typeList && len(out.children) == 1:
		if e := out.children[0].typ; !e.List && e.Other == "" {
			out.typ = Type{Kind: e.Kind, List: true}
		}
	}
	return out, t.err
}

func (f *field) integer(t table) { f.width, f.signed = int(t.number(0, 4)), t.number(1, 1) == 1 }

// detail sets what Rows needs to know about the type.
func (f *field) detail(id int, t table) {
	f.id, f.signed = id, true
	switch id {
	case typeInt:
		f.integer(t)
	case typeFloat:
		f.width = 16 << min(t.number(0, 2), 3)
	case typeDecimal:
		f.scale = int(int32(t.number(1, 4)))
		if f.width = int(t.number(2, 4)); f.width == 0 {
			f.width = 128
		}
	case typeDate:
		if f.width = 64; t.slot(0) != 0 && t.number(0, 2) == 0 { // days
			f.width = 32
		}
	case typeTime:
		if f.width = int(t.number(1, 4)); f.width == 0 {
			f.width = 32
		}
	case typeStamp, typeDuration:
		f.width = 64
	case typeFixed, typeFixedList:
		f.width = int(int32(t.number(0, 4)))
	}
}
