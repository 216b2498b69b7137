// Package log is the writer of a journal: it assigns places to records, writes queued records together, and
// makes them durable with one fsync. New work waits only for the write, which outlives the process; a reply
// waits for the fsync, which covers everything written before it.
package log

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// ErrUnavailable is the cause of all errors of a log that cannot record.
var ErrUnavailable = errors.New("the journal cannot record")

// Options configures Open. All fields are required.
type Options struct {
	MaxDelay     time.Duration
	SegmentBytes int64
	MaxQueued    int64
	Open         func(path string) (File, error)
}

// Stats describes the contents and activity of a log.
type Stats struct {
	Segments                            int
	Bytes, Records, Syncs, Queued, Torn int64
}

// File holds the file operations that a log needs.
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
	later          *time.Timer   // wakes the commit loop after MaxLag
	armed          bool          // later is running
	queue          []queued      // not yet written, in order
	round          *Ticket       // of the records that no commit has taken
	used           bool          // round has records
	unsynced       int64         // bytes written and not known to be durable
	next           segment.Place // where the next record goes
	first, written int           // segment numbers: the oldest, and that of the last durable record
	sizes          map[int]int64
	stats          Stats
	fault          error // permanent
	full           error // no space; the queue is retried
	closing        bool
	done           chan struct{}

	writing sync.Mutex // held to write; locked before mu
	file    File       // replaced only by the commit loop
	number  int        // segment number of file
	end     int64      // size of what is written to file
	durable int64      // durable size of file; used by the commit loop only
	buf     []byte     // reused by write
	spare   []queued   // reused as the next queue
}

type queued struct {
	at    segment.Place
	frame []byte
}

// Ticket is done when the records of a group are durable, or never will be.
type Ticket struct {
	done chan struct{}
	err  error
	log  *Log
	full chan struct{} // closed if the group had to wait for space
	told bool          // full is closed
}

// Wait returns when the records are durable. The records are still written if ctx ends first.
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

// WaitNew returns when the records are written, by the calling goroutine if nobody else writes them; they are
// durable within MaxLag. It returns an error instead of waiting for space on the disk.
func (t *Ticket) WaitNew(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.log.writing.Lock()
	err := t.log.flush(false)
	t.log.writing.Unlock()
	if err == nil {
		return nil
	}
	t.log.poke() // the commit loop handles the error
	select {
	case <-t.full:
		if err := t.log.Err(); err != nil {
			return err
		}
		return t.Wait(ctx) // there is space again
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

// Open opens or creates the journal in folder dir and locks it against other processes. A torn end, as left by
// a killed process, is cut off; damage before the end is a KindFormat error with file and byte offset, and
// changes nothing.
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
	j.later = time.AfterFunc(time.Hour, j.poke)
	j.later.Stop()
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
	j.end, j.durable = j.next.Offset, j.next.Offset
	return nil
}

// begin writes the head of segment n durably.
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

// Enqueue queues a record, whose first FrameHead bytes are free for the frame, and returns its place and the
// Ticket to wait for. New work is refused while MaxQueued bytes are queued or the disk is full.
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
		e := rollout.Errorf(rollout.KindLimit, rollout.Where{Field: "MaxQueued"}, "%d bytes wait for the disk, at most %d may", j.stats.Queued, j.opts.MaxQueued)
		e.Err = ErrUnavailable
		return segment.Place{}, nil, e.WithFix("raise live.JournalOptions.MaxQueued, or ask for less")
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
	j.used = true
	if !newWork {
		j.nudge()
	} else if !j.armed {
		j.armed = true
		j.later.Reset(MaxLag)
	}
	return at, j.round, nil
}

// MaxLag is the delay after which written new work is fsynced.
const MaxLag = 5 * time.Millisecond

// nudge wakes the commit loop. The caller holds mu.
func (j *Log) nudge() {
	if j.closing {
		return
	}
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func (j *Log) poke() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.nudge()
}

// Durable returns the segment of the last durable record.
func (j *Log) Durable() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written
}

// Retire removes the segments before the given one.
func (j *Log) Retire(before int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	for ; j.first < before; j.first++ {
		if err := os.Remove(segment.Path(j.dir, j.first)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, atomic.Locate(rollout.Where{File: segment.Path(j.dir, j.first)}, err))
			break // the segments that remain must be contiguous
		}
		delete(j.sizes, j.first)
	}
	return errors.Join(errs...)
}

// Stats returns the current counts.
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

// Err returns why the journal cannot record now, nil while it can.
func (j *Log) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fault == nil {
		return j.full
	}
	return j.fault
}

// Close writes the queued records and closes the journal. A second Close does nothing.
func (j *Log) Close() error {
	j.mu.Lock()
	if j.closing || j.done == nil {
		j.mu.Unlock()
		return nil
	}
	j.closing = true
	j.later.Stop()
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
