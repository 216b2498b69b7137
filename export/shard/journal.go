package shard

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/keys"
	"github.com/turnpack/turnpack/rollout"
)

// journal tells which rollouts are in the shards that are done, and what their maker
// wants to know of them. An entry is durable before the progress file names its shard.
// What is kept of a rollout stays in the file: memory holds where.
type journal struct {
	file    *os.File
	entries []byte                // not yet written
	known   keys.Table[knownFrom] // of an earlier run
}

// knownFrom is what an earlier run told of a rollout: where the file has what was kept of it,
// if the size is not 0, and the shard that holds its rows, counted from 1. A shard may also be
// one of these.
type knownFrom struct {
	at    int64
	size  uint32
	shard int32
}

const (
	anyShard = 0  // not done: an entry of the shard follows when it is
	noShard  = -1 // the rollout has no rows
)

// maxEntries is how many bytes of entries wait in memory.
const maxEntries = 64 << 10

// entryHead is how an entry begins: its checksum and the size of what follows.
const entryHead = 8

// appendEntry appends an entry: the shard, the names of group and rollout, and what is kept.
func appendEntry(dst []byte, shard int, group, id string, kept []byte) []byte {
	from := len(dst)
	dst = binary.AppendVarint(append(dst, make([]byte, entryHead)...), int64(shard))
	dst = append(binary.AppendUvarint(dst, uint64(len(group))), group...)
	dst = append(binary.AppendUvarint(dst, uint64(len(id))), id...)
	dst = append(dst, kept...)
	text := dst[from+entryHead:]
	binary.LittleEndian.PutUint32(dst[from:], crc32.Checksum(text, castagnoli))
	binary.LittleEndian.PutUint32(dst[from+4:], uint32(len(text)))
	return dst
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// entry is one that was read. Its names and what is kept are read over by the next.
type entry struct {
	shard       int
	group, id   []byte
	at, keptEnd int64 // of what is kept, in the file
}

// readEntries gives the entries of f, of size bytes, up to the first that is not whole, and
// returns how many bytes they take.
func readEntries(f io.Reader, size int64, each func(*entry)) (whole int64) {
	r := bufio.NewReaderSize(f, 1<<16)
	head, text := make([]byte, entryHead), []byte(nil)
	for {
		if _, err := io.ReadFull(r, head); err != nil {
			return whole
		}
		n := int64(binary.LittleEndian.Uint32(head[4:]))
		end := whole + entryHead + n
		if end > size {
			return whole
		}
		if int64(cap(text)) < n {
			text = make([]byte, n)
		}
		text = text[:n]
		if _, err := io.ReadFull(r, text); err != nil || crc32.Checksum(text, castagnoli) != binary.LittleEndian.Uint32(head) {
			return whole
		}
		shard, k := binary.Varint(text)
		if k <= 0 || shard < noShard {
			return whole
		}
		e := entry{shard: int(shard), keptEnd: end}
		rest := text[k:]
		for _, name := range []*[]byte{&e.group, &e.id} {
			n, k := binary.Uvarint(rest)
			if k <= 0 || n > uint64(len(rest)-k) {
				return whole
			}
			*name, rest = rest[k:k+int(n)], rest[k+int(n):]
		}
		e.at = end - int64(len(rest))
		each(&e)
		whole = end
	}
}

// Holds says whether Kept gives something for a rollout.
func (s *Set) Holds(rollout string) bool {
	k, _ := s.journal.known.Of(rollout)
	return k.size > 0 && k.shard != anyShard
}

// Kept returns what Keep was given for a rollout whose rows an earlier run has
// written: they need not be made again, and are passed over when they come. nil means
// that they must be made. It may be called from several goroutines, until Write.
func (s *Set) Kept(rollout string) []byte {
	if !s.Holds(rollout) {
		return nil
	}
	k, _ := s.journal.known.Of(rollout)
	value := make([]byte, k.size)
	if _, err := s.journal.file.ReadAt(value, k.at); err != nil {
		return []byte{} // its maker tells it from what it gave
	}
	return value
}

// Keep gives what Kept will return in a later run once the rows of the rollout are in
// a shard that is done, or at once where it has none: bytes of the maker's own, none when the
// rows must be made again. It comes before the rows.
func (s *Set) Keep(rollout string, rows int, value []byte) error {
	if s.opts.Source == "" || len(value) == 0 && rows == 0 {
		return nil
	}
	shard := anyShard
	if rows == 0 {
		shard = noShard
	}
	j := &s.journal
	j.entries = appendEntry(j.entries, shard, "", rollout, value)
	if len(j.entries) < maxEntries {
		return nil
	}
	return j.flush()
}

// State is what SetState was given by an earlier run that this one goes on from, nil
// for none.
func (s *Set) State() []byte {
	if s.opts.Source == "" || s.lock == nil {
		return nil
	}
	text, err := os.ReadFile(s.path(stateName))
	if err != nil {
		return nil // it is made again
	}
	return text
}

// SetState keeps what a later run needs besides the rows, durably, until the set is
// complete: a value of the maker's own. Without a Source it does nothing.
func (s *Set) SetState(value []byte) error {
	if s.opts.Source == "" || s.lock == nil || s.done {
		return nil
	}
	return atomic.WriteFile(s.path(stateName), value, true)
}

// flush hands the entries to the file.
func (j *journal) flush() error {
	if j.file == nil {
		return nil
	}
	_, err := j.file.Write(j.entries)
	j.entries = j.entries[:0]
	return j.located(err)
}

// sync makes the entries durable.
func (j *journal) sync() error {
	if j.file == nil {
		return nil
	}
	if err := j.flush(); err != nil {
		return err
	}
	return j.located(j.file.Sync())
}

func (j *journal) located(err error) error {
	if err != nil {
		return atomic.Locate(rollout.Where{File: j.file.Name()}, err)
	}
	return nil
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// openJournal reads the journal of the run that this one goes on from. Where it tells
// of every rollout in the shards that are done, those are not asked for again; else
// it begins anew, and rows are compared.
func (s *Set) openJournal() error {
	if s.opts.Source == "" {
		return nil
	}
	path := s.path(journalName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return atomic.Locate(rollout.Where{File: path}, err)
	}
	s.journal.file = f
	whole, err := s.readJournal()
	if err == nil {
		err = f.Truncate(whole)
	}
	if err == nil {
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err != nil {
		return atomic.Locate(rollout.Where{File: path}, err)
	}
	return nil
}

// readJournal returns where the next entry goes.
func (s *Set) readJournal() (int64, error) {
	j := &s.journal
	is, err := j.file.Stat()
	if err != nil || s.resumed == 0 {
		return 0, err
	}
	rollouts := make([]int, s.resumed) // by shard
	whole := readEntries(j.file, is.Size(), func(e *entry) {
		if e.shard > s.resumed {
			return // made again
		}
		id := string(e.id)
		known, _ := j.known.Of(id)
		switch {
		case e.shard <= anyShard:
			known.at, known.size = e.at, uint32(e.keptEnd-e.at)
			if known.shard <= anyShard {
				known.shard = int32(e.shard)
			}
		case known.shard != int32(e.shard):
			known.shard = int32(e.shard)
			rollouts[e.shard-1]++
			s.seen.Add(s.key("r", id), struct{}{})
			s.seen.Add(s.key("g", string(e.group)), struct{}{})
		}
		j.known.Set(id, known)
	})
	for i, n := range rollouts {
		if n != s.progress.Shards[i].Rollouts {
			j.known, s.seen = keys.Table[knownFrom]{}, keys.Table[struct{}]{}
			return 0, nil
		}
	}
	s.next = s.resumed
	if c := export.ColumnsNamed(s.progress.Columns); s.columns == nil && s.opts.Maker == nil {
		s.columns = &c
	}
	return whole, nil
}

// past says whether the rows of a rollout are in a shard that an earlier run has finished.
func (j *journal) past(rollout string) bool {
	k, _ := j.known.Of(rollout)
	return k.shard > 0
}

// enter adds the last rollout of the open shard to its entries.
func (s *Set) enter(c *current) {
	if s.opts.Source != "" {
		c.entries = appendEntry(c.entries, s.next+1, c.last.group, c.last.rollout, nil)
	}
}

// record hands the entries of a shard that is done to the journal.
func (s *Set) record(c *current) error {
	if s.opts.Source == "" {
		return nil
	}
	s.journal.entries = append(s.journal.entries, c.entries...)
	return s.journal.sync()
}

// member is a rollout of the open shard.
type member struct{ group, rollout string }
