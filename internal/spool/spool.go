package spool

import (
	"os"
	"runtime"

	"github.com/turnpack/turnpack/rollout"
)

// hugeRow is the size in bytes from which loading a row first runs the garbage collector:
// making such a row left garbage of many times its size.
const hugeRow = 16 << 20

// Spool keeps the rows of groups that cannot be written yet, stored consecutively as bytes: the
// most recent in memory, the older ones in a temporary file.
type Spool struct {
	dir   string // of the temporary file, "" = the system's default
	limit int

	waiting map[int][]place // by group
	rows    int             // number of rows kept
	last    []byte          // bytes that follow those in the file

	file   *os.File
	inFile int64
}

// place is the position of a row in the stored bytes.
type place struct{ at, size int64 }

// New returns a spool that holds up to limit bytes in memory, and the rest in a temporary file
// in dir.
func New(dir string, limit int64) *Spool {
	return &Spool{dir: dir, limit: int(limit), waiting: map[int][]place{}}
}

// Add keeps rows of a group. Each returns them in the order added.
func (s *Spool) Add(group int, rows ...Row) error {
	for i := range rows {
		at, err := s.keep(&rows[i])
		if err != nil {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: rows[i].Rollout}, "rows that wait to be written cannot be kept: %w", err).
				WithFix("free space in the folder for temporary files (Pipeline.TempDir, for the command TMPDIR)")
		}
		s.waiting[group] = append(s.waiting[group], at)
		s.rows++
	}
	return nil
}

func (s *Spool) keep(row *Row) (place, error) {
	at := s.inFile + int64(len(s.last))
	c := coder{b: s.last, most: max(s.limit, leastPart), store: s.store}
	c.row(row)
	if s.last = c.b; c.err == nil && len(s.last) > s.limit {
		s.last, c.err = s.store(s.last)
	}
	return place{at, s.inFile + int64(len(s.last)) - at}, c.err
}

// leastPart is the least number of bytes written to the file at once while a row is being
// encoded.
const leastPart = 1 << 16

// store appends b to the file and returns its memory, emptied.
func (s *Spool) store(b []byte) ([]byte, error) {
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "turnpack-rows-*")
		if err != nil {
			return b[:0], err
		}
		_ = os.Remove(f.Name()) // on systems that allow it a killed run then leaves nothing; otherwise Close removes it
		s.file = f
	}
	n, err := s.file.WriteAt(b, s.inFile)
	s.inFile += int64(n)
	return b[:0], err
}

// Each calls emit for the rows of a group in order and removes them.
func (s *Spool) Each(group int, emit func(Row) error) error {
	places := s.waiting[group]
	delete(s.waiting, group)
	for _, at := range places {
		row, err := s.load(at)
		if err != nil {
			return rollout.Errorf(rollout.KindInput, rollout.Where{}, "rows that waited to be written cannot be read back: %w", err).
				WithFix("leave the folder for temporary files alone while a run lasts")
		}
		if s.rows--; s.rows == 0 { // empty: reuse the space
			s.last, s.inFile = s.last[:0], 0
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spool) load(at place) (_ Row, err error) {
	c := coder{reads: true}
	if from := at.at - s.inFile; from >= 0 {
		c.b = s.last[from : from+at.size]
	} else {
		if at.at+at.size > s.inFile {
			if s.last, err = s.store(s.last); err != nil {
				return Row{}, err
			}
		}
		if at.size > hugeRow {
			runtime.GC()
		}
		c.b = make([]byte, at.size)
		if _, err := s.file.ReadAt(c.b, at.at); err != nil {
			return Row{}, err
		}
	}
	return c.read()
}

// Close removes the temporary file.
func (s *Spool) Close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
		s.file = nil
	}
}
