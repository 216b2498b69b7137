// Package segment reads and frames the files of a journal: numbered segments of records, each with a checksum.
//
// A segment is a head and records. The head is magic, version and number of the
// segment, each in four bytes, little-endian. A record is
//
//	4 bytes  mark
//	4 bytes  length of the body, little-endian
//	4 bytes  CRC-32C of segment, offset of the record, length and body
//	body
//
// The checksum covers the place, so that a copy of a record inside another one (the output of a tool that
// printed a journal) is not valid.
package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// Extension is the suffix of segments' file names.
const Extension = ".tpj"

// ErrRemoved: the segment no longer exists.
var ErrRemoved = errors.New("the segment was removed")

// Place is where a record begins; the zero value is no place.
type Place struct {
	Segment int
	Offset  int64
	Part    int // 1-based index in a record that holds several; 0 = the record itself
}

// Path returns the path of segment n in folder dir.
func Path(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("%08d%s", n, Extension)) }

// FrameHead is the size of the frame before the body of a record; HeadSize is the size of the head of a
// segment.
const (
	FrameHead = 12
	HeadSize  = 12
)

const (
	segmentMagic   = "TPJ\x01"
	segmentVersion = 1
	frameMark      = "\x89tpr"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// HeadOf returns the head of a segment.
func HeadOf(segment int) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(segmentMagic), segmentVersion)
	return binary.LittleEndian.AppendUint32(b, uint32(segment))
}

func sum(at Place, body []byte) uint32 {
	var head [20]byte
	binary.LittleEndian.PutUint64(head[:], uint64(at.Segment))
	binary.LittleEndian.PutUint64(head[8:], uint64(at.Offset))
	binary.LittleEndian.PutUint32(head[16:], uint32(len(body)))
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, body)
}

// Seal fills in the frame of a record.
func Seal(frame []byte, at Place) {
	body := frame[FrameHead:]
	copy(frame, frameMark)
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(body)))
	binary.LittleEndian.PutUint32(frame[8:], sum(at, body))
}

// unseal returns the body of the record at the beginning of b, nil if there is no intact record.
func unseal(b []byte, at Place) []byte {
	if len(b) < FrameHead || string(b[:4]) != frameMark {
		return nil
	}
	n := uint64(binary.LittleEndian.Uint32(b[4:]))
	if n == 0 || n > uint64(len(b)-FrameHead) {
		return nil
	}
	body := b[FrameHead : FrameHead+int(n)]
	if sum(at, body) != binary.LittleEndian.Uint32(b[8:]) {
		return nil
	}
	return body
}

// List returns the numbers of the segments in a folder, ascending. A missing one is an error.
func List(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, atomic.Locate(rollout.Where{File: dir}, err)
	}
	var out []int
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), Extension)
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n < 1 || filepath.Base(Path(dir, n)) != e.Name() {
			continue
		}
		out = append(out, n)
	}
	slices.Sort(out)
	for i, n := range out {
		if n != out[0]+i {
			return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{File: Path(dir, n)}, "the segment before it is missing").WithFix("put %s back", filepath.Base(Path(dir, n-1)))
		}
	}
	return out, nil
}

// ScanOne calls each for the records of a segment in order, and returns the offset after the last intact record
// and the size of the file. Bytes after it are a torn end if the segment is the last one and no intact record
// follows, and an error of damage otherwise.
func ScanOne(dir string, n int, last bool, each func(at Place, body []byte) error) (end, size int64, err error) {
	path := Path(dir, n)
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, atomic.Locate(rollout.Where{File: path}, err)
	}
	defer func() { _ = f.Close() }()
	return scan(f, n, last, each)
}

func scan(f *os.File, n int, last bool, each func(at Place, body []byte) error) (end, size int64, err error) {
	path := f.Name()
	text, err := io.ReadAll(f)
	if err != nil {
		return 0, 0, atomic.Locate(rollout.Where{File: path}, err)
	}
	size = int64(len(text))
	if head := HeadOf(n); !bytes.HasPrefix(text, head) {
		if last && (bytes.HasPrefix(head, text) || len(bytes.Trim(text, "\x00")) == 0) {
			return 0, size, nil
		}
		return 0, size, rollout.Errorf(rollout.KindFormat, rollout.Where{File: path, Byte: rollout.At(0)}, "expected the head of segment %d of a journal, version %d", n, segmentVersion).
			WithFix("restore the file from a copy; this one is left as it is")
	}
	for end = HeadSize; end < size; {
		at := Place{Segment: n, Offset: end}
		body := unseal(text[end:], at)
		if body == nil {
			break
		}
		if each != nil {
			if err := each(at, body); err != nil {
				return end, size, rollout.In(err, rollout.Where{File: path, Byte: rollout.At(int(end))})
			}
		}
		end += int64(FrameHead + len(body))
	}
	if end == size {
		return end, size, nil
	}
	later := nextWhole(text, n, end+1)
	if last && later < 0 {
		return end, size, nil
	}
	what := "the record is damaged"
	if later >= 0 {
		what += "; whole ones follow at byte " + strconv.FormatInt(later, 10)
	}
	return end, size, rollout.Errorf(rollout.KindFormat, rollout.Where{File: path, Byte: rollout.At(int(end))}, "%s", what).WithFix("restore the file from a copy; this one is left as it is")
}

// nextWhole returns the offset of the next intact record, −1 if there is none.
func nextWhole(text []byte, n int, from int64) int64 {
	for {
		i := bytes.Index(text[from:], []byte(frameMark))
		if i < 0 {
			return -1
		}
		from += int64(i)
		if unseal(text[from:], Place{Segment: n, Offset: from}) != nil {
			return from
		}
		from++
	}
}

// Scan calls each for the records of all segments of a folder in order. The records are those of one moment,
// even if another process writes and removes segments.
func Scan(dir string, each func(at Place, body []byte) error) error {
	segments, files, err := openAll(dir)
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for i, n := range segments {
		if err != nil {
			break
		}
		_, _, err = scan(files[i], n, i == len(segments)-1, each)
	}
	return err
}

// openAll opens all segments, so that they can be read even if they are removed meanwhile.
func openAll(dir string) (segments []int, files []*os.File, err error) {
	for range 100 { // each repetition means that a segment was removed meanwhile
		if segments, err = List(dir); err != nil {
			return nil, nil, err
		}
		for _, n := range segments {
			var f *os.File
			if f, err = os.Open(Path(dir, n)); err != nil {
				break
			}
			files = append(files, f)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		for _, f := range files {
			_ = f.Close()
		}
		files = nil
	}
	if err != nil {
		err = atomic.Locate(rollout.Where{File: dir}, err)
	}
	return segments, files, err
}

// Read returns the body of the record at that place.
func Read(dir string, at Place) ([]byte, error) {
	path := Path(dir, at.Segment)
	where := rollout.Where{File: path, Byte: rollout.At(int(at.Offset))}
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &rollout.Error{Kind: rollout.KindInput, Where: where, Msg: "the segment was removed: its sessions are delivered", Err: ErrRemoved}
		}
		return nil, atomic.Locate(where, err)
	}
	defer func() { _ = f.Close() }()
	text := make([]byte, FrameHead)
	if _, err = f.ReadAt(text, at.Offset); err == nil {
		text, err = io.ReadAll(io.NewSectionReader(f, at.Offset, FrameHead+int64(binary.LittleEndian.Uint32(text[4:]))))
	}
	if err != nil {
		return nil, atomic.Locate(where, err)
	}
	if body := unseal(text, at); body != nil {
		return body, nil
	}
	return nil, rollout.Errorf(rollout.KindFormat, where, "the record is no longer what it was").WithFix("no other program may write the journal")
}
