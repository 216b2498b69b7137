package live

import (
	"cmp"
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

// JournalOptions of OpenJournal. The zero value is the right default.
type JournalOptions struct {
	// MaxDelay is how long a record waits for others to share its fsync, 0 to 5 ms.
	// With 0 a record is written at once, and those that come during its fsync share
	// the next one.
	MaxDelay time.Duration
	// SegmentBytes is the size at which the next file begins; 0 = 64 MiB.
	SegmentBytes int64
	// MaxQueued bounds the bytes that wait to be written, 0 = 64 MiB: beyond it no
	// new call begins, while the replies of those that run are taken.
	MaxQueued int64

	open func(path string) (segmentFile, error) // nil = a file, for tests of faults
}

// Validate reports all faults at once.
func (o JournalOptions) Validate() error {
	err := notNegative(map[string]int{"SegmentBytes": int(o.SegmentBytes), "MaxQueued": int(o.MaxQueued)})
	if o.MaxDelay < 0 || o.MaxDelay > 5*time.Millisecond {
		err = errors.Join(err, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "MaxDelay"}, "is %s, expected 0 to 5 ms", o.MaxDelay))
	}
	return err
}

// withDefaults fills in the defaults.
func (o JournalOptions) withDefaults() JournalOptions {
	o.SegmentBytes = cmp.Or(o.SegmentBytes, 64<<20)
	o.MaxQueued = cmp.Or(o.MaxQueued, 64<<20)
	if o.open == nil {
		o.open = func(path string) (segmentFile, error) { return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644) }
	}
	return o
}

// JournalStats says what a journal holds and did.
type JournalStats struct {
	Segments int   `json:"segments"` // files
	Bytes    int64 `json:"bytes"`    // of all files
	Records  int64 `json:"records"`  // written since it was opened
	Syncs    int64 `json:"syncs"`    // groups of records made durable
	Queued   int64 `json:"queued"`   // bytes that wait
	Torn     int64 `json:"torn"`     // bytes of an unfinished record cut off when it was opened
}

// segmentFile is what a journal needs of a file.
type segmentFile interface {
	io.WriterAt
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Journal is an open journal. Its methods are safe for concurrent use.
type Journal struct {
	dir  string
	opts JournalOptions
	lock *os.File

	mu             sync.Mutex
	taken          bool // a recorder has it
	wake           chan struct{}
	queue          []queued
	round          *ticket       // of the records in queue
	next           segment.Place // where the next record goes
	first, written int           // segments: the first one, and that of the last durable record
	sizes          map[int]int64
	stats          JournalStats
	fault          error // sticky
	closing        bool
	done           chan struct{}

	file   segmentFile // the committer's
	number int         // of file
}

type queued struct {
	at    segment.Place
	frame []byte
}

// ticket is closed when the records of a group are durable, or will never be.
type ticket struct {
	done chan struct{}
	err  error
}

// wait returns when the records are durable. A context that ends it leaves them
// to be written all the same.
func (t *ticket) wait(ctx context.Context) error {
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

func (t *ticket) durable() bool {
	select {
	case <-t.done:
		return t.err == nil
	default:
		return false
	}
}

func newTicket() *ticket { return &ticket{done: make(chan struct{})} }

// OpenJournal opens or makes the journal in folder dir, which it locks against other
// processes. A torn end, as a killed process leaves it, is cut off; damage before the
// end is a KindFormat error with file and byte, and nothing is changed.
func OpenJournal(dir string, o JournalOptions) (*Journal, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, atomic.Locate(rollout.Where{File: dir}, err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, atomic.Locate(rollout.Where{File: dir}, err)
	}
	j := &Journal{dir: dir, opts: o, lock: lock, wake: make(chan struct{}, 1), round: newTicket(), done: make(chan struct{}), sizes: map[int]int64{}}
	if !atomic.Hold(lock) {
		return nil, errors.Join(input(ErrUnavailable, rollout.Where{File: dir}, "another process has the journal").WithFix("wait for it, or name another folder"), lock.Close())
	}
	if err := j.load(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	go j.commitLoop()
	return j, nil
}

// load checks all segments and opens the last one for writing.
func (j *Journal) load() error {
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
	if j.file, err = j.opts.open(segment.Path(j.dir, j.next.Segment)); err != nil {
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
func (j *Journal) begin(f segmentFile, n int) error {
	_, err := f.WriteAt(segment.HeadOf(n), 0)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = atomic.SyncDir(j.dir)
	}
	return err
}

// enqueue takes a record, with room for its frame, and returns where it will stand and
// the ticket to wait for. New work is refused while too much waits.
func (j *Journal) enqueue(frame []byte, newWork bool) (segment.Place, *ticket, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.fault != nil:
		return segment.Place{}, nil, j.fault
	case j.closing:
		return segment.Place{}, nil, input(ErrUnavailable, rollout.Where{File: j.dir}, "the journal is closed")
	case newWork && j.stats.Queued+int64(len(frame)) > j.opts.MaxQueued && j.stats.Queued > 0:
		e := limit("MaxQueued", "%d bytes wait to be written, at most %d may", j.stats.Queued, j.opts.MaxQueued)
		e.Err = ErrUnavailable
		return segment.Place{}, nil, e
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
func (j *Journal) commitLoop() {
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
func (j *Journal) commit() bool {
	j.mu.Lock()
	group, round, err := j.queue, j.round, j.fault
	if len(group) == 0 {
		j.mu.Unlock()
		return false
	}
	j.queue, j.round = nil, newTicket()
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
		err = j.write(rest[:n])
		rest = rest[n:]
	}
	j.mu.Lock()
	j.stats.Queued -= bytes
	j.stats.Syncs++
	if err == nil {
		j.written = group[len(group)-1].at.Segment
	}
	if err != nil && j.fault == nil {
		e := input(ErrUnavailable, rollout.Where{File: segment.Path(j.dir, group[0].at.Segment)}, "%w: %v", ErrUnavailable, err)
		j.fault = e.WithFix("make room or mend the disk and start again: what was recorded before is kept")
	}
	round.err = j.fault
	j.mu.Unlock()
	close(round.done)
	return true
}

// write makes records of one segment durable. What a failure leaves is cut off.
func (j *Journal) write(group []queued) error {
	at := group[0].at
	if at.Segment != j.number {
		f, err := j.opts.open(segment.Path(j.dir, at.Segment))
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
	var buf []byte
	for _, q := range group {
		segment.Seal(q.frame, q.at)
		buf = append(buf, q.frame...)
	}
	_, err := j.file.WriteAt(buf, at.Offset)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		err = errors.Join(err, j.file.Truncate(at.Offset))
	}
	return err
}

// durable is the segment of the last durable record.
func (j *Journal) durable() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written
}

// retire removes the segments before that one.
func (j *Journal) retire(before int) error {
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
func (j *Journal) Stats() JournalStats {
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
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fault
}

// Close writes what waits and ends the journal. A second Close does nothing.
func (j *Journal) Close() error {
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

// blob reads the blob of the reply that stands there.
func (j *Journal) blob(at segment.Place) ([]byte, error) {
	body, err := segment.Read(j.dir, at)
	if errors.Is(err, segment.ErrRemoved) {
		return nil, input(ErrUnknown, rollout.Where{File: segment.Path(j.dir, at.Segment)}, "the rollout is delivered, and its segment removed: %w", ErrUnknown)
	}
	if err != nil {
		return nil, err
	}
	e, err := decode(body)
	if err != nil {
		return nil, err
	}
	return e.blob, nil
}

const lockName = ".lock"

// Extension ends the names of a journal's files.
const Extension = segment.Extension
