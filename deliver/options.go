package deliver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// Options of New. Recorder, Stream and Rows are needed.
type Options struct {
	Recorder *live.Recorder
	Stream   *stream.Stream
	// Rows writes the rows of a group. Rollouts that are left out have a Failure. It is
	// called for one group at a time.
	Rows func(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error
	// Score gives the process rewards of a rollout that ended, nil = none are made. An
	// error leaves the rollout out, with the reason. As many as Workers run at a time.
	Score func(ctx context.Context, r *rollout.Rollout) ([]rollout.StepScore, error)
	// Version is that of the policy now, for MaxAge; nil = the newest that the group has.
	Version func() *int32

	Size     int           // rollouts of a group, 0 = 8
	Deadline time.Duration // of a group, from the end of its first rollout; 0 = none
	// Least is how many rollouts a group has to have at its deadline, 0 = 1. One with
	// fewer gives no batch.
	Least int
	// MaxAge leaves out rollouts with tokens of a policy more versions old; nil = none.
	MaxAge *int32
	// Folder: a batch is delivered when its file is in the folder of the stream, where the
	// trainer takes it, and Ack is called by nobody.
	Folder bool
	// StepGroups is how many groups make a step, which is written as a file of its own,
	// in place of those of its batches (stream.Stream.Steps), for trainers that read one
	// for each step; 0 = none are. It implies Folder, and stays as it is for a stream.
	StepGroups int
	// MaxUndelivered is the number of complete groups, not acknowledged, at which Full
	// says so; 0 = 64.
	MaxUndelivered int
	Workers        int // rollouts scored at a time, 0 = 8
	// MaxAnswers is how many answers are kept of rollouts that are delivered, so that an
	// end that is told again has the same answer; 0 = 100,000.
	MaxAnswers int
	// Refused is told of each group of which no batch can be made, and of each failure
	// after which making one is tried again; nil = nobody.
	Refused func(key stream.Key, err error)
	Now     func() time.Time // nil = time.Now
}

// Validate reports all faults at once.
func (o Options) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options." + field}, format, args...))
	}
	if o.Recorder == nil {
		bad("Recorder", "is nil, expected one")
	}
	if o.Rows == nil {
		bad("Rows", "is nil, expected a function")
	}
	if o.Stream == nil {
		bad("Stream", "is nil, expected one")
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"Size", o.Size}, {"Least", o.Least}, {"MaxUndelivered", o.MaxUndelivered}, {"Workers", o.Workers}, {"MaxAnswers", o.MaxAnswers}, {"StepGroups", o.StepGroups}, {"Deadline", int(o.Deadline)}} {
		if f.n < 0 {
			bad(f.name, "is %d, expected 0 for the default or more", f.n)
		}
	}
	if o.MaxAge != nil && *o.MaxAge < 0 {
		bad("MaxAge", "is %d, expected 0 or more", *o.MaxAge)
	}
	if o.Least > cmp.Or(o.Size, 8) {
		bad("Least", "is %d, a group has %d", o.Least, cmp.Or(o.Size, 8))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	o.Size = cmp.Or(o.Size, 8)
	o.Least = cmp.Or(o.Least, 1)
	o.MaxUndelivered = cmp.Or(o.MaxUndelivered, 64)
	o.Workers = cmp.Or(o.Workers, 8)
	o.MaxAnswers = cmp.Or(o.MaxAnswers, 100_000)
	o.Folder = o.Folder || o.StepGroups > 0
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Refused == nil {
		o.Refused = func(stream.Key, error) {}
	}
	return o
}

// Ending is how a rollout ended, in the words of its harness.
type Ending struct {
	Group    string                     `json:"group"`
	Resolved *bool                      `json:"resolved,omitempty"`
	Reward   *float64                   `json:"reward,omitempty"`
	Failure  string                     `json:"failure,omitempty"` // a fault that is not the policy's
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// maxName is the length of the names of groups, and of rollouts that begin with their end.
const maxName = 256

func (e Ending) validate() error {
	if e.Group == "" || e.Resolved == nil && e.Reward == nil && e.Failure == "" {
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "expected a group, and resolved, reward or failure")
	}
	if len(e.Group) > maxName {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "group"}, "has %d bytes, at most %d are allowed", len(e.Group), maxName)
	}
	return nil
}

// digest tells endings apart.
func (e Ending) digest() (string, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{}, "the ending: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// Answer is what the harness is told. It is the same each time.
type Answer struct {
	Group   string   `json:"group"`
	Waiting int      `json:"waiting"` // rollouts that the group lacked after this one
	Batch   *Written `json:"batch"`   // of the rollout that made the group complete
	// LeftOut says why the rollout is in no batch, where it came too late, and why the
	// group has none.
	LeftOut string `json:"left_out,omitempty"`
}

// Written is a batch that was made.
type Written struct {
	Seq     int    `json:"seq"`
	Path    string `json:"path"`
	Rows    int    `json:"rows"`
	Tokens  int64  `json:"tokens"`
	Trained int64  `json:"trained"`
}

// Stats says what a queue holds and did.
type Stats struct {
	Open        int            `json:"open"`        // groups that lack rollouts
	Waiting     int            `json:"waiting"`     // rollouts in them
	Making      int            `json:"making"`      // groups that are complete and have no batch yet
	Undelivered int            `json:"undelivered"` // complete groups, not acknowledged, those included
	Last        int            `json:"last"`        // number of the last batch
	Acked       int            `json:"acked"`       // of the last one that is acknowledged
	Groups      int64          `json:"groups"`      // made since the start, as the counts below
	Rows        int64          `json:"rows"`
	Tokens      int64          `json:"tokens"`
	Trained     int64          `json:"trained"`
	Refused     int64          `json:"refused"`  // groups of which no batch could be made
	LeftOut     map[string]int `json:"left_out"` // rollouts, by reason
}
