package export

import (
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/rollout"
)

// ErrClosed is returned by Write after Close or Abort.
var ErrClosed = errors.New("the writer is closed")

// Writer writes rows to one Parquet or Arrow file. Every row is checked against the
// rules of the schema before it is taken; the first refused row ends the file:
// later calls return the same error and Close leaves nothing behind.
//
// Memory is bounded by one row group plus 16 bytes and a map slot for each
// group and rollout seen. A Writer must not be used concurrently.
type Writer struct {
	opts    Options
	columns Columns
	started bool
	order   *order
	buf     *buffer
	out     encoder
	sink    sink
	stats   Stats
	err     error
	closed  bool
}

// A sink is where the bytes of a file go, and how the file becomes visible.
type sink interface {
	io.Writer
	commit() error
	abort() error
}

// plain is a sink that somebody else makes visible.
type plain struct{ io.Writer }

func (plain) commit() error { return nil }
func (plain) abort() error  { return nil }

// An encoder lays row groups out in one file format.
type encoder interface {
	WriteRowGroup(rows int, values []pq.Values) error
	Close(kv []pq.KV) error
	Written() int64
}

// Stats counts what a writer has taken.
type Stats struct {
	Rows, Rollouts, Groups int
	Tokens, Trained        int64
	RowGroups              int
	Bytes                  int64 // written so far; the size of the file after Close
}

// NewWriter starts a file on w. Close ends the file and does not close w; a
// reader of w can tell a file that was not ended: it has no footer.
func NewWriter(w io.Writer, o Options) (*Writer, error) {
	return newWriter(plain{w}, o)
}

func newWriter(s sink, o Options) (*Writer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.defaults()
	w := &Writer{opts: o, order: newOrder(), buf: &buffer{}, sink: s}
	if o.Format != FormatParquet {
		w.out = &arrowEncoder{out: &byteCounter{w: s}, file: o.Format == FormatArrowFile, zstd: o.ZstdLevel >= 0,
			kv: func() []pq.KV { return fileMetadata(w.opts, w.columns) }}
		return w, nil
	}
	all := columns()
	physical := make([]pq.Column, len(all))
	for i, c := range all {
		physical[i] = c.Column
	}
	file, err := pq.NewWriter(s, physical, pq.Config{Level: o.ZstdLevel, PageBytes: o.PageBytes})
	if err != nil {
		return nil, writeError(err)
	}
	w.out = file
	return w, nil
}

// Write checks s and adds it to the file. Sample.ID may be empty; it is made
// from the rollout and the sample index. The columns of s are copied.
func (w *Writer) Write(s rollout.Sample) error {
	if w.err == nil && w.closed {
		return ErrClosed
	}
	if w.err == nil {
		w.err = w.write(&s)
	}
	return w.err
}

func (w *Writer) write(s *rollout.Sample) error {
	if s.ID == "" {
		s.ID = SampleID(s.Rollout, s.SampleIndex)
	}
	if !w.started {
		w.start(s)
	}
	if err := w.opts.check(s, w.columns); err != nil {
		return err
	}
	if err := w.checkDigests(s); err != nil {
		return err
	}
	newGroup := w.order.open == nil || w.order.group != s.Group
	newRollout := w.order.open == nil || w.order.open.Rollout != s.Rollout
	if err := w.order.add(s); err != nil {
		return err
	}
	if w.full(newGroup, newRollout) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.buf.add(s, w.columns, w.opts.status(s))
	w.stats.Rows++
	if newRollout {
		w.stats.Rollouts++
	}
	if newGroup {
		w.stats.Groups++
	}
	w.stats.Tokens += int64(s.Len())
	w.stats.Trained += int64(s.Trained())
	return nil
}

// start fixes what the first row decides.
func (w *Writer) start(s *rollout.Sample) {
	w.started = true
	w.columns = ColumnsOf(s)
	if w.opts.Columns != nil {
		w.columns = *w.opts.Columns
	}
	if w.opts.Tokenizer == "" {
		w.opts.Tokenizer = s.Tokenizer
	}
	if w.opts.Template == "" {
		w.opts.Template = s.Template
	}
}

func (w *Writer) checkDigests(s *rollout.Sample) error {
	for _, d := range []struct{ what, file, row string }{
		{MetaTokenizer, w.opts.Tokenizer, s.Tokenizer}, {MetaTemplate, w.opts.Template, s.Template},
	} {
		if d.row != "" && d.row != d.file {
			return refuse(s, ColInputIDs, RuleIdentity, -1, "write one file per tokenizer and template", "%s is %s and the file has %q", d.what, d.row, d.file)
		}
	}
	return nil
}

// full says whether the buffered rows are to be written before the next one,
// which starts a group or a rollout or neither.
func (w *Writer) full(newGroup, newRollout bool) bool {
	grow := 1 << min(w.stats.RowGroups/1024, 4)
	tokens, rows := w.opts.GroupTokens*grow, w.opts.GroupRows*grow
	reached := func(times int) bool { return w.buf.tokens >= times*tokens || w.buf.rows >= times*rows }
	return newGroup && reached(1) || newRollout && reached(2) || reached(4)
}

func (w *Writer) flush() error {
	if w.buf.rows == 0 {
		return nil
	}
	if err := w.out.WriteRowGroup(w.buf.rows, w.buf.cols[:]); err != nil {
		return writeError(err)
	}
	w.stats.RowGroups++
	w.stats.Bytes = w.out.Written()
	w.buf.reset()
	return nil
}

// Stats returns the counts so far.
func (w *Writer) Stats() Stats { return w.stats }

// Close checks the last rollout, ends the file and makes it visible under its
// name; after an error it removes what was written. Only the first call does
// anything.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	if w.err == nil {
		w.err = w.finish()
	}
	if w.err != nil {
		return errors.Join(w.err, w.sink.abort())
	}
	return nil
}

func (w *Writer) finish() error {
	if err := w.order.end(); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	kv, err := w.metadata()
	if err != nil {
		return err
	}
	if err := w.out.Close(kv); err != nil {
		return writeError(err)
	}
	w.stats.Bytes = w.out.Written()
	return w.sink.commit()
}

// Abort drops the file. Calling it after Close does nothing, so that it can be
// deferred.
func (w *Writer) Abort() error {
	if w.closed {
		return nil
	}
	w.closed = true
	return w.sink.abort()
}

func (w *Writer) metadata() ([]pq.KV, error) {
	meta := fileMetadata(w.opts, w.columns)
	if w.opts.Format != FormatParquet {
		return meta, nil
	}
	schema, err := arrowSchemaBytes(meta)
	if err != nil {
		return nil, err
	}
	return append(meta, pq.KV{Key: "ARROW:schema", Value: schema}), nil
}

// fileMetadata is the metadata of a file in a fixed order.
func fileMetadata(o Options, c Columns) []pq.KV {
	kv := []pq.KV{{Key: MetaSchemaVersion, Value: SchemaVersion}, {Key: MetaColumns, Value: c.String()}}
	for _, e := range []pq.KV{{Key: MetaTokenizer, Value: o.Tokenizer}, {Key: MetaTemplate, Value: o.Template}, {Key: MetaEstimator, Value: o.Estimator}} {
		if e.Value != "" {
			kv = append(kv, e)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(o.Metadata)) {
		kv = append(kv, pq.KV{Key: k, Value: o.Metadata[k]})
	}
	return kv
}
