package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/internal/arrowfile"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/pqread"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Reader returns the rows of a file in order, with one row group in memory at a time. It must
// not be used concurrently.
type Reader struct {
	src    source
	where  rollout.Where
	closer io.Closer
	info   Info
	group  int // number of row groups loaded
	rows   []rollout.Sample
}

// A source reads the row groups of one file format.
type source interface {
	metadata() []pqread.KV
	// rows is the number of rows of the file, −1 if it is unknown before the end is read.
	rows() int64
	// check compares a column of the file with the schema.
	check(c column) (missing bool, mismatch string)
	// next decodes the named columns of the next row group; a column that is not in the file is
	// nil. It returns io.EOF after the last row group.
	next(names []string) (chunks []*pqread.Chunk, rows int, err error)
}

// parquetSource reads Parquet files.
type parquetSource struct {
	*pqread.File
	at int
}

func (s *parquetSource) metadata() []pqread.KV { return s.Metadata() }

func (s *parquetSource) rows() (n int64) {
	for g := range s.RowGroups() {
		n += int64(s.Rows(g))
	}
	return n
}

func (s *parquetSource) check(c column) (missing bool, mismatch string) {
	leaf, ok := s.Leaf(c.Name)
	if !ok {
		return true, ""
	}
	physical := map[pq.Kind]pqread.Type{
		pq.Bool: pqread.Boolean, pq.Int8: pqread.Int32, pq.Int32: pqread.Int32,
		pq.Int64: pqread.Int64, pq.Float32: pqread.Float, pq.Text: pqread.ByteArray,
	}
	if leaf.Type != physical[c.Kind] || leaf.List != c.List {
		return false, fmt.Sprintf("the column holds %s (list: %v), expected %s (list: %v)", leaf.Type, leaf.List, c.Kind, c.List)
	}
	return false, ""
}

func (s *parquetSource) next(names []string) ([]*pqread.Chunk, int, error) {
	if s.at == s.RowGroups() {
		return nil, 0, io.EOF
	}
	out := make([]*pqread.Chunk, len(names))
	for i, name := range names {
		leaf, ok := s.Leaf(name)
		if !ok {
			continue
		}
		var err error
		if out[i], err = s.Read(s.at, leaf); err != nil {
			return nil, 0, fmt.Errorf("column %s: %v", name, err) // %v: a truncated chunk must not look like io.EOF
		}
	}
	s.at++
	return out, s.Rows(s.at - 1), nil
}

// Info describes a file, from its metadata.
type Info struct {
	SchemaVersion                  string
	Columns                        Columns
	Trace                          bool // the file has the columns sources and flags
	Tokenizer, Template, Estimator string
	// Metadata holds the file metadata under all other keys.
	Metadata map[string]string
	Rows     int64
	GroupSeq int // see Options.GroupSeq; 0 = none
}

// pathless returns err without the path, which the caller's error already names.
func pathless(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Open opens the file path. Close closes it. Open also reads files of an unfinished set, since
// a training step can use a file while the next is being written; shard.Unfinished reports such
// files.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "cannot be opened: %w", pathless(err)).WithFix("check the path, and the right to read it")
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "open: %w", err), f.Close())
	}
	r, err := newReader(f, info.Size(), rollout.Where{File: path})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.closer = f
	return r, nil
}

// NewReader reads a Parquet file, an Arrow file or an Arrow stream of the row schema, in this
// or an older version, from r, which holds size bytes.
func NewReader(r io.ReaderAt, size int64) (*Reader, error) {
	if r == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "r"}, "expected a reader, found nil")
	}
	return newReader(r, size, rollout.Where{})
}

func newReader(r io.ReaderAt, size int64, where rollout.Where) (*Reader, error) {
	src, err := openSource(r, size)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, where, "not a complete Parquet or Arrow file: %v", err).
			WithFix("write the file again: the writer that made it was stopped, or it is another format")
	}
	out := &Reader{src: src, where: where}
	out.info.Rows = src.rows()
	if err := out.describe(src.metadata()); err != nil {
		return nil, err
	}
	return out, out.checkSchema()
}

func openSource(r io.ReaderAt, size int64) (source, error) {
	head := make([]byte, 6)
	n, _ := r.ReadAt(head, 0)
	switch head = head[:min(n, int(max(0, min(size, 6))))]; {
	case bytes.HasPrefix(head, []byte(arrowfile.Magic)) || bytes.HasPrefix(head, []byte(arrowfile.Continuation)):
		f, err := arrowfile.Open(r, size)
		if err != nil {
			return nil, err
		}
		return arrowSource{f}, nil
	default:
		f, err := pqread.Open(r, size)
		if err != nil {
			return nil, err
		}
		return &parquetSource{File: f}, nil
	}
}

func (r *Reader) describe(kv []pqread.KV) error {
	names, seq := "", ""
	info := &r.info
	known := map[string]*string{
		metaSchemaVersion: &info.SchemaVersion, metaTokenizer: &info.Tokenizer, metaTemplate: &info.Template,
		metaEstimator: &info.Estimator, col.Columns: &names, metaGroupSeq: &seq, "ARROW:schema": new(string),
	}
	for _, e := range kv {
		if to := known[e.Key]; to != nil {
			*to = e.Value
			continue
		}
		if info.Metadata == nil {
			info.Metadata = map[string]string{}
		}
		info.Metadata[e.Key] = e.Value
	}
	if v := info.SchemaVersion; v != SchemaVersion {
		return rollout.Errorf(rollout.KindFormat, r.at(metaSchemaVersion), "the schema version is %q, expected %q", v, SchemaVersion).
			WithFix("read it with the release that wrote it; of other tools, audit reads Parquet")
	}
	on := strings.Split(names, ",")
	info.Columns = ColumnsNamed(names)
	info.Trace = slices.Contains(on, col.Sources) && slices.Contains(on, col.Flags)
	if seq == "" {
		return nil
	}
	n, err := strconv.Atoi(seq)
	if info.GroupSeq = n; err != nil || n < 1 {
		return rollout.Errorf(rollout.KindFormat, r.at(metaGroupSeq), "found %q, expected the number of a batch", seq)
	}
	return nil
}

func (r *Reader) at(field string) rollout.Where {
	w := r.where
	w.Field = field
	return w
}

// checkSchema returns an error if the file's columns do not match the schema. A nullable column
// may be missing: older files lack later columns.
func (r *Reader) checkSchema() error {
	for _, c := range columns() {
		missing, mismatch := r.src.check(c)
		switch {
		case missing && !c.Nullable:
			return rollout.Errorf(rollout.KindFormat, r.at(c.Name), "the column is missing").WithFix("write the file with schema version %s", SchemaVersion)
		case mismatch != "":
			return rollout.Errorf(rollout.KindFormat, r.at(c.Name), "%s", mismatch).WithFix("write the file with schema version %s", SchemaVersion)
		}
	}
	return nil
}

// Info returns the description of the file.
func (r *Reader) Info() Info { return r.info }

// Read returns the next row, or io.EOF after the last. The row shares memory only with rows of
// the same row group and may be kept.
//
// In a file without a trace (Info.Trace), Source is −1 everywhere and Flags mark only which
// tokens were sampled (trained, or with a policy version). Turn always holds the agent step,
// which is exact if the row has one run of trained tokens per step (with a trace: one sampled
// message per step); otherwise it is the row's first step. Weight is the weights column or,
// without one, the loss mask.
func (r *Reader) Read() (rollout.Sample, error) {
	if r.src == nil {
		return rollout.Sample{}, zero.Value("export.Reader", "Open or NewReader")
	}
	for len(r.rows) == 0 {
		rows, err := r.load()
		if err != nil {
			return rollout.Sample{}, err
		}
		r.rows = rows
	}
	s := r.rows[0]
	r.rows = r.rows[1:]
	return s, nil
}

// Close closes the file if Open opened it.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// ReadAll returns all rows of the file path and its description.
func ReadAll(path string) (rows []rollout.Sample, info Info, err error) {
	r, err := Open(path)
	if err != nil {
		return nil, Info{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		s, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, r.info, nil
		}
		if err != nil {
			return rows, r.info, err
		}
		rows = append(rows, s)
	}
}

// load decodes the next row group.
func (r *Reader) load() ([]rollout.Sample, error) {
	all := columns()
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	chunks, n, err := r.src.next(names)
	if err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, r.where, "row group %d: %v", r.group, err).WithFix("the file is damaged: write it again")
	}
	for i, c := range all {
		switch chunk := chunks[i]; {
		case chunk == nil:
		case chunk.NullElements > 0:
			return nil, rollout.Errorf(rollout.KindFormat, r.at(c.Name), "row group %d holds %d null elements inside lists", r.group, chunk.NullElements)
		case !c.Nullable && (slices.Contains(chunk.Nulls, true) || slices.Contains(chunk.Lens, -1)):
			return nil, rollout.Errorf(rollout.KindFormat, r.at(c.Name), "row group %d holds null rows in a column without nulls", r.group)
		}
	}
	r.group++
	rows := make([]rollout.Sample, n)
	cursor := rowCursor{chunks: chunks}
	for i := range rows {
		if err := cursor.row(i, &rows[i]); err != nil {
			var located *rollout.Error
			if errors.As(err, &located) {
				located.Where.File = r.where.File
				located.Where.Rollout = rows[i].Rollout
			}
			return nil, err
		}
		rows[i].Tokenizer, rows[i].Template = r.info.Tokenizer, r.info.Template
	}
	return rows, nil
}

// rowCursor walks through the non-null values of a row group.
type rowCursor struct {
	chunks []*pqread.Chunk
	at     [numColumns]int // next non-null value, per column
}

// take returns the range of non-null values of row i in column c. ok is false if the value is
// null or the file has no such column.
func (k *rowCursor) take(c, i int) (from, to int, ok bool) {
	chunk := k.chunks[c]
	if chunk == nil {
		return 0, 0, false
	}
	n := 1
	if chunk.Lens != nil {
		n = int(chunk.Lens[i])
	} else if chunk.Nulls[i] {
		n = -1
	}
	if n < 0 {
		return 0, 0, false
	}
	from = k.at[c]
	k.at[c] += n
	return from, from + n, true
}

func (k *rowCursor) text(c, i int) string {
	from, _, ok := k.take(c, i)
	if !ok {
		return ""
	}
	return k.chunks[c].Texts[from]
}

func (k *rowCursor) int(c, i int) int {
	from, _, _ := k.take(c, i)
	return int(k.chunks[c].Ints[from])
}

func (k *rowCursor) float(c, i int) *float64 {
	from, _, ok := k.take(c, i)
	if !ok {
		return nil
	}
	v := float64(k.chunks[c].Floats[from])
	return &v
}

func (k *rowCursor) ints(c, i int) []int32 {
	from, to, ok := k.take(c, i)
	if !ok {
		return nil
	}
	return k.chunks[c].Ints[from:to:to]
}

func (k *rowCursor) floats(c, i int) []float32 {
	from, to, ok := k.take(c, i)
	if !ok {
		return nil
	}
	return k.chunks[c].Floats[from:to:to]
}

// row fills s from row i. Rows must be read in order.
func (k *rowCursor) row(i int, s *rollout.Sample) error {
	s.ID, s.Group, s.Rollout = k.text(iSampleID, i), k.text(iGroupID, i), k.text(iRolloutID, i)
	s.RolloutIndex, s.SampleIndex = k.int(iRolloutIndex, i), k.int(iSampleIndex, i)
	s.IsLast = k.int(iIsLast, i) == 1
	s.FirstStep, s.LastStep = k.int(iStepFirst, i), k.int(iStepLast, i)
	s.FirstTurn, s.LastTurn = s.FirstStep, s.LastStep
	s.PromptLen = k.int(iPromptLen, i)
	s.IDs = k.ints(iInputIDs, i)
	mask := k.ints(iLossMask, i)
	s.Logprob, s.Weight, s.Credit = k.floats(iLogprobs, i), k.floats(iWeights, i), k.floats(iAdvantages, i)
	s.Version = k.ints(iVersions, i)
	s.Reward, s.OutcomeReward = *k.float(iReward, i), *k.float(iOutcomeReward, i)
	s.StepReward, s.Advantage = k.float(iStepReward, i), k.float(iAdvantage, i)
	if err := s.Status.UnmarshalText([]byte(k.text(iStatus, i))); err != nil {
		return err
	}
	s.FinishReason, s.MaskReason = k.text(iFinishReason, i), k.text(iMaskReason, i)
	sum, _, _ := k.take(iRolloutMaskSum, i)
	s.RolloutMaskSum = k.chunks[iRolloutMaskSum].Longs[sum]
	s.Temperature = float32(*k.float(iTemperature, i))
	if m := k.text(iMetadata, i); m != "" {
		s.Metadata = json.RawMessage(m)
	}
	s.Source = k.ints(iSources, i)
	return derive(s, mask, k.ints(iFlags, i))
}
