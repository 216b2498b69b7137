package spool

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"runtime"

	"github.com/turnpack/turnpack/rollout"
)

const (
	// hugeRow is the size of a row beyond any model's context: what made it is garbage of
	// many times its size, and collected before it takes memory again.
	hugeRow = 16 << 20
	// longRow is the length from which on the tokens of a row that is held as runs go to
	// the file without another copy of them.
	longRow = 1 << 20
)

// Spool keeps rows of groups whose turn to be written has not come.
type Spool struct {
	dir   string // of the temporary file, "" = the system's
	limit int64

	waiting []line // by group
	places  []*[pageRows]place
	used    int32           // places that were ever taken
	free    int32           // the first of those that wait to be taken again, by next
	rows    map[int32]*held // in memory, by place
	held    int64           // bytes of them
	row     []byte          // the row being stored
	names   []string        // that rows share

	file *os.File
	out  *bufio.Writer
	end  int64
}

// line says where the first and the last row of a group wait, if any does.
type line struct{ first, last int32 }

// place is where a row waits in the file, unless all of it is in memory, and which place
// comes next in its group. A million rows may wait: places are small and hold no pointers,
// which the collector would follow over and over. Place 0 stands for none.
type place struct {
	at, size int64
	next     int32
}

func (s *Spool) place(k int32) *place { return &s.places[k/pageRows][k%pageRows] }

// pageRows is for how many rows places are made at once.
const pageRows = 1 << 8

// held is what of a row is in memory: all its bytes, or of one that is held as runs all
// but its tokens.
type held struct {
	bytes  []byte
	runs   *Row
	tokens int // of runs, in the file; log probabilities follow them
}

// New makes a spool that holds up to limit bytes in memory; what comes beyond waits in
// a temporary file in dir.
func New(dir string, limit int64) *Spool {
	return &Spool{dir: dir, limit: limit, rows: map[int32]*held{}}
}

// Add keeps rows of a group. Rows of a group come back in the order added. Groups are
// numbered from 0: up to the highest they take memory.
func (s *Spool) Add(group int, rows ...Row) error {
	for i := range rows {
		at, in, err := s.keep(&rows[i])
		if err != nil {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: rows[i].Rollout}, "rows that wait to be written cannot be kept: %w", err).
				WithFix("free space in the folder for temporary files (Pipeline.TempDir)")
		}
		s.line(group, at, in)
	}
	return nil
}

// line puts a row at the end of a group's line.
func (s *Spool) line(group int, at place, in *held) {
	k := s.free
	if k > 0 {
		s.free = s.place(k).next
	} else {
		s.used++
		if k = s.used; int(k)/pageRows == len(s.places) {
			s.places = append(s.places, new([pageRows]place))
		}
	}
	*s.place(k) = at
	if in != nil {
		s.rows[k] = in
	}
	if n := group + 1 - len(s.waiting); n > 0 {
		s.waiting = append(s.waiting, make([]line, n)...)
	}
	l := &s.waiting[group]
	if l.first > 0 {
		s.place(l.last).next = k
	} else {
		l.first = k
	}
	l.last = k
}

func (s *Spool) keep(row *Row) (place, *held, error) {
	if len(row.Tokens) >= longRow {
		return s.keepRuns(row)
	}
	s.row = appendRow(s.row[:0], row, &s.names)
	n := int64(len(s.row))
	if s.held+n <= s.limit {
		s.held += n
		return place{}, &held{bytes: bytes.Clone(s.row)}, nil
	}
	if err := s.open(); err != nil {
		return place{}, nil, err
	}
	_, err := s.out.Write(s.row)
	s.end += n
	s.dropRow()
	return place{at: s.end - n, size: n}, nil, err
}

// keepRuns writes the tokens of a row to the file and holds the rest.
func (s *Spool) keepRuns(row *Row) (place, *held, error) {
	if err := s.open(); err != nil {
		return place{}, nil, err
	}
	bare := *row
	bare.Tokens, bare.Logprobs = nil, nil
	at := place{at: s.end, size: 4 * int64(len(row.Tokens)+len(row.Logprobs))}
	var b [4]byte
	for _, id := range row.Tokens {
		binary.LittleEndian.PutUint32(b[:], uint32(id))
		_, _ = s.out.Write(b[:]) // it keeps its error
	}
	for _, lp := range row.Logprobs {
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(lp))
		_, _ = s.out.Write(b[:])
	}
	s.end += at.size
	_, err := s.out.Write(nil)
	return at, &held{runs: &bare, tokens: len(row.Tokens)}, err
}

func (s *Spool) open() error {
	if s.file != nil {
		return nil
	}
	f, err := os.CreateTemp(s.dir, "turnpack-rows-*")
	if err != nil {
		return err
	}
	_ = os.Remove(f.Name()) // where that is allowed, a killed run leaves nothing; else Close does it
	s.file, s.out = f, bufio.NewWriterSize(f, 1<<20)
	return nil
}

// Each gives the rows of a group in order and forgets them.
func (s *Spool) Each(group int, emit func(Row) error) error {
	if group >= len(s.waiting) {
		return nil
	}
	k := s.waiting[group].first
	s.waiting[group] = line{}
	for k > 0 {
		at, in := *s.place(k), s.rows[k]
		delete(s.rows, k)
		s.place(k).next, s.free = s.free, k
		row, err := s.load(at, in)
		if err != nil {
			return rollout.Errorf(rollout.KindInput, rollout.Where{}, "rows that waited to be written cannot be read back: %w", err).
				WithFix("leave the folder for temporary files alone while a run lasts")
		}
		if err := emit(row); err != nil {
			return err
		}
		k = at.next
	}
	return nil
}

func (s *Spool) load(at place, in *held) (Row, error) {
	if in != nil && in.runs == nil {
		s.held -= int64(len(in.bytes))
		return loadRow(in.bytes, &s.names)
	}
	if err := s.out.Flush(); err != nil {
		return Row{}, err
	}
	if at.size > hugeRow {
		runtime.GC()
	}
	if in != nil {
		return s.loadRuns(at, in)
	}
	if int64(cap(s.row)) < at.size {
		s.row = make([]byte, at.size)
	}
	b := s.row[:at.size]
	if _, err := s.file.ReadAt(b, at.at); err != nil {
		return Row{}, err
	}
	defer s.dropRow()
	return loadRow(b, &s.names)
}

func (s *Spool) loadRuns(at place, in *held) (Row, error) {
	row := *in.runs
	row.Tokens = make([]rollout.TokenID, in.tokens)
	if row.Logprob != nil {
		row.Logprobs = make([]float32, int(at.size/4)-in.tokens)
	}
	block := make([]byte, 1<<20)
	var err error
	read := func(n int, put func(i int, v uint32)) {
		for i := 0; i < n && err == nil; {
			b := block[:min(len(block), 4*(n-i))]
			_, err = s.file.ReadAt(b, at.at)
			at.at += int64(len(b))
			for k := 0; k < len(b); k += 4 {
				put(i, binary.LittleEndian.Uint32(b[k:]))
				i++
			}
		}
	}
	read(len(row.Tokens), func(i int, v uint32) { row.Tokens[i] = rollout.TokenID(v) })
	read(len(row.Logprobs), func(i int, v uint32) { row.Logprobs[i] = math.Float32frombits(v) })
	return row, err
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
