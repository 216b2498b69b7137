package pq

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/metadata"
	"github.com/apache/arrow/go/v17/parquet/schema"
	"github.com/klauspost/compress/zstd"

	"github.com/turnpack/turnpack/internal/pqread"
)

const (
	magic    = "PAR1"
	hugePage = 32 << 20 // larger page buffers are freed after the row group
)

// createdBy is written in every file's footer. It does not depend on the machine or the time.
const createdBy = "turnpack version 1.0.0"

// Writer writes one Parquet file to a stream. Its methods must not be called
// concurrently.
type Writer struct {
	out     *Counter
	columns []Column
	level   int
	page    int // size in bytes at which a data page ends, at the next row
	meta    *metadata.FileMetaDataBuilder
	encs    map[zstd.EncoderLevel]*zstd.Encoder
	enc     *zstd.Encoder // encoder of the column being written, nil = uncompressed
	groups  int
	err     error
	closed  bool

	raw, packed, header []byte
}

// Counter counts the bytes of a destination and keeps its first error.
type Counter struct {
	To  io.Writer
	N   int64
	Err error
}

// Write passes b to the destination.
func (c *Counter) Write(b []byte) (int, error) {
	if c.Err != nil {
		return 0, c.Err
	}
	n, err := c.To.Write(b)
	c.N += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	c.Err = err
	return n, err
}

// Seek returns the current position, the only query that the Arrow writer makes.
func (c *Counter) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.New("the destination cannot seek")
	}
	return c.N, nil
}

// NewWriter starts a file on w. level is the zstd level, 1 to 22; 0 uses each column's own
// level and −1 writes uncompressed pages.
func NewWriter(w io.Writer, columns []Column, level int) (*Writer, error) {
	tree := make([]Node, len(columns))
	for i, c := range columns {
		tree[i] = Node{Name: c.Name, Kind: c.Kind, Nullable: c.Nullable, List: c.List}
	}
	return newWriter(w, tree, columns, level)
}

func newWriter(w io.Writer, tree []Node, columns []Column, level int) (*Writer, error) {
	root, err := group("schema", false, tree)
	if err != nil {
		return nil, fmt.Errorf("build the schema: %w", err)
	}
	codec := compress.Codecs.Zstd
	if level < 0 {
		codec = compress.Codecs.Uncompressed
	}
	props := parquet.NewWriterProperties(
		parquet.WithVersion(parquet.V2_6), parquet.WithCompression(codec),
		parquet.WithCreatedBy(createdBy), parquet.WithDictionaryDefault(false))
	out := &Writer{out: &Counter{To: w}, columns: columns, level: level, page: 8 << 20, encs: map[zstd.EncoderLevel]*zstd.Encoder{}}
	out.meta = metadata.NewFileMetadataBuilder(schema.NewSchema(root), props, nil)
	_, out.err = io.WriteString(out.out, magic)
	return out, out.err
}

// Written returns the number of bytes passed to the destination so far.
func (w *Writer) Written() int64 { return w.out.N }

// WriteRowGroup writes a row group of the given number of rows. values has one entry per
// column.
func (w *Writer) WriteRowGroup(rows int, values []Values) error {
	if w.err != nil {
		return w.err
	}
	w.err = w.writeRowGroup(rows, values)
	return w.err
}

func (w *Writer) writeRowGroup(rows int, values []Values) error {
	if w.groups > math.MaxInt16 {
		return errors.New("a Parquet file holds at most 32768 row groups")
	}
	rg := w.meta.AppendRowGroup()
	var total int64
	for i, c := range w.columns {
		chunk, err := w.writeChunk(c, &values[i], rows, rg.NextColumnChunk())
		if err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
		total += chunk
	}
	if cap(w.raw) > hugePage { // grown by one huge row
		w.raw, w.packed = nil, nil
	}
	rg.SetNumRows(rows)
	err := rg.Finish(total, int16(w.groups))
	w.groups++
	return err
}

// writeChunk writes one column of a row group and returns its uncompressed size.
func (w *Writer) writeChunk(c Column, v *Values, rows int, meta *metadata.ColumnChunkMetaDataBuilder) (int64, error) {
	if err := w.useEncoder(c); err != nil {
		return 0, err
	}
	pages := cuts(c, v, rows, w.page)
	vals := v.dense()
	info := metadata.ChunkMetaInfo{IndexPageOffset: -1}
	start := w.out.N
	enc := parquet.Encodings.Plain
	var dict *dictionary
	switch c.Encoding {
	case Split:
		enc = byteStreamSplit
	case Dictionary:
		if dict = dictionaryOf(c.Kind, vals); dict != nil {
			enc = parquet.Encodings.RLEDict
			info.DictPageOffset = start
			w.raw = appendPlain(w.raw[:0], c.Kind, &dict.values)
			n, err := w.writePage(true, dict.n, parquet.Encodings.Plain)
			if err != nil {
				return 0, err
			}
			info.UncompressedSize += n
		}
	}
	if dict == nil && v.Runs != nil {
		vals = &Values{Ints: Spread(v.Ints, v.Runs), Floats: Spread(v.Floats, v.Runs)}
	}
	info.DataPageOffset = w.out.N
	for _, p := range pages {
		w.raw = w.raw[:0]
		switch {
		case c.leaf:
			w.raw = leafLevels(w.raw, c, v, p)
		case c.List:
			w.raw = listLevels(w.raw, v.Lens[p.fromRow:p.toRow], c.maxDef())
		case c.Nullable:
			w.raw = nullLevels(w.raw, v.Nulls[p.fromRow:p.toRow])
		}
		switch {
		case dict != nil:
			w.raw = dict.appendIndices(w.raw, p.from, p.to)
		case enc == byteStreamSplit:
			w.raw = appendSplit(w.raw, vals.Floats[p.from:p.to])
		default:
			w.raw = appendPlain(w.raw, c.Kind, vals.slice(c.Kind, p.from, p.to))
		}
		n, err := w.writePage(false, p.levels, enc)
		if err != nil {
			return 0, err
		}
		info.UncompressedSize += n
		info.NumValues += int64(p.levels)
	}
	info.CompressedSize = w.out.N - start
	if c.Stats {
		meta.SetStats(statistics(c.Kind, vals, rows))
	}
	if err := meta.Finish(info, dict != nil, false, metadata.EncodingStats{}, nil); err != nil {
		return 0, err
	}
	// Finish assumes one encoding per column and file; here it can differ by chunk.
	if dict == nil {
		meta.Contents().MetaData.Encodings[0] = 0
		if enc == byteStreamSplit {
			meta.Contents().MetaData.Encodings[0] = 9
		}
	}
	return info.UncompressedSize, nil
}

// useEncoder selects the encoder for column c.
func (w *Writer) useEncoder(c Column) error {
	level := cmp.Or(w.level, c.Level, 3)
	if level < 0 {
		return nil
	}
	speed := zstd.EncoderLevelFromZstd(level)
	if w.encs[speed] == nil {
		// The low memory mode writes the same bytes with half the history. It is slower only
		// for pages longer than the window, such as a row of millions of tokens.
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1),
			zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return fmt.Errorf("start zstd: %w", err)
		}
		w.encs[speed] = enc
	}
	w.enc = w.encs[speed]
	return nil
}

// writePage writes w.raw as one page and returns its size before compression, header included.
func (w *Writer) writePage(dict bool, values int, enc parquet.Encoding) (int64, error) {
	if len(w.raw) > math.MaxInt32 || values > math.MaxInt32 {
		return 0, fmt.Errorf("a page of %d bytes is over the 2 GiB that Parquet allows; split the row", len(w.raw))
	}
	body := w.raw
	if w.enc != nil {
		w.packed = w.enc.EncodeAll(w.raw, w.packed[:0])
		body = w.packed
	}
	w.header = pageHeader(w.header[:0], dict, len(w.raw), len(body), values, enc)
	if _, err := w.out.Write(w.header); err != nil {
		return 0, err
	}
	if _, err := w.out.Write(body); err != nil {
		return 0, err
	}
	return int64(len(w.header) + len(w.raw)), nil
}

// Close writes the footer with the metadata kv, in order. It does not close the destination.
// Only the first call writes.
func (w *Writer) Close(kv []pqread.KV) error {
	if w.closed || w.err != nil {
		return w.err
	}
	w.closed = true
	w.err = w.finish(kv)
	for _, enc := range w.encs {
		_ = enc.Close()
	}
	return w.err
}

func (w *Writer) finish(kv []pqread.KV) error {
	m, err := w.meta.Snapshot()
	if err != nil {
		return err
	}
	var footer bytes.Buffer
	pairs := metadata.NewKeyValueMetadata()
	for _, e := range kv {
		if err := pairs.Append(e.Key, e.Value); err != nil {
			return err
		}
	}
	m.FileMetaData.KeyValueMetadata = pairs
	if _, err := m.WriteTo(&footer, nil); err != nil {
		return err
	}
	n := footer.Len()
	footer.Write(binary.LittleEndian.AppendUint32(nil, uint32(n)))
	footer.WriteString(magic)
	_, err = w.out.Write(footer.Bytes())
	return err
}
