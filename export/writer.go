package export

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/pqread"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Errors that errors.Is finds in the errors of this package and of the packages built on it.
var (
	// ErrClosed is returned by Write after Close or Abort.
	ErrClosed = errors.New("the writer is closed")
	// ErrAborted is returned by Write and Close after Abort; it is an ErrClosed.
	ErrAborted = fmt.Errorf("%w: it was aborted, and nothing of it is published", ErrClosed)
	// ErrExists is returned if the output exists already or appeared while it was being
	// written.
	ErrExists = atomic.ErrExists
	// ErrComplete is returned if the folder or prefix holds a complete set.
	ErrComplete = errors.New("the folder is complete")
	// ErrLocked is returned if another writer has the folder open.
	ErrLocked = errors.New("another writer has the folder open")
	// ErrOtherRun is returned if an unfinished folder was started with other options or other
	// input.
	ErrOtherRun = errors.New("the folder was begun with other options")
	// ErrUnfinished is returned if the writer of the folder is still running or was killed.
	ErrUnfinished = errors.New("the set is not complete")
)

// Writer writes rows to one Parquet or Arrow file. It checks every row against the rules of the
// schema. The first refused row ends the file: later calls return an error and Close leaves no
// file.
//
// Memory is bounded by one row group plus the names of the groups and rollouts seen. A Writer
// must not be used concurrently.
type Writer struct {
	check  Checker
	buf    *buffer
	out    encoder
	sink   sink
	most   int // greatest offset of a record batch, 0 = the format has no offsets
	stats  Stats
	err    error
	closed bool
}

// A sink is the destination of a file's bytes. Commit makes the file visible, Abort discards
// it.
type sink interface {
	io.Writer
	Commit() error
	Abort() error
}

// plain is a sink whose file the caller makes visible.
type plain struct{ io.Writer }

func (plain) Commit() error { return nil }

func (plain) Abort() error { return nil }

// An encoder writes row groups in one file format.
type encoder interface {
	WriteRowGroup(rows int, values []pq.Values) error
	Close(kv []pqread.KV) error
	Written() int64
}

// Stats counts what a writer has accepted.
type Stats struct {
	Rows, Rollouts, Groups int
	Tokens, Trained        int64
	RowGroups              int
	Bytes                  int64 // bytes written so far; after Close the size of the file
}

// NewWriter starts a file on w. Close ends the file and does not close w. A file that was not
// ended has no footer, so readers detect it.
func NewWriter(w io.Writer, o Options) (*Writer, error) {
	if w == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "w"}, "expected a writer, found nil")
	}
	return newWriter(plain{w}, o)
}

func newWriter(s sink, o Options) (*Writer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.defaults()
	w := &Writer{check: Checker{opts: o}, buf: &buffer{}, sink: s}
	cols := fileColumns(o.Trace)
	if o.Format != parquet {
		w.most = math.MaxInt32
		w.out = &arrowEncoder{out: &pq.Counter{To: s}, cols: cols, file: o.Format == arrowFile, zstd: o.ZstdLevel >= 0,
			kv: func() []pqread.KV { return fileMetadata(w.check.opts, w.check.columns) }}
		return w, nil
	}
	physical := make([]pq.Column, len(cols))
	for i, c := range cols {
		physical[i] = c.Column
	}
	file, err := pq.NewWriter(s, physical, o.ZstdLevel)
	if err != nil {
		return nil, writeError(err)
	}
	w.out = file
	return w, nil
}

// Write checks s and adds it to the file. If Sample.ID is empty it is made from the rollout id
// and the sample index. The columns of s are copied.
func (w *Writer) Write(s rollout.Sample) error {
	return w.ifOpen(&s, func() error { return w.write(&s) })
}

// ifOpen calls write for the row s, unless the file has ended.
func (w *Writer) ifOpen(s *rollout.Sample, write func() error) error {
	switch {
	case !w.initialised():
		return zeroWriter()
	case w.err != nil || w.closed:
		return w.endedError(s)
	}
	w.err = write()
	return w.err
}

// endedError returns the error for a row that is written after the file was closed or has failed. It
// names this row as well as the cause.
func (w *Writer) endedError(s *rollout.Sample) error {
	switch {
	case w.err == nil:
		return ErrClosed
	case errors.Is(w.err, ErrClosed):
		return w.err
	}
	e := rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: s.Rollout}, "row %d of group %q is not taken: the file ended before it: %v", s.SampleIndex, s.Group, w.err)
	e.Err = w.err
	return e
}

// initialised reports whether w comes from Create or NewWriter; the zero value does not.
func (w *Writer) initialised() bool { return w.sink != nil }

func zeroWriter() error { return zero.Value("export.Writer", "Create or NewWriter") }

func (w *Writer) write(s *rollout.Sample) error {
	newGroup, newRollout := w.check.order.begins(s)
	if err := w.check.Check(s); err != nil {
		return err
	}
	return w.take(s, tokensOf(s), w.check.trained, newGroup, newRollout)
}

// take adds a row that has passed the checks.
func (w *Writer) take(s *rollout.Sample, t *tokens, trained int, newGroup, newRollout bool) error {
	fits, err := w.fits(s, t)
	if err != nil {
		return err
	}
	if !fits || w.full(newGroup, newRollout) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.buf.add(s, t, w.check.columns, w.check.opts.status(s))
	if w.check.opts.Trace {
		w.buf.trace(s, t)
	}
	w.stats.Rows++
	if newRollout {
		w.stats.Rollouts++
	}
	if newGroup {
		w.stats.Groups++
	}
	w.stats.Tokens += int64(len(t.ids))
	w.stats.Trained += int64(trained)
	return nil
}

// full reports whether the buffered rows must be written before the next row, which may start a
// group or a rollout.
func (w *Writer) full(newGroup, newRollout bool) bool {
	tokens, rows := groupTokens*w.growth(), w.check.opts.GroupRows*w.growth()
	reached := func(times int) bool { return w.buf.tokens >= times*tokens || w.buf.rows >= times*rows }
	return newGroup && reached(1) || newRollout && reached(2) || reached(4)
}

// fits reports whether the offsets of a record batch can count the row together with the buffered
// rows. A row too large for any batch is an error.
func (w *Writer) fits(s *rollout.Sample, t *tokens) (bool, error) {
	if w.most == 0 {
		return true, nil
	}
	fits := w.buf.tokens+len(t.ids) <= w.most
	for _, text := range [...]struct{ column, bytes int }{
		{iSampleID, len(s.ID)}, {iGroupID, len(s.Group)}, {iRolloutID, len(s.Rollout)}, {iStatus, len(w.check.opts.status(s).String())},
		{iFinishReason, len(s.FinishReason)}, {iMaskReason, len(s.MaskReason)}, {iMetadata, len(s.Metadata)},
	} {
		if text.bytes > w.most {
			return false, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: s.Rollout, Field: columns()[text.column].Name},
				"found a text of %d bytes, expected at most %d in Arrow", text.bytes, w.most).WithFix("shorten it")
		}
		fits = fits && w.buf.texts[text.column]+text.bytes <= w.most
	}
	return fits, nil
}

// growth returns the factor by which row groups are now larger than at the start of the file.
func (w *Writer) growth() int { return 1 << min(w.stats.RowGroups/1024, 4) }

func (w *Writer) flush() error {
	if w.buf.rows == 0 {
		return nil
	}
	if err := w.out.WriteRowGroup(w.buf.rows, w.buf.cols[:len(fileColumns(w.check.opts.Trace))]); err != nil {
		return writeError(err)
	}
	w.stats.RowGroups++
	w.stats.Bytes = w.out.Written()
	w.buf.reset()
	return nil
}

// Stats returns the counts so far.
func (w *Writer) Stats() Stats { return w.stats }

// Close checks the last rollout, ends the file and makes it visible under its name. After an
// error it removes the output. Only the first call has an effect. After Abort it returns
// ErrAborted and publishes nothing.
func (w *Writer) Close() error {
	if !w.initialised() {
		return zeroWriter()
	}
	if w.closed {
		return w.err
	}
	w.closed = true
	if w.err == nil {
		w.err = w.finish()
	}
	if w.err != nil {
		return errors.Join(w.err, w.sink.Abort())
	}
	return nil
}

func (w *Writer) finish() error {
	if err := w.check.End(); err != nil {
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
	return w.sink.Commit()
}

// Abort discards the file. After Close or an earlier Abort it does nothing, so that it can be
// deferred.
func (w *Writer) Abort() error {
	if !w.initialised() || w.closed {
		return nil
	}
	w.closed = true
	if w.err == nil {
		w.err = ErrAborted
	}
	return w.sink.Abort()
}

func (w *Writer) metadata() ([]pqread.KV, error) {
	meta := fileMetadata(w.check.opts, w.check.columns)
	if w.check.opts.Format != parquet {
		return meta, nil
	}
	schema, err := arrowSchemaBytes(fileColumns(w.check.opts.Trace), meta)
	if err != nil {
		return nil, err
	}
	return append(meta, pqread.KV{Key: "ARROW:schema", Value: schema}), nil
}

// fileMetadata returns the metadata of a file in a fixed order.
func fileMetadata(o Options, c Columns) []pqread.KV {
	kv := []pqread.KV{{Key: metaSchemaVersion, Value: SchemaVersion}, {Key: col.Columns, Value: o.InUse(c)}}
	for _, e := range []pqread.KV{{Key: metaTokenizer, Value: o.Tokenizer}, {Key: metaTemplate, Value: o.Template}, {Key: metaEstimator, Value: o.Estimator}} {
		if e.Value != "" {
			kv = append(kv, e)
		}
	}
	if o.GroupSeq > 0 {
		kv = append(kv, pqread.KV{Key: metaGroupSeq, Value: strconv.Itoa(o.GroupSeq)})
	}
	for _, k := range slices.Sorted(maps.Keys(o.Metadata)) {
		kv = append(kv, pqread.KV{Key: k, Value: o.Metadata[k]})
	}
	return kv
}
