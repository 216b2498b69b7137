package turnpack

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"

	"github.com/turnpack/turnpack/rollout"
)

// heldLimit is how many bytes of rows of later groups stay in memory; what
// comes beyond waits in a temporary file.
const heldLimit = 64 << 20

// spool keeps rows of groups whose turn to be written has not come.
type spool struct {
	dir   string // of the temporary file, "" = the system's
	limit int64

	held  map[int][]rollout.Sample
	bytes int64

	file  *os.File
	out   *bufio.Writer
	end   int64
	spans map[int][]span
}

// span is a stored row.
type span struct{ at, size int64 }

func newSpool(dir string, limit int64) *spool {
	return &spool{dir: dir, limit: limit, held: map[int][]rollout.Sample{}, spans: map[int][]span{}}
}

// add keeps rows of a group. Rows of a group come back in the order added.
func (s *spool) add(group int, rows []rollout.Sample) error {
	for i := range rows {
		// Once a group has stored rows, later ones must not overtake them.
		if s.bytes < s.limit && len(s.spans[group]) == 0 {
			s.held[group] = append(s.held[group], rows[i])
			s.bytes += rowBytes(&rows[i])
			continue
		}
		if err := s.store(group, &rows[i]); err != nil {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: rows[i].Sequence.Rollout}, "rows of groups that come interleaved cannot be kept: %w", err).
				WithFix("free space in the folder for temporary files, or sort the input by group")
		}
	}
	return nil
}

func rowBytes(s *rollout.Sample) int64 {
	per := int64(4 + 4 + 1 + 4)
	for _, c := range []bool{s.Logprob != nil, s.Version != nil, s.Weight != nil, s.Credit != nil} {
		if c {
			per += 4
		}
	}
	return per*int64(s.Len()) + 512
}

// each gives the rows of a group in order and forgets them.
func (s *spool) each(group int, emit func(rollout.Sample) error) error {
	for i := range s.held[group] {
		s.bytes -= rowBytes(&s.held[group][i])
		if err := emit(s.held[group][i]); err != nil {
			return err
		}
	}
	delete(s.held, group)
	if len(s.spans[group]) > 0 {
		if err := s.out.Flush(); err != nil {
			return err
		}
	}
	for _, at := range s.spans[group] {
		row, err := s.load(at)
		if err != nil {
			return err
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	delete(s.spans, group)
	return nil
}

// close removes the temporary file.
func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
}

// store appends one row: the length of its JSON head, the head, the columns.
func (s *spool) store(group int, row *rollout.Sample) error {
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "turnpack-rows-*")
		if err != nil {
			return err
		}
		s.file, s.out = f, bufio.NewWriterSize(f, 1<<20)
	}
	head := *row
	head.Sequence = rollout.Sequence{Identity: row.Identity}
	b, err := json.Marshal(stored{head, row.Len(), row.Logprob != nil, row.Version != nil, row.Weight != nil, row.Credit != nil})
	if err != nil {
		return err
	}
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(b)))
	n := int64(8 + len(b))
	s.out.Write(size[:])
	s.out.Write(b)
	for _, f := range row.Flags {
		s.out.WriteByte(byte(f))
	}
	n += int64(row.Len())
	for _, c := range columnsOf(&row.Sequence) {
		if err := binary.Write(s.out, binary.LittleEndian, c); err != nil {
			return err
		}
		n += int64(binary.Size(c))
	}
	s.spans[group] = append(s.spans[group], span{s.end, n})
	s.end += n
	return nil
}

// stored is the head of a stored row.
type stored struct {
	Row                                 rollout.Sample
	Len                                 int
	Logprob, Version, Weight, HasCredit bool
}

// columnsOf lists the columns of numbers that are there, in a fixed order.
func columnsOf(s *rollout.Sequence) []any {
	out := []any{s.IDs, s.Source, s.Turn}
	if s.Logprob != nil {
		out = append(out, s.Logprob)
	}
	if s.Version != nil {
		out = append(out, s.Version)
	}
	if s.Weight != nil {
		out = append(out, s.Weight)
	}
	if s.Credit != nil {
		out = append(out, s.Credit)
	}
	return out
}

func (s *spool) load(at span) (rollout.Sample, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(s.file, at.at, at.size), 1<<16)
	var size uint64
	if err := binary.Read(r, binary.LittleEndian, &size); err != nil {
		return rollout.Sample{}, err
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(r, b); err != nil {
		return rollout.Sample{}, err
	}
	var h stored
	if err := json.Unmarshal(b, &h); err != nil {
		return rollout.Sample{}, err
	}
	n := h.Len
	q := &h.Row.Sequence
	q.IDs, q.Source, q.Flags, q.Turn = make([]rollout.TokenID, n), make([]int32, n), make([]rollout.Flag, n), make([]int32, n)
	if h.Logprob {
		q.Logprob = make([]float32, n)
	}
	if h.Version {
		q.Version = make([]int32, n)
	}
	if h.Weight {
		q.Weight = make([]float32, n)
	}
	if h.HasCredit {
		q.Credit = make([]float32, n)
	}
	flags := make([]byte, n)
	if _, err := io.ReadFull(r, flags); err != nil {
		return rollout.Sample{}, err
	}
	for i, f := range flags {
		q.Flags[i] = rollout.Flag(f)
	}
	for _, c := range columnsOf(q) {
		if err := binary.Read(r, binary.LittleEndian, c); err != nil {
			return rollout.Sample{}, err
		}
	}
	return h.Row, nil
}
