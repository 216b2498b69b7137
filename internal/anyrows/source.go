package anyrows

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
	"github.com/turnpack/turnpack/internal/pqread"
	"github.com/turnpack/turnpack/rollout"
)

// source reads the rows of one file. next returns io.EOF after the last.
type source interface {
	next() (*Row, error)
	close() error
}

// Open opens the file path and detects its format from the content: Parquet with known column
// names, an Arrow file of this module, slime's .pt file, a prime-rl rank file or JSON Lines.
// Close closes it.
func Open(path string) (*Reader, error) {
	where := rollout.Where{File: path}
	f, err := os.Open(path)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, where, "cannot be opened: %w", cause(err)).WithFix("check the path, and the right to read it")
	}
	fail := func(err error) (*Reader, error) { return nil, errors.Join(err, f.Close()) }
	info, err := f.Stat()
	if err != nil {
		return fail(rollout.Errorf(rollout.KindInput, where, "open: %w", err))
	}
	if info.IsDir() {
		return fail(rollout.Errorf(rollout.KindInput, where, "it is a folder").WithFix("name the files in it"))
	}
	if !info.Mode().IsRegular() {
		return fail(rollout.Errorf(rollout.KindInput, where, "it is no regular file (%s)", info.Mode().Type()).WithFix("write its rows to a file first: they are read at more than one place"))
	}
	head := make([]byte, 8)
	n, _ := f.ReadAt(head, 0)
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")):
		if r, err := export.Open(path); err == nil {
			s := &schemaSource{r: r, path: path}
			if s.trainer, err = trainColumn(f, where); err != nil {
				return fail(errors.Join(err, r.Close()))
			}
			if s.trainer != nil {
				return &Reader{src: s, shape: "turnpack schema " + r.Info().SchemaVersion + ", Parquet, and a trainer's log probabilities"}, nil
			}
			return &Reader{src: s, shape: "turnpack schema " + r.Info().SchemaVersion + ", Parquet"}, f.Close()
		}
		src, err := plainParquet(f, where)
		if err != nil {
			return fail(err)
		}
		return &Reader{src: src, shape: "Parquet with " + src.names.String()}, nil
	case bytes.HasPrefix(head, []byte("ARROW1")) || bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff}):
		r, err := export.Open(path)
		if err != nil {
			return fail(err)
		}
		return &Reader{src: &schemaSource{r: r}, shape: "turnpack schema " + r.Info().SchemaVersion + ", Arrow"}, f.Close()
	case bytes.HasPrefix(head, []byte("PK")):
		src, err := newSlime(f, info.Size(), where)
		if err != nil {
			return fail(err)
		}
		return &Reader{src: src, shape: "slime debug rollout data"}, nil
	case primerlHead(head):
		batches, err := primerl.Read(bufio.NewReaderSize(f, 1<<20))
		if err != nil {
			return fail(rollout.Errorf(rollout.KindFormat, where, "%w", err))
		}
		return &Reader{src: &primerlSource{batches: batches}, shape: "prime-rl rank file"}, f.Close()
	case len(bytes.TrimLeft(head, " \t\r\n\ufeff")) > 0 && bytes.TrimLeft(head, " \t\r\n\ufeff")[0] == '{':
		return &Reader{src: newLines(f, where), shape: "JSON Lines"}, nil
	}
	return fail(rollout.Errorf(rollout.KindFormat, where, "found %.8q at the start, expected a Parquet, Arrow, .pt, prime-rl .bin or JSON Lines file", head).
		WithFix("give one of these; %s is none", filepath.Base(path)))
}

// trainColumn returns a reader of the log probabilities that a trainer added to a file of this
// module's schema, or nil if it has none.
func trainColumn(f *os.File, where rollout.Where) (*textSource, error) {
	p, err := plainParquet(f, where)
	if err != nil || p.names.train == "" {
		return nil, err
	}
	p.names = names{train: p.names.train}
	return p, nil
}

// plainParquet reads a Parquet file without assuming this module's schema.
func plainParquet(f *os.File, where rollout.Where) (*textSource, error) {
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

// cause returns err without the path, which the caller's error already names.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// schemaSource reads this module's files.
type schemaSource struct {
	r    *export.Reader
	path string // of a Parquet file, otherwise ""
	read int
	// trainer reads the trainer's column, nil if there is none.
	trainer *textSource
	// plain reads the rows from the first row group on that breaks the schema.
	plain *textSource
}

func (s *schemaSource) close() error {
	err := s.r.Close()
	for _, p := range []*textSource{s.plain, s.trainer} {
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
		if s.trainer != nil {
			row.TrainLogprobs, err = s.trainer.column(s.trainer.names.train)
		}
		return row, err
	case err == io.EOF || s.path == "":
		return nil, err
	}
	row, plain := s.readPlain()
	if plain == nil {
		return nil, err
	}
	row.Unreadable, s.plain = err, plain
	return row, nil
}

// readPlain reads the rest of a file that does not fit the schema as a file from any writer. It
// returns nil if that fails too.
func (s *schemaSource) readPlain() (row *Row, src *textSource) {
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
		_ = f.Close() // opened for reading only
		return nil, nil
	}
	return row, src
}

// rowOf converts a sample.
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

// padPrompt puts zeros for the prompt before a column of the response. A wrong length is recorded in
// Faults.
func (r *Row) padPrompt(v []float64, column string, response int) []float64 {
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
