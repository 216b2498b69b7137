// Package spool keeps rows until their turn to be written comes: in memory up to a limit,
// beyond it in a temporary file.
package spool

import (
	"bufio"
	"bytes"
	"os"
	"runtime"

	"github.com/turnpack/turnpack/rollout"
)

// hugeRow is the size of a row beyond any model's context: what made it is garbage of
// many times its size, and collected before it takes memory again.
const hugeRow = 16 << 20

// Spool keeps rows of groups whose turn to be written has not come.
type Spool struct {
	dir   string // of the temporary file, "" = the system's
	limit int64

	waiting map[int][]place // by group, in the order added
	held    int64           // bytes in memory
	row     []byte          // the row being stored

	file *os.File
	out  *bufio.Writer
	end  int64
}

// place is where a row waits: in memory, or at an offset of the file.
type place struct {
	held     []byte
	at, size int64
}

// New keeps up to limit bytes of rows in memory; dir "" is the system's folder.
func New(dir string, limit int64) *Spool {
	return &Spool{dir: dir, limit: limit, waiting: map[int][]place{}}
}

// Add keeps rows of a group. Rows of a group come back in the order added.
func (s *Spool) Add(group int, rows []rollout.Sample) error {
	for i := range rows {
		at, err := s.keep(&rows[i])
		if err != nil {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: rows[i].Sequence.Rollout}, "rows that wait to be written cannot be kept: %w", err).
				WithFix("free space in the folder for temporary files (Pipeline.TempDir)")
		}
		s.waiting[group] = append(s.waiting[group], at)
	}
	return nil
}

func (s *Spool) keep(row *rollout.Sample) (place, error) {
	var err error
	if s.row, err = appendRow(s.row[:0], row); err != nil {
		return place{}, err
	}
	n := int64(len(s.row))
	if s.held+n <= s.limit {
		s.held += n
		return place{held: bytes.Clone(s.row)}, nil
	}
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "turnpack-rows-*")
		if err != nil {
			return place{}, err
		}
		_ = os.Remove(f.Name()) // where that is allowed, a killed run leaves nothing; else close does it
		s.file, s.out = f, bufio.NewWriterSize(f, 1<<20)
	}
	_, err = s.out.Write(s.row)
	s.end += n
	s.dropRow()
	return place{at: s.end - n, size: n}, err
}

// Each gives the rows of a group in order and forgets them.
func (s *Spool) Each(group int, emit func(rollout.Sample) error) error {
	for _, at := range s.waiting[group] {
		row, err := s.load(at)
		if err != nil {
			return rollout.Errorf(rollout.KindInput, rollout.Where{}, "rows that waited to be written cannot be read back: %w", err).
				WithFix("leave the folder for temporary files alone while a run lasts")
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	delete(s.waiting, group)
	return nil
}

func (s *Spool) load(at place) (rollout.Sample, error) {
	if at.held != nil {
		s.held -= int64(len(at.held))
		return loadRow(at.held)
	}
	if err := s.out.Flush(); err != nil {
		return rollout.Sample{}, err
	}
	if int64(cap(s.row)) < at.size {
		s.row = make([]byte, at.size)
	}
	b := s.row[:at.size]
	if _, err := s.file.ReadAt(b, at.at); err != nil {
		return rollout.Sample{}, err
	}
	defer s.dropRow()
	if at.size > hugeRow {
		runtime.GC()
	}
	return loadRow(b)
}

// dropRow keeps the memory of a row of ordinary length for the next.
func (s *Spool) dropRow() {
	if int64(cap(s.row)) > s.limit {
		s.row = nil
	}
}

// Close removes the temporary file.
func (s *Spool) Close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
		s.file = nil
	}
}
