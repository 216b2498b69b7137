package pqread

import (
	"fmt"
	"io"
	"slices"
)

// File is an open Parquet file from any writer. It must not be used concurrently.
type File struct {
	r       io.ReaderAt
	size    int64
	foot    *footer
	columns []*node
	all     []Leaf
	buf     []byte // buffer of the chunk being read
	unpack  decompressor

	// Leaves are the columns that Read can read: scalars and one-level lists.
	Leaves []Leaf
}

// Leaf is one flat column of a file.
type Leaf struct {
	// Name is the top-level name.
	Name string
	// Type is the stored type.
	Type Type
	// List is true for a list of values, false for a scalar.
	List bool

	index  int
	maxRep int16
	maxDef int16
	repDef int16 // definition level of a list element, null or not
	width  int   // bytes of a fixed-length value
}

// Chunk is one column of one row group. The Leaf's Type decides which slice is filled. Null
// rows and null elements have no entry in it.
type Chunk struct {
	Ints    []int32 // booleans are 0 or 1
	Longs   []int64
	Floats  []float32
	Doubles []float64
	Texts   []string
	// Lens holds, for each row of a list column, the number of non-null values, −1 = null.
	Lens []int32
	// Nulls marks the null rows of a scalar column.
	Nulls []bool
	// NullElements counts the null elements inside lists.
	NullElements int
}

// Open reads the footer of the file in r, which holds size bytes.
func Open(r io.ReaderAt, size int64) (*File, error) {
	foot, err := readFooter(r, size)
	if err != nil {
		return nil, err
	}
	b, err := readTree(foot.schema)
	if err != nil {
		return nil, err
	}
	return &File{r: r, size: size, foot: foot, columns: b.columns, all: b.all, Leaves: b.flat}, nil
}

// Leaf returns the flat column with the given name.
func (f *File) Leaf(name string) (Leaf, bool) {
	i := slices.IndexFunc(f.Leaves, func(l Leaf) bool { return l.Name == name })
	if i < 0 {
		return Leaf{}, false
	}
	return f.Leaves[i], true
}

// Metadata returns the file metadata in order.
func (f *File) Metadata() []KV { return f.foot.kv }

// RowGroups returns the number of row groups.
func (f *File) RowGroups() int { return len(f.foot.groups) }

// Rows returns the number of rows in row group g.
func (f *File) Rows(g int) int { return int(f.foot.groups[g].rows) }

// Read decodes one column of row group g.
func (f *File) Read(g int, leaf Leaf) (*Chunk, error) {
	columns := f.foot.groups[g].columns
	if leaf.index >= len(columns) {
		return nil, fmt.Errorf("row group %d has no column %s", g, leaf.Name)
	}
	p := pages{f: f, leaf: leaf, out: &Chunk{}, buf: f.buf}
	if err := p.open(&columns[leaf.index]); err != nil {
		return nil, err
	}
	for int64(p.levels.n) < p.total {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	f.buf = p.buf
	if err := p.levels.shape(leaf, p.out); err != nil {
		return nil, err
	}
	got := len(p.out.Nulls)
	if leaf.List {
		got = len(p.out.Lens)
	}
	if rows := f.Rows(g); got != rows {
		return nil, fmt.Errorf("column %s holds %d rows, its row group %d", leaf.Name, got, rows)
	}
	return p.out, nil
}

// levelSink collects the levels of a chunk. A slice whose levels are all 0 in this column stays
// empty.
type levelSink struct {
	def, rep []int16
	n        int
}

// shape converts the levels to list lengths or null marks.
func (l *levelSink) shape(leaf Leaf, out *Chunk) error {
	if !leaf.List {
		out.Nulls = make([]bool, l.n)
		for i, d := range l.def {
			out.Nulls[i] = d < leaf.maxDef
		}
		return nil
	}
	for i, r := range l.rep {
		if r == 0 {
			n := int32(0)
			if l.def[i] < leaf.repDef-1 {
				n = -1
			}
			out.Lens = append(out.Lens, n)
		}
		switch {
		case len(out.Lens) == 0 || r != 0 && l.def[i] < leaf.repDef:
			return fmt.Errorf("list levels contradict each other at value %d", i)
		case l.def[i] == leaf.maxDef:
			out.Lens[len(out.Lens)-1]++
		case l.def[i] >= leaf.repDef:
			out.NullElements++
		}
	}
	return nil
}
