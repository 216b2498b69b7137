package live

import (
	"cmp"
	"os"
	"sync/atomic"
	"time"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout/live/internal/log"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// JournalOptions configures OpenJournal. The zero value is the right default.
type JournalOptions struct {
	// MaxDelay is how long an ended call waits for others to share its fsync, 0 to 5 ms. With 0 the fsync
	// begins at once, and records that arrive during it share the next.
	MaxDelay time.Duration
	// SegmentBytes is the size at which the next segment begins; 0 = 64 MiB.
	SegmentBytes int64
	// MaxQueued limits the bytes that wait for the disk, 0 = 64 MiB: beyond it new calls are refused, while
	// replies of running calls are accepted.
	MaxQueued int64

	// MaxDelivered is the share of the folder's bytes that delivered sessions may take before the undelivered
	// records of the oldest segments are copied to the end, so that those segments can be removed; 0 = 0.5.
	// With 1 nothing is copied, and one open session keeps every segment after its first.
	MaxDelivered float64

	open func(path string) (log.File, error) // nil = a file; tests inject faults
}

// validate reports all invalid fields at once.
func (o JournalOptions) validate() error {
	var l faults.List
	l.Count("SegmentBytes", int(o.SegmentBytes))
	l.Count("MaxQueued", int(o.MaxQueued))
	if o.MaxDelay < 0 || o.MaxDelay > 5*time.Millisecond {
		l.Add("MaxDelay", "is %s, expected 0 to 5 ms", o.MaxDelay)
	}
	if !(o.MaxDelivered >= 0 && o.MaxDelivered <= 1) {
		l.Add("MaxDelivered", "is %g, expected 0 to 1", o.MaxDelivered)
	}
	return l.Err()
}

// withDefaults returns o with the defaults filled in.
func (o JournalOptions) withDefaults() JournalOptions {
	o.SegmentBytes = cmp.Or(o.SegmentBytes, 64<<20)
	o.MaxQueued = cmp.Or(o.MaxQueued, 64<<20)
	o.MaxDelivered = cmp.Or(o.MaxDelivered, 0.5)
	if o.open == nil {
		o.open = func(path string) (log.File, error) { return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644) }
	}
	return o
}

// JournalStats describes the contents and activity of a journal.
type JournalStats struct {
	Segments int   `json:"segments"` // files
	Bytes    int64 `json:"bytes"`    // of all files
	Records  int64 `json:"records"`  // written since it was opened
	Syncs    int64 `json:"syncs"`    // groups of records made durable
	Queued   int64 `json:"queued"`   // bytes that are not yet durable
	Torn     int64 `json:"torn"`     // bytes of an unfinished record cut off on opening
}

// Journal is an open journal. Its methods are safe for concurrent use.
type Journal struct {
	dir   string
	opts  JournalOptions
	log   *log.Log
	taken atomic.Bool // a recorder uses it
}

// OpenJournal opens or creates the journal in folder dir and locks it against other processes. A torn end, as
// left by a killed process, is cut off; damage before the end is a KindFormat error with file and byte offset,
// and changes nothing.
func OpenJournal(dir string, o JournalOptions) (*Journal, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	l, err := log.Open(dir, log.Options{MaxDelay: o.MaxDelay, SegmentBytes: o.SegmentBytes, MaxQueued: o.MaxQueued, Open: o.open})
	if err != nil {
		return nil, err
	}
	return &Journal{dir: dir, opts: o, log: l}, nil
}

// Stats returns the current counts.
func (j *Journal) Stats() JournalStats {
	if j.log == nil {
		return JournalStats{}
	}
	return JournalStats(j.log.Stats())
}

// Err returns why the journal cannot record now, nil while it can.
func (j *Journal) Err() error {
	if j.log == nil {
		return nil
	}
	return j.log.Err()
}

// Close writes the queued records and closes the journal. A second Close does nothing.
func (j *Journal) Close() error {
	if j.log == nil {
		return nil
	}
	return j.log.Close()
}

// Extension is the suffix of a journal's file names.
const Extension = segment.Extension
