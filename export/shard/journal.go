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

// journal records which rollouts are in the finished shards, and the caller's value for each
// (see Keep). An entry is durable before the progress file names its shard. The values stay in
// the file; memory holds their positions.
type journal struct {
	file    *os.File
	entries []byte                // not written yet
	known   keys.Table[knownFrom] // entries of earlier runs, by rollout
}

// knownFrom is what the journal of an earlier run says about a rollout: the position and size
// of the value in the file (size 0 = none), and the shard that holds the rows, counted from 1,
// or one of the constants below.
type knownFrom struct {
	at    int64
	size  uint32
	shard int32
}

const (
	anyShard = 0  // not finished: when it is, an entry with the shard's number follows
	noShard  = -1 // the rollout has no rows
)

// entryHead is the size of an entry's head: the checksum and the size of the rest.
const entryHead = 8

// appendEntry appends an entry: the shard, the ids of group and rollout, and the value.
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

// entry is an entry as read. Its ids are valid until the next entry is read.
type entry struct {
	shard       int
	group, id   []byte
	at, keptEnd int64 // start and end of the value in the file
}

// readEntries calls each for the entries of f, which holds size bytes, up to the first
// incomplete or damaged one, and returns the size of the intact part.
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
		e := entry{shard: int(shard), keptEnd: end}
		rest := text[k:]
		for _, name := range []*[]byte{&e.group, &e.id} {
			n, k := binary.Uvarint(rest)
			*name, rest = rest[k:k+int(n)], rest[k+int(n):]
		}
		e.at = end - int64(len(rest))
		each(&e)
		whole = end
	}
}

// Holds reports whether Kept returns a value for a rollout.
func (s *Set) Holds(rollout string) bool {
	k, _ := s.journal.known.Of(rollout)
	return k.size > 0 && k.shard != anyShard
}

// Kept returns the value that Keep stored for a rollout whose rows an earlier run has written:
// the caller need not make them again, and Write skips them. nil means that they must be made.
// It is safe for concurrent use until the first Write.
func (s *Set) Kept(rollout string) []byte {
	if !s.Holds(rollout) {
		return nil
	}
	k, _ := s.journal.known.Of(rollout)
	value := make([]byte, k.size)
	if _, err := s.journal.file.ReadAt(value, k.at); err != nil {
		return []byte{} // not a valid value for the caller, who makes the rows again
	}
	return value
}

// Keep stores a value that Kept returns in a later run once the rows of the rollout are in a
// finished shard, or at once if rows is 0. An empty value means that the rows must be made
// again. Call it before writing the rows.
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
	return j.flush()
}

// State returns the value that SetState stored in the earlier run that this one resumes, or nil
// if there is none.
func (s *Set) State() []byte {
	if s.opts.Source == "" || s.lock == nil {
		return nil
	}
	text, err := os.ReadFile(s.path(stateName))
	if err != nil {
		return nil // the caller makes it again
	}
	return text
}

// SetState stores a value of the caller's, durably, that a later run needs besides the rows. It
// is removed when the set is complete. Without Options.Source it does nothing.
func (s *Set) SetState(value []byte) error {
	if s.opts.Source == "" || s.lock == nil || s.done {
		return nil
	}
	return atomic.WriteFile(s.path(stateName), value, true)
}

// flush writes the pending entries to the file.
func (j *journal) flush() error {
	_, err := j.file.Write(j.entries)
	j.entries = j.entries[:0]
	return j.located(err)
}

// sync makes the pending entries durable.
func (j *journal) sync() error {
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

// openJournal reads the journal of the run that this one resumes. If it covers every rollout in
// the finished shards, their rows are not needed again. Otherwise the journal starts empty and
// rows are compared by checksum.
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

// readJournal returns the position of the next entry.
func (s *Set) readJournal() (int64, error) {
	j := &s.journal
	is, err := j.file.Stat()
	if err != nil || s.resumed == 0 {
		return 0, err
	}
	rollouts := make([]int, s.resumed) // by shard
	whole := readEntries(j.file, is.Size(), func(e *entry) {
		if e.shard > s.resumed {
			return // of an unfinished shard: its rows are made again
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

// finished reports whether an earlier run has written the rows of a rollout to a finished shard.
func (j *journal) finished(rollout string) bool {
	k, _ := j.known.Of(rollout)
	return k.shard > 0
}

// addEntry adds an entry for the last rollout of the current shard.
func (s *Set) addEntry(c *current) {
	if s.opts.Source != "" {
		c.entries = appendEntry(c.entries, s.next+1, c.last.group, c.last.rollout, nil)
	}
}

// saveEntries moves the entries of a finished shard to the journal and makes them durable.
func (s *Set) saveEntries(c *current) error {
	if s.opts.Source == "" {
		return nil
	}
	s.journal.entries = append(s.journal.entries, c.entries...)
	return s.journal.sync()
}

// member identifies a rollout of the current shard.
type member struct{ group, rollout string }
