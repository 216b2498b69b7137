// Package arrowfile reads Arrow files and streams from any writer: the columns of training
// batches, scalars and lists of scalars, with [File], and rows of any nesting as JSON with
// [Rows].
//
// arrow/go reads these formats too, but trusts the sizes in a file; a damaged file can crash
// the process. Here time and memory are bounded by the size of the file.
package arrowfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/turnpack/turnpack/internal/pqread"
)

// Magic starts and ends an Arrow file, Continuation starts a stream and EndOfStream ends it.
const (
	Magic        = "ARROW1"
	Continuation = "\xff\xff\xff\xff"
	EndOfStream  = Continuation + "\x00\x00\x00\x00"
)

// Members of the union MessageHeader of Message.fbs.
const (
	headSchema     = 1
	headDictionary = 2
	headBatch      = 3
)

// File is an open Arrow file or stream. It must not be used concurrently.
type File struct {
	r      io.ReaderAt
	size   int64
	schema *schema
	rows   int64
	stream bool
	blocks []int64 // offsets of a file's record batches not yet read
	dicts  []int64 // offsets of a file's dictionaries
	at     int64   // offset of a stream's next message
	unpack decompressor
}

// A message is a FlatBuffers message and the place of its body.
type message struct {
	head table
	kind int
	body int64 // offset
	size int64 // of the body
}

// Open reads the schema of the file or stream in r, which holds size bytes.
func Open(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: size}
	head, err := f.read(0, int64(len(Magic)))
	if err != nil {
		return nil, err
	}
	open := f.openStream
	if string(head) == Magic {
		open = f.openFile
	}
	if err := open(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) openStream() error {
	end, err := f.read(f.size-8, 8)
	if err != nil {
		return err
	}
	if string(end) != EndOfStream {
		return errors.New("the stream has no end mark: it was cut")
	}
	f.stream, f.rows = true, -1
	m, err := f.message(0)
	if err != nil {
		return err
	}
	if m == nil || m.kind != headSchema {
		return errors.New("the stream does not begin with a schema")
	}
	f.at = m.body + m.size
	f.schema, err = readSchema(m.head)
	return err
}

func (f *File) openFile() error {
	const tail = 10 // length of the footer, then Magic
	end, err := f.read(f.size-tail, tail)
	if err != nil {
		return err
	}
	if string(end[4:]) != Magic {
		return fmt.Errorf("the file does not end with %s: it was cut, or never finished", Magic)
	}
	n := int64(binary.LittleEndian.Uint32(end))
	data, err := f.read(f.size-tail-n, n)
	if err != nil {
		return err
	}
	footer := (&flat{b: string(data)}).root()
	if f.schema, err = readSchema(footer.table(1)); err != nil {
		return err
	}
	dicts, blocks := footer.vector(2, 24), footer.vector(3, 24)
	if footer.err != nil {
		return footer.err
	}
	for i := range dicts.n {
		f.dicts = append(f.dicts, dicts.int64(i, 0))
	}
	read := int64(0) // bytes of messages, since a file can list one many times
	for i := range blocks.n {
		at := blocks.int64(i, 0)
		m, err := f.message(at)
		if err != nil {
			return fmt.Errorf("record batch %d: %w", i, err)
		}
		if m == nil || m.kind != headBatch {
			return fmt.Errorf("record batch %d is none", i)
		}
		if read += m.body - at; read > f.size {
			return errors.New("the file names record batches more than once")
		}
		f.rows += max(0, int64(m.head.number(0, 8)))
		f.blocks = append(f.blocks, at)
	}
	return nil
}

// read returns the n bytes at offset at.
func (f *File) read(at, n int64) ([]byte, error) {
	if at < 0 || n < 0 || at > f.size || n > f.size-at {
		return nil, fmt.Errorf("%d bytes at %d lie outside the file of %d bytes", n, at, f.size)
	}
	out := make([]byte, n)
	if got, err := f.r.ReadAt(out, at); got < len(out) {
		return nil, fmt.Errorf("read %d bytes at %d: %w", n, at, err)
	}
	return out, nil
}

// message reads the message at offset at, or returns nil if the stream ends there.
func (f *File) message(at int64) (*message, error) {
	head, err := f.read(at, 4)
	if err != nil {
		return nil, err
	}
	at += 4
	if string(head) == Continuation { // writers before 2019 left it out
		if head, err = f.read(at, 4); err != nil {
			return nil, err
		}
		at += 4
	}
	n := int64(binary.LittleEndian.Uint32(head))
	if n == 0 {
		return nil, nil
	}
	data, err := f.read(at, n)
	if err != nil {
		return nil, err
	}
	root := (&flat{b: string(data)}).root()
	m := &message{head: root.table(2), kind: int(root.number(1, 1)), body: at + n, size: int64(root.number(3, 8))}
	if root.err == nil && (m.size < 0 || m.size > f.size-m.body) {
		return nil, fmt.Errorf("a message body of %d bytes at %d lies outside the file of %d bytes", m.size, m.body, f.size)
	}
	return m, root.err
}

// Metadata returns the metadata of the schema in order.
func (f *File) Metadata() []pqread.KV { return f.schema.kv }

// Rows returns the number of rows of a file, or −1 for a stream.
func (f *File) Rows() int64 { return f.rows }

// Type returns the type of the column with the given name.
func (f *File) Type(name string) (t Type, ok bool) {
	for _, c := range f.schema.fields {
		if c.name == name {
			return c.typ, true
		}
	}
	return Type{}, false
}

// Next decodes the named columns of the next record batch; a column that is not in the file is
// nil. It returns io.EOF after the last batch.
func (f *File) Next(names []string) (chunks []*pqread.Chunk, rows int, err error) {
	m, err := f.nextBatch(func(*message) error { return nil }) // dictionary columns are not read
	if err != nil {
		return nil, 0, err
	}
	b, err := f.batch(m, m.head)
	if err != nil {
		return nil, 0, err
	}
	chunks, err = b.columns(f.schema.fields, names)
	return chunks, b.rows, err
}

// nextBatch returns the next record batch. In a stream it calls dictionary for each dictionary
// before it.
func (f *File) nextBatch(dictionary func(*message) error) (*message, error) {
	if !f.stream {
		if len(f.blocks) == 0 {
			return nil, io.EOF
		}
		at := f.blocks[0]
		f.blocks = f.blocks[1:]
		return f.message(at)
	}
	for {
		m, err := f.message(f.at)
		switch {
		case err != nil:
			return nil, err
		case m == nil:
			return nil, io.EOF
		}
		f.at = m.body + m.size
		switch m.kind {
		case headBatch:
			return m, nil
		case headDictionary:
			if err := dictionary(m); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("a message of kind %d between record batches", m.kind)
		}
	}
}
