package live

import (
	"cmp"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/internal/log"
)

// Causes that a caller tells apart with errors.Is. The errors that carry them are
// located and of a rollout.Kind, as all of this module are; a bound that is met is of
// KindLimit.
var (
	// ErrFinished: the session or the call has ended, and takes nothing more.
	ErrFinished = errors.New("it has ended")
	// ErrConflict: what was asked contradicts what is recorded: another ending of a
	// session, another digest of a batch, an id that is taken.
	ErrConflict = errors.New("it contradicts what is recorded")
	// ErrUnknown: there is no session or call of that id.
	ErrUnknown = errors.New("there is none of that id")
	// ErrUnavailable: the journal cannot record (full disk, failed fsync, closed). A
	// service answers 503; what was recorded before stays recorded.
	ErrUnavailable = log.ErrUnavailable
)

// Options of a Recorder. The zero value records in memory, with default bounds.
type Options struct {
	// Journal keeps everything on disk, nil = nothing outlives the process. A journal
	// serves one recorder, which goes on with what it holds.
	Journal *Journal
	// Now gives the times of records, nil = time.Now. Nothing depends on its order.
	Now func() time.Time
	// NewID gives ids of calls and of sessions begun without one, each once; nil =
	// random ones of 130 bits.
	NewID func() string
	// Vocab is the number of token ids of the model: greater ids are no tokens. 0 =
	// not known.
	Vocab int

	// Bounds; 0 = the default. Beyond each is an error of KindLimit.
	MaxSessions int // sessions held: open, or ended and not delivered; 100,000
	MaxCalls    int // calls of a rollout; 100,000
	MaxInFlight int // calls of a rollout at one time; 256
	MaxTokens   int // ids of a call, prompt and output; 4 Mi
	MaxBytes    int // of what is recorded of a request or a reply, the blob aside; 64 MiB
	MaxBlob     int // bytes of the opaque blob of a call; 64 MiB
	// MaxMemory is how many bytes of records may be in memory; 256 MiB. Beyond, sessions
	// that were longest not asked are read from the journal again when they are.
	MaxMemory int
}

// validate reports all faults at once.
func (o Options) validate() error {
	return notNegative(map[string]int{"Vocab": o.Vocab, "MaxSessions": o.MaxSessions, "MaxCalls": o.MaxCalls, "MaxInFlight": o.MaxInFlight,
		"MaxTokens": o.MaxTokens, "MaxBytes": o.MaxBytes, "MaxMemory": o.MaxMemory, "MaxBlob": o.MaxBlob})
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

// notNegative reports the fields that are negative.
func notNegative[T int | int64](fields map[string]T) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if n := fields[name]; n < 0 {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: name}, "is %d, expected 0 for the default or more", n))
		}
	}
	return errors.Join(errs...)
}
