package pq

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/metadata"
	"github.com/apache/arrow/go/v17/parquet/schema"
)

// File is an open Parquet file by any writer.
type File struct {
	r    *file.Reader
	size int64
	// Leaves are the columns that can be read: scalars and one-level lists.
	Leaves []Leaf
	// Skipped names the columns that cannot, with the reason.
	Skipped []string
}

// Leaf is one column of a file.
type Leaf struct {
	// Name is the top-level name.
	Name string
	// Type is the stored type.
	Type parquet.Type
	// List tells a list from a scalar.
	List bool
	// Nullable is true when rows may be null.
	Nullable bool
	// Text is true for a byte array that is annotated as text.
	Text bool

	index    int
	maxDef   int16
	repDef   int16 // definition level of an element slot of a list
	physical *schema.Column
}

// Chunk is one column of one row group. Which slice is filled follows from the
// Leaf's Type; null rows and null elements have no entry in it.
type Chunk struct {
	Bools   []bool
	Ints    []int32
	Longs   []int64
	Floats  []float32
	Doubles []float64
	Texts   []string
	// Lens has one entry per row of a list: the number of its values, −1 = null.
	Lens []int32
	// Nulls has one entry per row of a scalar column.
	Nulls []bool
	// NullElements counts null elements inside lists; Lens does not count them.
	NullElements int
}

// guard turns a panic of the decoding library into an error.
func guard(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("damaged data: %v", r)
	}
}

// Open reads the footer of a file of the given size.
func Open(r io.ReaderAt, size int64) (out *File, err error) {
	defer guard(&err)
	head := make([]byte, len(magic))
	if _, err := r.ReadAt(head, 0); err != nil || string(head) != magic {
		return nil, fmt.Errorf("not a Parquet file: it does not start with %s", magic)
	}
	fr, err := file.NewParquetReader(io.NewSectionReader(r, 0, size), file.WithReadProps(parquet.NewReaderProperties(NewLimited(size))))
	if err != nil {
		return nil, err
	}
	out = &File{r: fr, size: size}
	sc := fr.MetaData().Schema
	for i := range sc.NumColumns() {
		leaf, reason := leafOf(sc.Column(i))
		leaf.index = i
		if reason != "" {
			out.Skipped = append(out.Skipped, sc.Column(i).Path()+": "+reason)
			continue
		}
		out.Leaves = append(out.Leaves, leaf)
	}
	for i := range fr.NumRowGroups() {
		if n := fr.MetaData().RowGroups[i].NumRows; n < 0 {
			return nil, fmt.Errorf("row group %d says it has %d rows", i, n)
		}
	}
	return out, nil
}

func leafOf(c *schema.Column) (Leaf, string) {
	path := strings.Split(c.Path(), ".")
	out := Leaf{Name: path[0], Type: c.PhysicalType(), maxDef: c.MaxDefinitionLevel(), physical: c}
	switch c.PhysicalType() {
	case parquet.Types.FixedLenByteArray, parquet.Types.Int96:
		return out, "type " + c.PhysicalType().String() + " is not read"
	}
	_, annotated := c.LogicalType().(schema.StringLogicalType)
	_, jsonText := c.LogicalType().(schema.JSONLogicalType)
	_, enum := c.LogicalType().(schema.EnumLogicalType)
	out.Text = annotated || jsonText || enum
	switch c.MaxRepetitionLevel() {
	case 0:
		if len(path) > 1 {
			return out, "fields of structures are not read"
		}
		out.Nullable = out.maxDef > 0
		return out, ""
	case 1:
	default:
		return out, "lists of lists are not read"
	}
	out.List = true
	// Walk up from the leaf: definition levels below the repeated node belong to
	// the element.
	out.repDef = out.maxDef
	var n schema.Node = c.SchemaNode()
	depth := 0
	for ; n != nil && n.RepetitionType() != parquet.Repetitions.Repeated; n = n.Parent() {
		if n.RepetitionType() == parquet.Repetitions.Optional {
			out.repDef--
		}
		depth++
	}
	if n == nil || depth > 1 {
		return out, "lists of structures are not read"
	}
	top := n
	for top.Parent() != nil && top.Parent().Parent() != nil {
		top = top.Parent()
	}
	if top != n && top != n.Parent() {
		return out, "lists inside structures are not read"
	}
	out.Nullable = out.repDef > 1
	return out, ""
}

// Leaf returns the readable column of that name.
func (f *File) Leaf(name string) (Leaf, bool) {
	i := slices.IndexFunc(f.Leaves, func(l Leaf) bool { return l.Name == name })
	if i < 0 {
		return Leaf{}, false
	}
	return f.Leaves[i], true
}

// Metadata returns the file metadata in order.
func (f *File) Metadata() []KV {
	var out []KV
	m := f.r.MetaData().KeyValueMetadata()
	for i, k := range m.Keys() {
		out = append(out, KV{k, m.Values()[i]})
	}
	return out
}

// RowGroups is the number of row groups.
func (f *File) RowGroups() int { return f.r.NumRowGroups() }

// Rows is the number of rows of row group g.
func (f *File) Rows(g int) int { return int(f.r.MetaData().RowGroups[g].NumRows) }

// Read decodes one column of row group g.
func (f *File) Read(g int, leaf Leaf) (out *Chunk, err error) {
	defer guard(&err)
	rg := f.r.RowGroup(g)
	meta, err := rg.MetaData().ColumnChunk(leaf.index)
	if err != nil {
		return nil, err
	}
	if err := f.checkExtent(meta); err != nil {
		return nil, err
	}
	out = &Chunk{}
	var levels levelSink
	pages, err := rg.GetColumnPageReader(leaf.index)
	if err != nil {
		return nil, err
	}
	if err := readPages(pages, leaf, meta.NumValues(), out, &levels); err != nil {
		return nil, err
	}
	if err := levels.shape(leaf, out); err != nil {
		return nil, err
	}
	got := len(out.Nulls)
	if leaf.List {
		got = len(out.Lens)
	}
	if rows := f.Rows(g); got != rows {
		return nil, fmt.Errorf("column %s holds %d rows, its row group %d", leaf.Name, got, rows)
	}
	return out, nil
}

// checkExtent refuses a chunk that lies outside the file, or says it holds more
// values than a file of that size can be meant to hold, before anything is
// allocated for it: a run of a few bytes stands for any number of equal values.
func (f *File) checkExtent(meta *metadata.ColumnChunkMetaData) error {
	at, n := meta.DataPageOffset(), meta.TotalCompressedSize()
	if meta.HasDictionaryPage() {
		at = min(at, meta.DictionaryPageOffset())
	}
	if at < 0 || n < 0 || at > f.size || n > f.size-at || meta.NumValues() < 0 {
		return fmt.Errorf("a column chunk of %d bytes at %d lies outside the file of %d bytes", n, at, f.size)
	}
	if most := max(1<<24, 256*f.size); meta.NumValues() > most {
		return fmt.Errorf("a column chunk of %d values in a file of %d bytes, at most %d are read", meta.NumValues(), f.size, most)
	}
	return nil
}

// levelSink gathers the levels of a chunk; a stream that the column does not
// have stays empty.
type levelSink struct {
	def, rep []int16
	n        int
}

// shape turns levels into list lengths or null marks.
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
