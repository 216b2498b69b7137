package live

import (
	"cmp"
	"crypto/rand"
	"errors"
	"time"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/internal/log"
)

// Causes to distinguish with errors.Is. Like all errors of this module, the errors that carry them have a
// location and a rollout.Kind; an exceeded limit is of KindLimit.
var (
	// ErrFinished: the session or the call has ended and accepts nothing more.
	ErrFinished = errors.New("it has ended")
	// ErrConflict: the request contradicts the records: another ending of a session, another digest of a batch,
	// an id that is taken.
	ErrConflict = errors.New("it contradicts what is recorded")
	// ErrUnknown: no session or call has that id.
	ErrUnknown = errors.New("there is none of that id")
	// ErrUnavailable: the journal cannot record (full disk, failed fsync, closed). A service answers 503;
	// earlier records are kept.
	ErrUnavailable = log.ErrUnavailable
)

// Options configures a Recorder. The zero value records in memory, with default limits.
type Options struct {
	// Journal stores all records on disk; nil = nothing outlives the process. A journal serves one recorder,
	// which continues from its contents.
	Journal *Journal
	// Now returns the times of records, nil = time.Now. Nothing depends on their order.
	Now func() time.Time
	// NewID returns unique ids for calls and for sessions begun without an id; nil = random ids of 130 bits.
	NewID func() string
	// Vocab is the number of token ids of the model: ids from Vocab up are invalid. 0 = unknown.
	Vocab int

	// Limits; 0 = the default. Exceeding one is an error of KindLimit.
	MaxSessions int // sessions held: open, or ended and undelivered; 100,000
	MaxCalls    int // calls of a rollout; 100,000
	MaxInFlight int // concurrent calls of a rollout; 256
	MaxTokens   int // ids of a call, prompt and output; 4 Mi
	MaxBytes    int // of the record of a request or a reply, without the blob; 64 MiB
	MaxBlob     int // bytes of the opaque blob of a call; 64 MiB
	// MaxMemory bounds the bytes of records in memory; 256 MiB. Beyond it the least recently used rollouts are
	// dropped from memory and read from the journal when next used.
	MaxMemory int
}

// validate reports all invalid fields at once.
func (o Options) validate() error {
	var l faults.List
	l.Count("Vocab", o.Vocab)
	l.Count("MaxSessions", o.MaxSessions)
	l.Count("MaxCalls", o.MaxCalls)
	l.Count("MaxInFlight", o.MaxInFlight)
	l.Count("MaxTokens", o.MaxTokens)
	l.Count("MaxBytes", o.MaxBytes)
	l.Count("MaxBlob", o.MaxBlob)
	l.Count("MaxMemory", o.MaxMemory)
	return l.Err()
}

func (o Options) withDefaults() Options {
	o.MaxSessions = cmp.Or(o.MaxSessions, 100_000)
	o.MaxCalls = cmp.Or(o.MaxCalls, 100_000)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 256)
	o.MaxTokens = cmp.Or(o.MaxTokens, 4<<20)
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<20)
	o.MaxBlob = cmp.Or(o.MaxBlob, 64<<20)
	o.MaxMemory = cmp.Or(o.MaxMemory, 256<<20)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = rand.Text
	}
	return o
}

func input(cause error, where rollout.Where, format string, args ...any) *rollout.Error {
	e := rollout.Errorf(rollout.KindInput, where, format, args...)
	e.Err = cause
	return e
}

func limit(field string, format string, args ...any) *rollout.Error {
	return rollout.Errorf(rollout.KindLimit, rollout.Where{Field: field}, format, args...).WithFix("raise Options.%s, or ask for less", field)
}

func zeroValue(typ, maker string) error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{Field: typ}, "is used as its zero value").WithFix("make it with %s", maker)
}
