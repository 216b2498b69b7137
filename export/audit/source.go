package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/primerl"
	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/internal/pickle"
	"github.com/turnpack/turnpack/internal/pqread"
	"github.com/turnpack/turnpack/rollout"
)

// source gives the rows of one file. The end is io.EOF.
type source interface {
	next() (*Row, error)
	close() error
}

// open finds out what a file is by its content.
func open(path string) (source, string, error) {
	where := rollout.Where{File: path}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", rollout.Errorf(rollout.KindInput, where, "cannot be opened: %w", cause(err)).WithFix("check the path, and the right to read it")
	}
	fail := func(err error) (source, string, error) { return nil, "", errors.Join(err, f.Close()) }
	info, err := f.Stat()
	if err != nil {
		return fail(rollout.Errorf(rollout.KindInput, where, "open: %w", err))
	}
	if info.IsDir() {
		return fail(rollout.Errorf(rollout.KindInput, where, "it is a folder").WithFix("name the files in it"))
	}
	head := make([]byte, 8)
	n, _ := f.ReadAt(head, 0)
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")):
		if r, err := export.Open(path); err == nil {
			s := &schemaSource{r: r, path: path}
			if s.beside, err = trainColumn(f, where); s.beside != nil || err != nil {
				return s, "turnpack schema " + r.Info().SchemaVersion + ", Parquet, and a trainer's log probabilities", err
			}
			return s, "turnpack schema " + r.Info().SchemaVersion + ", Parquet", f.Close()
		}
		src, err := plainParquet(f, where)
		if err != nil {
			return fail(err)
		}
		return src, "Parquet with " + src.names.String(), nil
	case bytes.HasPrefix(head, []byte("ARROW1")) || bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff}):
		r, err := export.Open(path)
		if err != nil {
			return fail(err)
		}
		return &schemaSource{r: r}, "turnpack schema " + r.Info().SchemaVersion + ", Arrow", f.Close()
	case bytes.HasPrefix(head, []byte("PK")):
		src, err := newSlime(f, info.Size(), where)
		if err != nil {
			return fail(err)
		}
		return src, "slime debug rollout data", f.Close()
	case primerlHead(head):
		batches, err := primerl.Read(bufio.NewReaderSize(f, 1<<20))
		if err != nil {
			return fail(rollout.Errorf(rollout.KindFormat, where, "%w", err))
		}
		return &primerlSource{batches: batches}, "prime-rl rank file", f.Close()
	case len(bytes.TrimLeft(head, " \t\r\n\ufeff")) > 0 && bytes.TrimLeft(head, " \t\r\n\ufeff")[0] == '{':
		return &jsonSource{f: f, r: bufio.NewReaderSize(f, 1<<20), where: where}, "JSON Lines", nil
	}
	return fail(rollout.Errorf(rollout.KindFormat, where, "found %.8q at the start, expected a Parquet, Arrow, .pt, prime-rl .bin or JSON Lines file", head).
		WithFix("give one of these; %s is none", filepath.Base(path)))
}

// trainColumn reads the log probabilities that a trainer wrote into a file of this module's
// schema; nil where there are none.
func trainColumn(f *os.File, where rollout.Where) (*parquetSource, error) {
	p, err := plainParquet(f, where)
	if err != nil || p.names.train == "" {
		return nil, err
	}
	p.names = names{train: p.names.train}
	return p, nil
}

// plainParquet reads a Parquet file by anyone.
func plainParquet(f *os.File, where rollout.Where) (*parquetSource, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, where, "open: %w", err)
	}
	p, err := pqread.Open(f, info.Size())
	if err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, where, "not a complete Parquet file: %v", err).WithFix("write the file again")
	}
	return newParquet(p, f, where)
}

// cause is what went wrong, without the path that errors name anyway.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// schemaSource reads this module's files.
type schemaSource struct {
	r    *export.Reader
	path string // of a Parquet file
	read int
	// beside has the column of a trainer, nil without one.
	beside *parquetSource
	// plain gives the rows from the first row group that breaks the schema on.
	plain *parquetSource
}

func (s *schemaSource) close() error {
	err := s.r.Close()
	for _, p := range []*parquetSource{s.plain, s.beside} {
		if p != nil {
			err = errors.Join(err, p.close())
		}
	}
	return err
}

func (s *schemaSource) next() (*Row, error) {
	if s.plain != nil {
		return s.plain.next()
	}
	smp, err := s.r.Read()
	switch {
	case err == nil:
		s.read++
		row := rowOf(smp)
		if s.beside != nil {
			row.TrainLogprobs, err = s.beside.column(s.beside.names.train)
		}
		return row, err
	case err == io.EOF || s.path == "":
		return nil, err
	}
	row, plain := s.anyway()
	if plain == nil {
		return nil, err
	}
	row.unreadable, s.plain = err, plain
	return row, nil
}

// anyway reads the rest of a file that its own reader refuses as a file by
// anyone; nil where that is no use either.
func (s *schemaSource) anyway() (row *Row, src *parquetSource) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, nil
	}
	if src, err = plainParquet(f, rollout.Where{File: s.path}); err == nil {
		for range s.read + 1 {
			if row, err = src.next(); err != nil {
				break
			}
		}
	}
	if err != nil {
		_ = f.Close() // only read from
		return nil, nil
	}
	return row, src
}

// rowOf is the row of a sample.
func rowOf(s rollout.Sample) *Row {
	reward := s.Reward
	r := &Row{ID: s.ID, Group: s.Group, Rollout: s.Rollout, IDs: s.IDs, Mask: widen(s.Weight), Logprobs: widen(s.Logprob), Advantages: widen(s.Credit),
		PromptLen: s.PromptLen, Reward: &reward, Advantage: s.Advantage, Status: s.Status.String(), FinishReason: s.FinishReason, Sample: &s}
	if slices.ContainsFunc(s.Source, func(m int32) bool { return m >= 0 }) {
		r.Sources, r.Flags = s.Source, s.Flags
	}
	return r
}

func widen(v []float32) []float64 {
	if v == nil {
		return nil
	}
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// slimeSource reads slime's samples. Their masks cover the response.
type slimeSource struct {
	samples []any
	at      int
	left    int // bytes that the rest may take as JSON
	where   rollout.Where
	text    []byte
	doc     jsonscan.Doc
}

// newSlime reads a file of torch.save. Classes inside the pickle are never made.
func newSlime(f *os.File, size int64, where rollout.Where) (*slimeSource, error) {
	v, bytes, err := pickle.Torch(f, size)
	top, _ := v.(map[any]any)
	samples, ok := top["samples"].(*[]any)
	if err == nil && !ok {
		err = errors.New("it holds no list of samples")
	}
	if err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, where, "%v", err).WithFix("give a file written by torch.save with slime's debug rollout data")
	}
	return &slimeSource{samples: *samples, left: max(1<<24, 16*bytes), where: where}, nil
}

func (s *slimeSource) close() error { return nil }

func (s *slimeSource) next() (*Row, error) {
	if s.at == len(s.samples) {
		return nil, io.EOF
	}
	fail := func(err error) (*Row, error) {
		return nil, rollout.Errorf(rollout.KindFormat, s.where, "sample %d: %v", s.at, err)
	}
	var err error
	if s.text, err = pickle.AppendJSON(s.text[:0], s.samples[s.at], s.left); err != nil {
		return fail(err)
	}
	s.left -= len(s.text)
	v, err := s.doc.Parse(s.text, jsonscan.Options{NonFinite: true})
	if err != nil {
		return fail(err)
	}
	n := namesOf(func(name string) bool { return !v.Get(name).IsNull() })
	if !n.complete() {
		return fail(noIDs(rollout.Where{}, "it"))
	}
	r, err := n.row(cells{v: v})
	if err != nil {
		return fail(err)
	}
	s.at++
	meta := cells{v: v.Get("metadata")}
	r.ID = meta.text("sample_id")
	if advantage, ok := meta.number("advantage"); ok {
		r.Advantage = &advantage
	}
	if r.Mask == nil { // slime trains the whole response then
		r.Mask = make([]float64, len(r.IDs))
		for t := max(0, r.PromptLen); t < len(r.Mask); t++ {
			r.Mask[t] = 1
		}
	}
	if removed, _ := v.Get("remove_sample").Bool(); removed {
		clear(r.Mask)
	}
	return r, nil
}

// full puts zeros for the prompt before a column of the response and records a
// length that does not fit.
func (r *Row) full(v []float64, column string, response int) []float64 {
	if len(v) == len(r.IDs) && len(v) != response {
		return v
	}
	if len(v) != response {
		r.Faults = append(r.Faults, Fault{column, fmt.Sprintf("%s has %d values for %d response tokens", column, len(v), response)})
	}
	out := make([]float64, len(r.IDs))
	copy(out[max(0, min(len(out), len(r.IDs)-response)):], v)
	return out
}
