package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// Stats counts the contents of a journal.
type Stats struct {
	Votes  int   // votes with a text, read or appended
	Failed int   // lines of votes without a text
	Torn   int64 // bytes removed from the end by Open
}

// Journal is an open journal. All methods are safe for concurrent use.
type Journal struct {
	path      string
	syncEvery int // number of votes after which an fsync starts

	mu    sync.Mutex
	file  *os.File
	fsync func() error // file.Sync, replaced by tests
	end   int64        // offset after the last whole line
	index map[digest]int64
	stats Stats
	// Number of votes appended through this Journal, and how many of them, counted from the first, are
	// on stable storage.
	appended, synced int
	fault            error // sticky
	shut             bool

	wake chan struct{}
	done chan struct{}
	idle sync.WaitGroup
}

// Open opens or creates the journal at path and locks it against other processes. It reads the whole
// file once.
func Open(path string) (*Journal, error) { return open(path, 256, 500*time.Millisecond) }

func open(path string, syncEvery int, syncInterval time.Duration) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "open the vote journal: %w", err)
	}
	j := &Journal{
		path: path, syncEvery: syncEvery, file: file, fsync: file.Sync, index: map[digest]int64{},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if err := j.load(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	j.idle.Add(1)
	go j.syncLoop(syncInterval)
	return j, nil
}

func (j *Journal) where() rollout.Where { return rollout.Where{File: j.path} }

func (j *Journal) load() error {
	if err := atomic.Lock(j.file); err != nil {
		return rollout.Errorf(rollout.KindInput, j.where(), "lock the vote journal: %w", err).WithFix("wait for the other process or use another file")
	}
	end, err := j.scan(bufio.NewReaderSize(j.file, 1<<20))
	if err != nil {
		return err
	}
	size, err := j.file.Seek(0, io.SeekEnd)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, j.where(), "%w", err)
	}
	j.stats.Torn = size - end
	if err := j.file.Truncate(end); err != nil {
		return rollout.Errorf(rollout.KindInput, j.where(), "cut off a torn end: %w", err)
	}
	if j.end = end; end > 0 {
		return nil
	}
	if err := j.write(appendLine(nil, fileHeader)); err != nil {
		return err
	}
	return j.file.Sync()
}

// scan reads the lines, fills the index and returns the offset after the last whole line.
func (j *Journal) scan(r *bufio.Reader) (end int64, err error) {
	var offset, bad int64 = 0, -1
	for line := 1; ; line++ {
		raw, rerr := r.ReadBytes('\n')
		if rerr != nil && rerr != io.EOF {
			return 0, rollout.Errorf(rollout.KindInput, j.where(), "%w", rerr)
		}
		if rerr == io.EOF {
			// A crash during the first write leaves a prefix of the header.
			if line == 1 && !bytes.HasPrefix(appendLine(nil, fileHeader), raw) {
				return 0, j.notAJournal()
			}
			return end, nil
		}
		body := parseLine(raw[:len(raw)-1])
		switch {
		case line == 1:
			var h header
			if json.Unmarshal(body, &h) != nil || h != fileHeader {
				return 0, j.notAJournal()
			}
		case body == nil:
			if bad < 0 {
				bad = offset
			}
		case bad >= 0:
			return 0, rollout.Errorf(rollout.KindFormat, rollout.Where{File: j.path, Byte: rollout.At(int(bad))},
				"the journal is damaged before line %d, where it goes on whole", line).WithFix("restore the file, or delete the damaged lines to ask for their votes again")
		default:
			if err := j.indexLine(body, offset, line); err != nil {
				return 0, err
			}
		}
		if offset += int64(len(raw)); bad < 0 {
			end = offset
		}
	}
}

func (j *Journal) notAJournal() error {
	return rollout.Errorf(rollout.KindFormat, rollout.Where{File: j.path, Line: 1}, "expected the header of a vote journal, version %d", fileHeader.Version).WithFix("name another file; this one is left as it is")
}

// indexLine adds a good line to the index.
func (j *Journal) indexLine(body []byte, offset int64, line int) error {
	var r Record
	if err := json.Unmarshal(body, &r); err != nil {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{File: j.path, Line: line}, "the line is whole but no vote: %w", err)
	}
	j.indexRecord(r, offset)
	return nil
}

func (j *Journal) indexRecord(r Record, offset int64) {
	if r.Error != "" {
		j.stats.Failed++
		return
	}
	d := r.clean().digest()
	if _, there := j.index[d]; !there {
		j.index[d] = offset
		j.stats.Votes++
	}
}

// Lookup returns the recorded vote with that key. A failed vote is not found, so that it is requested
// again.
func (j *Journal) Lookup(k Key) (Record, bool, error) {
	k = k.clean()
	j.mu.Lock()
	offset, ok := j.index[k.digest()]
	j.mu.Unlock()
	if !ok {
		return Record{}, false, nil
	}
	raw, err := bufio.NewReader(io.NewSectionReader(j.file, offset, 1<<62)).ReadBytes('\n')
	if err != nil {
		return Record{}, false, rollout.Errorf(rollout.KindInput, rollout.Where{File: j.path, Byte: rollout.At(int(offset))}, "read a vote back: %w", err)
	}
	var r Record
	body := parseLine(raw[:len(raw)-1])
	if json.Unmarshal(body, &r) != nil || r.Key != k {
		return Record{}, false, rollout.Errorf(rollout.KindFormat, rollout.Where{File: j.path, Byte: rollout.At(int(offset))}, "the line is no longer the vote it was").WithFix("no other program may write the journal while it is open")
	}
	return r, true, nil
}

// Append records all votes or none. After an error the file ends after its last whole line, or the
// journal returns an error for all further votes.
func (j *Journal) Append(records ...Record) error {
	var buf []byte
	offsets := make([]int64, len(records))
	for i, r := range records {
		offsets[i] = int64(len(buf))
		r.Key = r.clean()
		buf = appendLine(buf, r)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.shut {
		return rollout.Errorf(rollout.KindInput, j.where(), "the journal is closed")
	}
	if j.fault != nil {
		return j.fault
	}
	start := j.end
	if err := j.write(buf); err != nil {
		return err
	}
	for i, r := range records {
		j.indexRecord(r, start+offsets[i])
	}
	if j.appended += len(records); j.appended-j.synced >= j.syncEvery {
		select {
		case j.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// write appends whole lines, and removes a partial write if they do not all fit.
func (j *Journal) write(lines []byte) error {
	n, err := j.file.WriteAt(lines, j.end)
	if err == nil {
		j.end += int64(n)
		return nil
	}
	fault := rollout.Errorf(rollout.KindInput, j.where(), "append to the vote journal: %w", err).WithFix("make room and start again: the votes recorded so far are kept")
	if cut := j.file.Truncate(j.end); cut != nil {
		j.fault = fault
	}
	return fault
}

// Sync waits until every appended vote is on stable storage.
func (j *Journal) Sync() error {
	j.mu.Lock()
	if j.fault != nil || j.appended == j.synced {
		defer j.mu.Unlock()
		return j.fault
	}
	n := j.appended
	j.mu.Unlock()
	err := j.fsync()
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		// A failed fsync may have dropped the pages, and a later success does not cover them.
		j.fault = rollout.Errorf(rollout.KindInput, j.where(), "fsync the vote journal: %w", err)
		return j.fault
	}
	j.synced = max(j.synced, n) // of two concurrent calls, the one that ends later may have synced fewer
	return nil
}

// syncLoop syncs in batches. Its errors are kept and returned to the next caller.
func (j *Journal) syncLoop(interval time.Duration) {
	defer j.idle.Done()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-j.done:
			return
		case <-tick.C:
		case <-j.wake:
		}
		_ = j.Sync()
	}
}

// Stats returns the counts so far.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

// Close syncs and closes the file. A second Close does nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.shut || j.file == nil {
		j.mu.Unlock()
		return nil
	}
	j.shut = true
	j.mu.Unlock()
	close(j.done)
	j.idle.Wait()
	err := j.Sync()
	if cerr := j.file.Close(); cerr != nil {
		err = errors.Join(err, rollout.Errorf(rollout.KindInput, j.where(), "close the vote journal: %w", cerr))
	}
	return err
}
