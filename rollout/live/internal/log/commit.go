package log

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// commitLoop makes the queued records durable, one group after the other.
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

// commit makes the queued records durable, and reports whether there were any.
func (j *Log) commit() bool {
	j.writing.Lock()
	j.mu.Lock()
	round := j.round
	if !j.used {
		j.mu.Unlock()
		j.writing.Unlock()
		return false
	}
	j.round, j.used, j.armed = j.newTicket(), false, false
	j.mu.Unlock()
	err := j.flush(true)
	for noRoom(err) {
		j.writing.Unlock()
		again := j.waitRoom(err, round)
		j.writing.Lock()
		if !again {
			break
		}
		err = j.flush(true)
	}
	end := j.end
	j.mu.Lock()
	written := j.unsynced
	j.mu.Unlock()
	j.writing.Unlock()
	if err == nil {
		err = j.sync(end)
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if errors.Is(err, errSync) {
		err = errors.Join(err, j.file.Truncate(j.durable))
	}
	j.stats.Syncs++
	if j.full = nil; err == nil {
		j.written = j.number
		j.stats.Queued -= written
		j.unsynced -= written
	} else {
		j.fail(err)
	}
	round.err = j.fault
	close(round.done)
	return true
}

var errSync = errors.New("fsync")

// sync makes file durable up to offset end. Other goroutines may write meanwhile.
func (j *Log) sync(end int64) error {
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("%w: %v", errSync, err)
	}
	j.durable = end
	return nil
}

// fail ends the recording for good. The caller holds mu.
func (j *Log) fail(err error) {
	if j.fault == nil {
		e := unavailable(rollout.Where{File: segment.Path(j.dir, j.number)}, "%w: %v", ErrUnavailable, err)
		j.fault = e.WithFix("make room or mend the disk and start again: what was recorded before is kept")
	}
	j.queue, j.stats.Queued = nil, 0
}

// noRoom reports whether a write failed for lack of disk space or file descriptors. A failed fsync is not such
// an error, since it is then unknown what the disk holds.
func noRoom(err error) bool {
	for _, passing := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// waitRoom refuses new work and returns when it is time to retry; it returns false if the journal is closing.
func (j *Log) waitRoom(err error, round *Ticket) bool {
	j.mu.Lock()
	e := unavailable(rollout.Where{File: j.dir}, "%w: %v", ErrUnavailable, err)
	j.full = e.WithFix("make room, or close files: what waits is written then")
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

// roomPause is the time between retries of a journal without space.
const roomPause = 100 * time.Millisecond

// maxBuf is the capacity up to which the write buffer is reused.
const maxBuf = 1 << 20

// errNext says that the queue continues in a segment that has not begun.
var errNext = errors.New("the next segment is not begun")

// flush writes the queued records in order; records that could not be written stay queued. With next, which
// only the commit loop may set, it also begins new segments. The caller holds writing.
func (j *Log) flush(next bool) error {
	j.mu.Lock()
	group, err := j.queue, j.fault
	j.queue = j.spare[:0]
	j.mu.Unlock()
	rest := group
	for len(rest) > 0 && err == nil {
		n := 1
		for n < len(rest) && rest[n].at.Segment == rest[0].at.Segment {
			n++
		}
		if rest[0].at.Segment != j.number {
			if err = errNext; next {
				err = j.beginSegment(rest[0].at.Segment)
			}
		}
		if err == nil {
			err = j.write(rest[:n])
		}
		if err == nil {
			rest = rest[n:]
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, q := range group[:len(group)-len(rest)] {
		j.unsynced += int64(len(q.frame))
	}
	if len(rest) > 0 {
		j.queue = append(rest, j.queue...)
		j.spare = nil
	} else {
		clear(group)
		j.spare = group
	}
	return err
}

// beginSegment makes the current segment durable and begins segment n.
func (j *Log) beginSegment(n int) error {
	if err := j.sync(j.end); err != nil {
		return err
	}
	f, err := j.opts.Open(segment.Path(j.dir, n))
	if err != nil {
		return err
	}
	if err := j.begin(f, n); err != nil {
		return errors.Join(err, f.Close(), os.Remove(segment.Path(j.dir, n)))
	}
	if err := j.file.Close(); err != nil {
		return errors.Join(err, f.Close())
	}
	j.file, j.number, j.end, j.durable = f, n, segment.HeadSize, segment.HeadSize
	return nil
}

// write writes records of the current segment. What a failed write leaves is cut off.
func (j *Log) write(group []queued) error {
	buf := j.buf[:0]
	for _, q := range group {
		segment.Seal(q.frame, q.at)
		buf = append(buf, q.frame...)
	}
	if cap(buf) <= maxBuf {
		j.buf = buf
	}
	at := group[0].at.Offset
	if _, err := j.file.WriteAt(buf, at); err != nil {
		return errors.Join(err, j.file.Truncate(at))
	}
	j.end = at + int64(len(buf))
	return nil
}
