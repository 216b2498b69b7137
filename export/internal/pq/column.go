package pq

import (
	"slices"

	"github.com/apache/arrow/go/v17/parquet"

	"github.com/turnpack/turnpack/internal/arrowfile"
)

// Kind is the value type of a column.
type Kind = arrowfile.Kind

// The value types. Int8 is stored as a 32-bit integer annotated INT(8, signed).
const (
	Bool    = arrowfile.Bool
	Int8    = arrowfile.Int8
	Int32   = arrowfile.Int32
	Int64   = arrowfile.Int64
	Float32 = arrowfile.Float32
	Text    = arrowfile.Text
)

func physical(k Kind) parquet.Type {
	switch k {
	case Bool:
		return parquet.Types.Boolean
	case Int64:
		return parquet.Types.Int64
	case Float32:
		return parquet.Types.Float
	case Text:
		return parquet.Types.ByteArray
	}
	return parquet.Types.Int32
}

// Encoding is the layout of a column's values before compression.
type Encoding uint8

// The encodings. Dictionary falls back to Plain for a chunk with more distinct values than a
// quarter of its values.
const (
	Plain Encoding = iota
	Dictionary
	Split // BYTE_STREAM_SPLIT, Float32 only
)

// byteStreamSplit is the number of BYTE_STREAM_SPLIT in the Parquet format.
const byteStreamSplit = parquet.Encoding(9)

// Column describes one column. A list has three schema levels, name.list.element, and its
// elements are never null.
type Column struct {
	Name     string
	Kind     Kind
	List     bool
	Nullable bool
	Encoding Encoding
	// Level is the zstd level of the column if the file's level is 0; 0 means 3.
	Level int
	// Stats requests the minimum, maximum and null count of each row group.
	Stats bool

	// set for a leaf of a tree: its maximum repetition and definition levels
	leaf           bool
	maxRep, topDef int
}

// maxDef returns the definition level of a value that is present.
func (c Column) maxDef() int {
	n := c.topDef
	if c.Nullable {
		n++
	}
	if c.List {
		n++
	}
	return n
}

func repetition(nullable bool) parquet.Repetition {
	if nullable {
		return parquet.Repetitions.Optional
	}
	return parquet.Repetitions.Required
}

// Values holds the values of one column in one row group. The column's Kind decides which slice
// is used. Null rows have no value in it, except that a nullable scalar column has one value
// per row, ignored for null rows.
type Values struct {
	Ints   []int32 // Bool (0 or 1), Int8 and Int32
	Longs  []int64
	Floats []float32
	Texts  []string
	// Lens holds the length of each row of a list column, −1 = null.
	Lens []int32
	Runs []int32 // lists only: number of times each value occurs in a row, nil = once
	// Nulls marks the null rows of a nullable scalar column.
	Nulls []bool
	// Rep and Def are the repetition and definition levels of a leaf of a tree.
	Rep, Def []uint8
}

// Reset empties v and keeps its memory.
func (v *Values) Reset() {
	clear(v.Texts)
	v.Ints, v.Longs, v.Floats, v.Texts = v.Ints[:0], v.Longs[:0], v.Floats[:0], v.Texts[:0]
	v.Lens, v.Nulls, v.Runs = v.Lens[:0], v.Nulls[:0], v.Runs[:0]
	v.Rep, v.Def = v.Rep[:0], v.Def[:0]
}

// Spread repeats each value as often as runs says; nil runs means once.
func Spread[T any](values []T, runs []int32) []T {
	if runs == nil || len(values) == 0 {
		return values
	}
	out := make([]T, 0, sum(runs))
	for i, n := range runs {
		for range n {
			out = append(out, values[i])
		}
	}
	return out
}

// Len returns the number of values of kind k.
func (v *Values) Len(k Kind) int {
	if v.Runs != nil {
		return int(sum(v.Runs))
	}
	switch k {
	case Int64:
		return len(v.Longs)
	case Float32:
		return len(v.Floats)
	case Text:
		return len(v.Texts)
	}
	return len(v.Ints)
}

// slice returns values [from, to) of kind k, without levels.
func (v *Values) slice(k Kind, from, to int) *Values {
	switch k {
	case Int64:
		return &Values{Longs: v.Longs[from:to]}
	case Float32:
		return &Values{Floats: v.Floats[from:to]}
	case Text:
		return &Values{Texts: v.Texts[from:to]}
	}
	return &Values{Ints: v.Ints[from:to]}
}

// dense returns the values of v without those of null rows.
func (v *Values) dense() *Values {
	if !slices.Contains(v.Nulls, true) {
		return v
	}
	return &Values{Ints: dense(v.Ints, v.Nulls), Longs: dense(v.Longs, v.Nulls), Floats: dense(v.Floats, v.Nulls), Texts: dense(v.Texts, v.Nulls)}
}

func dense[T any](values []T, nulls []bool) (out []T) {
	for i, x := range values {
		if !nulls[i] {
			out = append(out, x)
		}
	}
	return out
}

func sum(lens []int32) (n int64) {
	for _, k := range lens {
		n += int64(max(0, k))
	}
	return n
}
