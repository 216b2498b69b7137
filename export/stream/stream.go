package stream

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Names in the folder.
const (
	indexName  = "batches.jsonl"
	dataFolder = "data"
	lockName   = ".lock"
)

// Key identifies a batch: a group, and the training step that uses it.
type Key struct {
	Group string `json:"group"`
	Step  int    `json:"step"`
}

// Batch describes a batch of the folder; it is a line of batches.jsonl.
type Batch struct {
	Seq int `json:"seq"` // from 1, ascending
	Key
	File    string `json:"file"`   // relative to the folder, with slashes
	Digest  string `json:"digest"` // of the file, "sha256:<hex>"
	Rows    int    `json:"rows"`
	Tokens  int64  `json:"tokens"`
	Trained int64  `json:"trained"`
	// Note is a value that the caller stores with the batch.
	Note json.RawMessage `json:"note,omitempty"`
}

// Stream is an open folder. Its methods are safe for concurrent use.
type Stream struct {
	dir  string
	opts export.Options
	lock *os.File

	adding sync.Mutex // serialises transactions

	mu      sync.Mutex
	index   *os.File
	size    int64       // of the index in bytes
	batches []Batch     // the most recent batches, without notes
	most    int         // at 2*most batches the older half is forgotten
	keys    map[Key]int // numbers of the batches in memory whose file exists
	last    int         // number of the last batch
	fault   error       // sticky: the index cannot be written

	steps *steps // nil = batches are not combined into steps
}

// held is the least number of recent batches kept in memory once there are that many. Lookups
// concern batches that are not delivered yet, and far fewer wait for a trainer.
const held = 50_000

// Open opens or creates the folder and locks it against other writers. The options apply to
// each file.
func Open(dir string, o export.Options) (*Stream, error) { return open(dir, o, held) }

func open(dir string, o export.Options, most int) (*Stream, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "dir"}, "the folder has no name").WithFix(`give its path, "." for the working directory`)
	}
	where := rollout.Where{File: dir}
	if err := os.MkdirAll(filepath.Join(dir, dataFolder), 0o755); err != nil {
		return nil, atomic.Locate(where, err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, atomic.Locate(where, err)
	}
	s := &Stream{dir: dir, opts: o, lock: lock, most: most, keys: map[Key]int{}}
	if !atomic.Hold(lock) {
		e := rollout.Errorf(rollout.KindInput, where, "%w", export.ErrLocked).WithFix("wait for it, or name another folder")
		return nil, errors.Join(e, lock.Close())
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// load reads the index and undoes a batch that a kill left incomplete.
func (s *Stream) load() (err error) {
	path := filepath.Join(s.dir, indexName)
	if s.index, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return atomic.Locate(rollout.Where{File: path}, err)
	}
	size, err := s.index.Seek(0, io.SeekEnd)
	if err != nil {
		return atomic.Locate(rollout.Where{File: path}, err)
	}
	in := bufio.NewReader(io.NewSectionReader(s.index, 0, size))
	for line := 1; ; line++ {
		text, err := in.ReadBytes('\n')
		if err == io.EOF {
			break // the end, or a line that a kill truncated
		}
		if err != nil {
			return atomic.Locate(rollout.Where{File: path}, err)
		}
		var b Batch
		if err := json.Unmarshal(text, &b); err != nil || b.Seq <= s.last || !filepath.IsLocal(b.File) {
			return rollout.Errorf(rollout.KindFormat, rollout.Where{File: path, Line: line}, "it is no batch after number %d", s.last).
				WithFix("name another folder, or take the line out")
		}
		end := s.size + int64(len(text))
		_, missing := os.Stat(s.path(&b))
		if missing != nil && end == size && s.interrupted(&b) {
			break // killed before the file was renamed
		}
		s.size = end
		s.remember(b, missing == nil)
	}
	if err := errors.Join(s.index.Truncate(s.size), atomic.SyncDir(s.dir)); err != nil {
		return atomic.Locate(rollout.Where{File: path}, err)
	}
	atomic.Sweep(filepath.Join(s.dir, dataFolder), "")
	return atomic.Remove(s.path(&Batch{File: s.name(s.last + 1)})) // left by a batch that failed
}

// remember adds a batch to memory and forgets old ones. The caller holds s.mu, or is the only user
// of s.
func (s *Stream) remember(b Batch, there bool) {
	b.Note = nil
	s.last = b.Seq
	s.batches = append(s.batches, b)
	if there {
		s.keys[b.Key] = b.Seq
	}
	if len(s.batches) < 2*s.most {
		return
	}
	for _, old := range s.batches[:s.most] {
		if s.keys[old.Key] == old.Seq {
			delete(s.keys, old.Key)
		}
	}
	s.batches = slices.Clone(s.batches[s.most:])
}

// interrupted reports whether b has a temporary file, left by a writer that was killed.
func (s *Stream) interrupted(b *Batch) bool {
	dir, name := filepath.Split(s.path(b))
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return strings.HasPrefix(e.Name(), "."+name+".") && strings.HasSuffix(e.Name(), atomic.TempSuffix)
	})
}

// name returns the file name of batch seq.
func (s *Stream) name(seq int) string {
	suffix := "parquet"
	if s.opts.Format != "" && s.opts.Format != "parquet" {
		suffix = "arrow"
	}
	return fmt.Sprintf(dataFolder+"/batch_%06d.%s", seq, suffix)
}

func (s *Stream) path(b *Batch) string { return filepath.Join(s.dir, filepath.FromSlash(b.File)) }

// Add writes a batch with the rows that fill writes to the writer, which fill must not close.
// If a batch of key exists, Add returns that one. If fill writes no row, no batch is added and
// Seq is 0. An error of fill or of the disk leaves nothing.
func (s *Stream) Add(key Key, note json.RawMessage, fill func(*export.Writer) error) (Batch, error) {
	if s.keys == nil {
		return Batch{}, zero.Value("stream.Stream", "Open")
	}
	if fill == nil {
		return Batch{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "fill"}, "expected what writes the rows, found nil")
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	if b, there := s.Find(key); there {
		return b, nil
	}
	s.mu.Lock()
	b, fault := Batch{Seq: s.last + 1, Key: key, Note: note}, s.fault
	s.mu.Unlock()
	if fault != nil {
		return Batch{}, fault
	}
	b.File = s.name(b.Seq)
	file, err := atomic.Create(s.path(&b), s.opts.Force)
	if err != nil {
		return Batch{}, err
	}
	defer func() { _ = file.Abort() }()
	sum := sha256.New()
	w, err := export.NewWriter(io.MultiWriter(file, sum), s.opts)
	if err != nil {
		return Batch{}, err
	}
	if err := fill(w); err != nil {
		return Batch{}, errors.Join(err, w.Abort())
	}
	if w.Stats().Rows == 0 {
		return Batch{}, w.Abort()
	}
	if err := w.Close(); err != nil {
		return Batch{}, err
	}
	got := w.Stats()
	b.Rows, b.Tokens, b.Trained, b.Digest = got.Rows, got.Tokens, got.Trained, "sha256:"+hex.EncodeToString(sum.Sum(nil))
	if err := s.commit(&b, file); err != nil {
		return Batch{}, err
	}
	return b, nil
}

// commit appends the line of a batch and renames its file into place.
func (s *Stream) commit(b *Batch, file *atomic.File) error {
	line, err := json.Marshal(b)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "note"}, "it cannot be written: %w", err)
	}
	line = append(line, '\n')
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.index.WriteAt(line, s.size)
	if err == nil {
		err = s.index.Sync()
	}
	if err != nil {
		err = atomic.Locate(rollout.Where{File: filepath.Join(s.dir, indexName)}, err)
	} else if err = file.Commit(); err != nil && !errors.Is(err, export.ErrExists) {
		err = errors.Join(err, atomic.Remove(s.path(b))) // the file may already have its final name
	}
	if err != nil {
		if back := s.index.Truncate(s.size); back != nil {
			s.fault = atomic.Locate(rollout.Where{File: filepath.Join(s.dir, indexName)}, back)
		}
		return err
	}
	s.size += int64(len(line))
	s.remember(*b, true)
	return nil
}

// Find returns the batch of a key without its note, if it is one of the last 50,000 and its
// file existed when the folder was opened or has been written since.
func (s *Stream) Find(key Key) (Batch, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seq, ok := s.keys[key]
	if !ok {
		return Batch{}, false
	}
	return s.batch(seq)
}

// batch returns the batch with number seq. The caller holds s.mu.
func (s *Stream) batch(seq int) (Batch, bool) {
	i, ok := slices.BinarySearchFunc(s.batches, seq, func(b Batch, seq int) int { return b.Seq - seq })
	if !ok {
		return Batch{}, false
	}
	return s.batches[i], true
}

// Batches yields all batches ever added, by number, from the index. The files of some may have
// been removed.
func (s *Stream) Batches() iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		s.mu.Lock()
		in := bufio.NewReader(io.NewSectionReader(s.index, 0, s.size))
		s.mu.Unlock()
		for {
			text, err := in.ReadBytes('\n')
			if err == io.EOF {
				return
			}
			var b Batch
			if err == nil {
				err = json.Unmarshal(text, &b)
			}
			if err != nil {
				err = atomic.Locate(rollout.Where{File: filepath.Join(s.dir, indexName)}, err)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Path returns the path of a batch's file.
func (s *Stream) Path(b Batch) string { return s.path(&b) }

// WriteArrow writes the rows of a batch to w as an Arrow IPC stream with the schema of the
// file; the metadata key "turnpack.group_seq" holds the batch number. The bytes are the same
// each time.
func (s *Stream) WriteArrow(w io.Writer, seq int) error {
	s.mu.Lock()
	b, ok := s.batch(seq)
	s.mu.Unlock()
	if !ok {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: s.dir}, "there is no batch %d", seq)
	}
	r, err := export.Open(s.path(&b))
	if errors.Is(err, fs.ErrNotExist) {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: s.path(&b)}, "the file of batch %d was removed: %w", seq, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	info := r.Info()
	out, err := export.NewWriter(w, export.Options{
		Format: "arrow-stream", GroupSeq: seq, Columns: &info.Columns, Trace: info.Trace, KeepTail: true, KeepUntrained: true,
		Tokenizer: info.Tokenizer, Template: info.Template, Estimator: info.Estimator, Metadata: info.Metadata, ZstdLevel: s.opts.ZstdLevel,
	})
	if err != nil {
		return err
	}
	if err := copyRows(out, r, func(*rollout.Sample) {}); err != nil {
		return errors.Join(err, out.Abort())
	}
	return out.Close()
}

// copyRows copies all rows of a file after change has edited each.
func copyRows(to *export.Writer, from *export.Reader, change func(*rollout.Sample)) error {
	for {
		row, err := from.Read()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			change(&row)
			err = to.Write(row)
		}
		if err != nil {
			return err
		}
	}
}

// Close unlocks the folder. Its batches stay.
func (s *Stream) Close() error {
	if s.lock == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		s.fault = rollout.Errorf(rollout.KindInput, rollout.Where{File: s.dir}, "%w", export.ErrClosed)
	} else if errors.Is(s.fault, export.ErrClosed) {
		return nil
	}
	err := s.lock.Close()
	if s.index != nil { // it could be opened
		err = errors.Join(s.index.Close(), err)
	}
	return err
}
