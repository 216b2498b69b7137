// Package log is the writer of a journal: it gives records their places, and makes those
// that wait together durable at a time.
package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// ErrUnavailable is the cause of all errors of a log that cannot record.
var ErrUnavailable = errors.New("the journal cannot record")

// Options of Open, all given.
type Options struct {
	MaxDelay     time.Duration
	SegmentBytes int64
	MaxQueued    int64
	Open         func(path string) (File, error)
}

// Stats says what a log holds and did.
type Stats struct {
	Segments                            int
	Bytes, Records, Syncs, Queued, Torn int64
}

// File is what a log needs of a file.
type File interface {
	io.WriterAt
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Log is an open journal. Its methods are safe for concurrent use.
type Log struct {
	dir  string
	opts Options
	lock *os.File

	mu             sync.Mutex
	wake           chan struct{}
	queue          []queued
	buf            []byte        // room for what is written at a time, of the commit loop
	round          *Ticket       // of the records in queue
	next           segment.Place // where the next record goes
	first, written int           // segments: the first one, and that of the last durable record
	sizes          map[int]int64
	stats          Stats
	fault          error // sticky
	full           error // there is no room: what waits is tried again
	closing        bool
	done           chan struct{}

	file   File // the committer's
	number int  // of file
}

type queued struct {
	at    segment.Place
	frame []byte
}

// Ticket is closed when the records of a group are durable, or will never be.
type Ticket struct {
	done chan struct{}
	err  error
	log  *Log
	full chan struct{} // closed where it waits for room, or did
	told bool          // it is closed
}

// Wait returns when the records are durable. A context that ends it leaves them
// to be written all the same.
func (t *Ticket) Wait(ctx context.Context) error {
	if t == nil {
		return nil
	}
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WaitNew is Wait for new work, which is not left to wait for room on the disk.
func (t *Ticket) WaitNew(ctx context.Context) error {
	if t == nil {
		return nil
	}
	select {
	case <-t.full:
		if err := t.log.Err(); err != nil {
			return err
		}
		return t.Wait(ctx) // there is room again
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Ticket) Durable() bool {
	select {
	case <-t.done:
		return t.err == nil
	default:
		return false
	}
}

func (j *Log) newTicket() *Ticket {
	return &Ticket{log: j, done: make(chan struct{}), full: make(chan struct{})}
}

// Open opens or makes the journal in folder dir, which it locks against other
// processes. A torn end, as a killed process leaves it, is cut off; damage before the
// end is a KindFormat error with file and byte, and nothing is changed.
func Open(dir string, o Options) (*Log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, atomic.Locate(rollout.Where{File: dir}, err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, atomic.Locate(rollout.Where{File: dir}, err)
	}
	j := &Log{dir: dir, opts: o, lock: lock, wake: make(chan struct{}, 1), done: make(chan struct{}), sizes: map[int]int64{}}
	j.round = j.newTicket()
	if !atomic.Hold(lock) {
		return nil, errors.Join(unavailable(rollout.Where{File: dir}, "another process has the journal").WithFix("wait for it, or name another folder"), lock.Close())
	}
	if err := j.load(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	go j.commitLoop()
	return j, nil
}

// load checks all segments and opens the last one for writing.
func (j *Log) load() error {
	segments, err := segment.List(j.dir)
	if err != nil {
		return err
	}
	for i, s := range segments {
		end, size, err := segment.ScanOne(j.dir, s, i == len(segments)-1, nil)
		if err != nil {
			return err
		}
		j.sizes[s] = end
		j.next, j.stats.Torn = segment.Place{Segment: s, Offset: end}, size-end
	}
	if len(segments) == 0 {
		j.next = segment.Place{Segment: 1}
	}
	j.first = j.next.Segment
	if len(segments) > 0 {
		j.first = segments[0]
	}
	if j.file, err = j.opts.Open(segment.Path(j.dir, j.next.Segment)); err != nil {
		return atomic.Locate(rollout.Where{File: j.dir}, err)
	}
	j.number = j.next.Segment
	if j.stats.Torn > 0 {
		err = j.file.Truncate(j.next.Offset)
	}
	if err == nil && j.next.Offset == 0 {
		err = j.begin(j.file, j.number)
		j.next.Offset = segment.HeadSize
	}
	if err != nil {
		return errors.Join(atomic.Locate(rollout.Where{File: j.dir}, err), j.file.Close())
	}
	j.sizes[j.number], j.written = j.next.Offset, j.number
	return nil
}

// begin writes what a segment begins with, durably.
func (j *Log) begin(f File, n int) error {
	_, err := f.WriteAt(segment.HeadOf(n), 0)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = atomic.SyncDir(j.dir)
	}
	return err
}

// Enqueue takes a record, with room for its frame, and returns where it will stand and
// the Ticket to wait for. New work is refused while too much waits.
func (j *Log) Enqueue(frame []byte, newWork bool) (segment.Place, *Ticket, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.fault != nil:
		return segment.Place{}, nil, j.fault
	case j.closing:
		return segment.Place{}, nil, unavailable(rollout.Where{File: j.dir}, "the journal is closed")
	case newWork && j.full != nil:
		return segment.Place{}, nil, j.full
	case newWork && j.stats.Queued+int64(len(frame)) > j.opts.MaxQueued && j.stats.Queued > 0:
		e := rollout.Errorf(rollout.KindLimit, rollout.Where{Field: "MaxQueued"}, "%d bytes wait to be written, at most %d may", j.stats.Queued, j.opts.MaxQueued)
		e.Err = ErrUnavailable
		return segment.Place{}, nil, e.WithFix("raise Options.MaxQueued, or ask for less")
	}
	if j.next.Offset >= j.opts.SegmentBytes {
		j.next = segment.Place{Segment: j.next.Segment + 1, Offset: segment.HeadSize}
	}
	at := j.next
	j.next.Offset += int64(len(frame))
	j.sizes[at.Segment] = j.next.Offset
	j.queue = append(j.queue, queued{at, frame})
	j.stats.Queued += int64(len(frame))
	j.stats.Records++
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return at, j.round, nil
}

// commitLoop makes the records durable, those that wait together at a time.
func (j *Log) commitLoop() {
	defer close(j.done)
	for {
		_, open := <-j.wake
		if d := j.opts.MaxDelay; d > 0 && open {
			time.Sleep(d)
		}
		for j.commit() {
		}
		if !open {
			return
		}
	}
}

// commit writes what waits and reports whether there was anything.
func (j *Log) commit() bool {
	j.mu.Lock()
	group, round, err := j.queue, j.round, j.fault
	if len(group) == 0 {
		j.mu.Unlock()
		return false
	}
	j.queue, j.round = nil, j.newTicket()
	j.mu.Unlock()
	bytes := int64(0)
	for _, q := range group {
		bytes += int64(len(q.frame))
	}
	for rest := group; len(rest) > 0 && err == nil; {
		n := 1
		for n < len(rest) && rest[n].at.Segment == rest[0].at.Segment {
			n++
		}
		if err = j.write(rest[:n]); err == nil {
			rest = rest[n:]
		} else if noRoom(err) && j.waitRoom(err, round) {
			err = nil
		}
	}
	j.mu.Lock()
	j.stats.Queued -= bytes
	j.stats.Syncs++
	if j.full = nil; err == nil {
		j.written = group[len(group)-1].at.Segment
	}
	if err != nil && j.fault == nil {
		e := unavailable(rollout.Where{File: segment.Path(j.dir, group[0].at.Segment)}, "%w: %v", ErrUnavailable, err)
		j.fault = e.WithFix("make room or mend the disk and start again: what was recorded before is kept")
	}
	round.err = j.fault
	j.mu.Unlock()
	close(round.done)
	return true
}

// noRoom says that a write failed for want of room. After an fsync that failed nobody
// knows what the disk holds, so that one is none.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// waitRoom refuses new work and returns when it is time to try again, false where the
// journal is to be closed.
func (j *Log) waitRoom(err error, round *Ticket) bool {
	j.mu.Lock()
	e := unavailable(rollout.Where{File: j.dir}, "%w: %v", ErrUnavailable, err)
	j.full = e.WithFix("make room: what waits is written then")
	closing := j.closing
	for _, t := range []*Ticket{round, j.round} {
		if !t.told {
			t.told = true
			close(t.full)
		}
	}
	j.mu.Unlock()
	if !closing {
		time.Sleep(roomPause)
	}
	return !closing
}

// roomPause is how often a journal without room tries again.
const roomPause = 100 * time.Millisecond

// maxBuf is how much room for what is written at a time is kept.
const maxBuf = 1 << 20

// write makes records of one segment durable. What a failure leaves is cut off.
func (j *Log) write(group []queued) error {
	at := group[0].at
	if at.Segment != j.number {
		f, err := j.opts.Open(segment.Path(j.dir, at.Segment))
		if err != nil {
			return err
		}
		if err := j.begin(f, at.Segment); err != nil {
			return errors.Join(err, f.Close(), os.Remove(segment.Path(j.dir, at.Segment)))
		}
		if err := j.file.Close(); err != nil {
			return errors.Join(err, f.Close())
		}
		j.file, j.number = f, at.Segment
	}
	buf := j.buf[:0]
	for _, q := range group {
		segment.Seal(q.frame, q.at)
		buf = append(buf, q.frame...)
	}
	if cap(buf) <= maxBuf {
		j.buf = buf
	}
	_, err := j.file.WriteAt(buf, at.Offset)
	if err == nil {
		if err = j.file.Sync(); err != nil {
			err = fmt.Errorf("fsync: %v", err)
		}
	}
	if err != nil {
		err = errors.Join(err, j.file.Truncate(at.Offset))
	}
	return err
}

// Durable is the segment of the last durable record.
func (j *Log) Durable() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written
}

// Retire removes the segments before that one.
func (j *Log) Retire(before int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	for ; j.first < before; j.first++ {
		if err := os.Remove(segment.Path(j.dir, j.first)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, atomic.Locate(rollout.Where{File: segment.Path(j.dir, j.first)}, err))
			break // no later one goes before it
		}
		delete(j.sizes, j.first)
	}
	return errors.Join(errs...)
}

// Stats returns counts so far.
func (j *Log) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	s.Segments = len(j.sizes)
	for _, n := range j.sizes {
		s.Bytes += n
	}
	return s
}

// Err is why the journal cannot record any more, nil while it can.
func (j *Log) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fault == nil {
		return j.full
	}
	return j.fault
}

// Close writes what waits and ends the journal. A second Close does nothing.
func (j *Log) Close() error {
	j.mu.Lock()
	if j.closing || j.done == nil {
		j.mu.Unlock()
		return nil
	}
	j.closing = true
	close(j.wake)
	j.mu.Unlock()
	<-j.done
	return errors.Join(j.Err(), j.file.Close(), j.lock.Close())
}

const lockName = ".lock"

func unavailable(where rollout.Where, format string, args ...any) *rollout.Error {
	e := rollout.Errorf(rollout.KindInput, where, format, args...)
	e.Err = ErrUnavailable
	return e
}
