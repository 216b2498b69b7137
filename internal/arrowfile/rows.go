package arrowfile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/internal/pqread"
)

// Rows reads the rows of a file or stream as JSON objects, in order, in the same form as
// [pqread.Rows]. It holds one record batch and all dictionaries in memory.
type Rows struct {
	f       *File
	columns []*series
	batch   int // of the next row, from 1
	at, n   int // next row of the batch, number of its rows
	row     int
	dicts   map[int64]*dictionary
	left    int64 // bytes that dictionaries may still decompress to
	out     []byte
	most    int
	err     error
}

// A dictionary holds the values of a dictionary; each delta adds a part.
type dictionary struct {
	of    *field
	parts []*series
}

// NewRows returns the rows of f. A row of more than most bytes is an error; 0 means 1 GiB.
func NewRows(f *File, most int) (*Rows, error) {
	if most <= 0 {
		most = 1 << 30
	}
	r := &Rows{f: f, most: most, dicts: map[int64]*dictionary{}, left: pqread.MostBytes(f.size)}
	if err := r.registerDictionaries(f.schema.fields); err != nil {
		return nil, err
	}
	for _, at := range f.dicts {
		m, err := f.message(at)
		if err == nil && (m == nil || m.kind != headDictionary) {
			err = errors.New("a dictionary is none")
		}
		if err == nil {
			err = r.dictionary(m)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// registerDictionaries registers the dictionaries that fields use.
func (r *Rows) registerDictionaries(fields []field) error {
	for i := range fields {
		f := &fields[i]
		if f.of != nil {
			r.dicts[f.number] = &dictionary{of: f.of}
			f = f.of
		}
		if f.id == typeMap && (len(f.children) != 1 || len(f.children[0].children) != 2) {
			return fmt.Errorf("column %s is a map of no pairs", f.name)
		}
		if err := r.registerDictionaries(f.children); err != nil {
			return err
		}
	}
	return nil
}

// dictionary reads a dictionary batch, which replaces the values or, as a delta, adds some.
func (r *Rows) dictionary(m *message) error {
	id, delta := int64(m.head.number(0, 8)), m.head.number(2, 1) == 1
	d := r.dicts[id]
	if m.head.err != nil || d == nil {
		return fmt.Errorf("dictionary %d is of no column", id)
	}
	b, err := r.f.batch(m, m.head.table(1))
	if err != nil {
		return err
	}
	b.left = r.left
	a, err := b.series(d.of)
	if err != nil {
		return fmt.Errorf("dictionary %d: %w", id, err)
	}
	if r.left = b.left; !delta {
		d.parts = nil
	}
	d.parts = append(d.parts, a)
	return nil
}

// Row returns the number of the row that Next last returned, from 1.
func (r *Rows) Row() int { return r.row }

// Given returns nothing: no texts are left out of the rows.
func (r *Rows) Given() (texts []jsonscan.Given, bytes int) { return nil, 0 }

// Next returns the next row, which is valid until the next call, or io.EOF after the last.
// Other errors are final.
func (r *Rows) Next() ([]byte, error) {
	if r.err == nil {
		r.err = r.next()
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.out, nil
}

func (r *Rows) next() error {
	for r.at == r.n {
		if err := r.load(); err == io.EOF {
			return err
		} else if err != nil {
			return fmt.Errorf("record batch %d: %w", r.batch, err)
		}
	}
	r.row++
	w := rowWriter{r: r, b: r.out[:0]}
	w.members(r.columns, r.at, false, 0)
	r.at++
	if r.out = w.b; w.err != nil {
		return fmt.Errorf("record batch %d: %w", r.batch, w.err)
	}
	return nil
}

func (r *Rows) load() error {
	r.batch++
	r.columns = nil
	m, err := r.f.nextBatch(r.dictionary)
	if err != nil {
		return err
	}
	b, err := r.f.batch(m, m.head)
	if err != nil {
		return err
	}
	for i := range r.f.schema.fields {
		f := &r.f.schema.fields[i]
		a, err := b.series(f)
		if err == nil && a.n != b.rows {
			err = fmt.Errorf("it holds %d rows, its record batch %d", a.n, b.rows)
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", f.name, err)
		}
		r.columns = append(r.columns, a)
	}
	r.at, r.n = 0, b.rows
	return nil
}

// A series is a column of a batch whose buffers are known to hold all its n values.
type series struct {
	f       *field
	key     []byte // key of the member in a JSON object, with colon
	message bool   // has the members role and content
	n       int
	valid   []byte
	data    []byte   // numbers, texts, views, or the lengths of list views
	texts   [][]byte // to which views point
	ends    []byte   // offsets of 4 bytes, or of 8 if wide
	wide    bool
	kids    []*series
}

// series reads the next column and its child columns.
func (b *batch) series(f *field) (*series, error) {
	n, nulls, err := b.nextNode()
	if err != nil {
		return nil, err
	}
	a := &series{f: f, n: n, key: append(jsonscan.AppendText(nil, f.name), ':')}
	if f.id == typeNull {
		return a, nil
	}
	if a.valid, err = b.validity(n, nulls); err != nil {
		return nil, err
	}
	switch f.id {
	case typeBool:
		a.data, err = b.nextBuffer((n + 7) / 8)
	case typeInt, typeFloat, typeDecimal, typeDate, typeTime, typeStamp, typeDuration:
		if !slices.Contains([]int{8, 16, 32, 64, 128, 256}, f.width) || f.width > 64 && f.id != typeDecimal || f.width < 16 && f.id == typeFloat {
			return nil, fmt.Errorf("numbers of %d bits", f.width)
		}
		a.data, err = b.nextBuffer(n * f.width / 8)
	case typeFixed:
		if f.width <= 0 || int64(n) > b.left/int64(f.width) {
			return nil, fmt.Errorf("texts of %d bytes", f.width)
		}
		a.data, err = b.nextBuffer(n * f.width)
	case typeUtf8, typeBinary, typeBigUtf8, typeBigBinary:
		a.wide = f.id == typeBigUtf8 || f.id == typeBigBinary
		if err = b.ends(a); err == nil {
			a.data, err = b.nextBuffer(a.end(n))
		}
	case typeTextView, typeBytesView:
		err = b.views(a)
	case typeListView, typeBigListView:
		a.wide = f.id == typeBigListView
		err = b.listViews(a)
	case typeList, typeBigList, typeMap:
		a.wide = f.id == typeBigList
		if err = b.ends(a); err == nil {
			err = b.kids(a, a.end(n))
		}
	case typeFixedList:
		if f.width < 0 || f.width > 0 && int64(n) > b.most/int64(f.width) {
			return nil, fmt.Errorf("lists of %d elements", f.width)
		}
		err = b.kids(a, n*f.width)
	case typeStruct:
		err = b.kids(a, n)
	default:
		err = fmt.Errorf("type %d of Arrow is not read", f.id)
	}
	return a, err
}

// kids reads the child columns of a, which must hold need values each.
func (b *batch) kids(a *series, need int) error {
	if a.f.id != typeStruct && len(a.f.children) != 1 {
		return fmt.Errorf("a list of %d types", len(a.f.children))
	}
	for i := range a.f.children {
		kid, err := b.series(&a.f.children[i])
		if err == nil && kid.n < need {
			err = fmt.Errorf("it holds %d values, expected %d", kid.n, need)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.f.children[i].name, err)
		}
		a.kids = append(a.kids, kid)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(a.kids, func(k *series) bool { return k.f.name == name })
	}
	a.message = has("role") && has("content")
	return nil
}

// ends reads the offsets of a, which must not decrease.
func (b *batch) ends(a *series) (err error) {
	need := 4 * (a.n + 1)
	if a.wide {
		need *= 2
	}
	if a.n == 0 { // some writers leave out the offsets of an empty column
		need = 0
	}
	if a.ends, err = b.nextBuffer(need); err != nil {
		return err
	}
	a.ends = a.ends[:need]
	last := 0
	for i := range a.n + 1 {
		at := a.end(i)
		if at < last || int64(at) > math.MaxInt-8 {
			return errors.New("the offsets contradict each other")
		}
		last = at
	}
	return nil
}

// end returns the offset at which value i-1 ends and value i starts.
func (a *series) end(i int) int { return a.offset(a.ends, i) }

// offset returns number i of a buffer of offsets or lengths.
func (a *series) offset(buffer []byte, i int) int {
	switch {
	case len(buffer) == 0:
		return 0
	case a.wide:
		return int(binary.LittleEndian.Uint64(buffer[8*i:]))
	}
	return int(int32(binary.LittleEndian.Uint32(buffer[4*i:])))
}

// deepestValue is the greatest nesting of values: a dictionary may contain itself.
const deepestValue = 64

// A rowWriter writes one row as JSON.
type rowWriter struct {
	r   *Rows
	b   []byte
	err error
}

// members writes row i of columns as an object, without null members.
func (w *rowWriter) members(columns []*series, i int, message bool, depth int) {
	w.b = append(w.b, '{')
	for _, a := range columns {
		at := len(w.b)
		w.b = append(pqread.Comma(w.b), a.key...)
		switch there := w.value(a, i, depth); {
		case there:
		case message && a.f.name == "content":
			w.b = append(w.b, "null"...)
		default:
			w.b = w.b[:at]
		}
	}
	w.b = append(w.b, '}')
}

// value writes value i of a; there is false if it is null, in which case nothing is written.
func (w *rowWriter) value(a *series, i, depth int) (there bool) {
	if w.err == nil && len(w.b) > w.r.most {
		w.err = fmt.Errorf("a row of more than %d bytes", w.r.most)
	}
	if w.err == nil && depth > deepestValue {
		w.err = errors.New("values are nested too deep")
	}
	if w.err != nil || a.f.id == typeNull || !bit(a.valid, i) {
		return false
	}
	if a.f.of != nil {
		return w.entry(w.r.dicts[a.f.number], a.integer(i), depth)
	}
	switch a.f.id {
	case typeStruct:
		w.members(a.kids, i, a.message, depth+1)
	case typeList, typeBigList, typeListView, typeBigListView:
		from, to := a.span(i)
		w.items(a.kids[0], from, to, depth+1)
	case typeFixedList:
		w.items(a.kids[0], i*a.f.width, (i+1)*a.f.width, depth+1)
	case typeMap:
		w.pairs(a.kids[0], a.end(i), a.end(i+1), depth+1)
	case typeDecimal:
		w.decimal(a, i)
	default:
		w.b = a.appendValue(w.b, i)
	}
	return true
}

// entry writes value i of a dictionary.
func (w *rowWriter) entry(d *dictionary, i int64, depth int) (there bool) {
	rest := i
	for _, part := range d.parts {
		if rest >= 0 && rest < int64(part.n) {
			return w.value(part, int(rest), depth+1)
		}
		rest -= int64(part.n)
	}
	w.err = fmt.Errorf("index %d is outside its dictionary", i)
	return false
}

func (w *rowWriter) items(a *series, from, to, depth int) {
	w.b = append(w.b, '[')
	for i := from; i < to && w.err == nil; i++ {
		w.b = pqread.Comma(w.b)
		if !w.value(a, i, depth) {
			w.b = append(w.b, "null"...)
		}
	}
	w.b = append(w.b, ']')
}

// pairs writes a map: an object if its keys are text, otherwise a list of pairs.
func (w *rowWriter) pairs(a *series, from, to, depth int) {
	key := a.kids[0].f
	if key.of != nil {
		key = key.of
	}
	if key.id != typeUtf8 && key.id != typeBigUtf8 && key.id != typeTextView {
		w.items(a, from, to, depth)
		return
	}
	w.b = append(w.b, '{')
	for i := from; i < to && w.err == nil; i++ {
		at := len(w.b)
		w.b = pqread.Comma(w.b)
		if !w.value(a.kids[0], i, depth) {
			w.err = cmp.Or(w.err, errors.New("a map has null as a key"))
			return
		}
		w.b = append(w.b, ':')
		if !w.value(a.kids[1], i, depth) {
			w.b = w.b[:at]
		}
	}
	w.b = append(w.b, '}')
}

func (w *rowWriter) decimal(a *series, i int) {
	width := a.f.width / 8
	digits := slices.Clone(a.data[i*width : (i+1)*width])
	slices.Reverse(digits)
	var err error
	if w.b, err = pqread.AppendDecimal(w.b, digits, a.f.scale); err != nil {
		w.err = fmt.Errorf("column %s: %w", a.f.name, err)
	}
}

// unsigned returns integer i of a as an unsigned number.
func (a *series) unsigned(i int) uint64 {
	width := a.f.width / 8
	var x uint64
	for k := range width {
		x |= uint64(a.data[i*width+k]) << (8 * k)
	}
	return x
}

func (a *series) integer(i int) int64 {
	x, unused := a.unsigned(i), 64-a.f.width
	if a.f.signed {
		return int64(x<<unused) >> unused
	}
	return int64(x)
}

// appendValue appends value i of a column without children, which is no decimal.
func (a *series) appendValue(b []byte, i int) []byte {
	switch f := a.f; f.id {
	case typeBool:
		return strconv.AppendBool(b, bit(a.data, i))
	case typeFloat:
		switch f.width {
		case 16:
			return jsonscan.AppendFloat(b, pqread.HalfFloat(uint16(a.unsigned(i))), 32)
		case 32:
			return jsonscan.AppendFloat(b, float64(math.Float32frombits(uint32(a.unsigned(i)))), 32)
		}
		return jsonscan.AppendFloat(b, math.Float64frombits(a.unsigned(i)), 64)
	case typeUtf8, typeBigUtf8, typeTextView:
		return jsonscan.AppendText(b, string(a.text(i)))
	case typeBinary, typeBigBinary, typeBytesView:
		return appendBytes(b, a.text(i), true)
	case typeFixed:
		return appendBytes(b, a.data[i*f.width:(i+1)*f.width], false)
	}
	if a.f.signed {
		return strconv.AppendInt(b, a.integer(i), 10)
	}
	return strconv.AppendUint(b, a.unsigned(i), 10)
}

func appendBytes(b, s []byte, perhapsText bool) []byte {
	if perhapsText && utf8.Valid(s) {
		return jsonscan.AppendText(b, string(s))
	}
	return jsonscan.AppendBase64(b, s)
}
