package deliver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// Options configures New. Recorder, Stream and Rows are required.
type Options struct {
	Recorder *live.Recorder
	Stream   *stream.Stream
	// Version returns the current policy version, for MaxAge; nil = the newest version in the group.
	Version func() *int32
	Settings
}

// Settings are documented at serve.Groups.
type Settings struct {
	Rows  func(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error
	Score func(ctx context.Context, r *rollout.Rollout) ([]rollout.StepScore, error)

	Size           int
	Deadline       time.Duration
	Least          int
	MaxAge         *int32
	Folder         bool
	StepGroups     int
	MaxUndelivered int
	Refused        func(key stream.Key, err error)
	Now            func() time.Time
}

// Validate reports all invalid fields at once.
func (o Options) Validate() error {
	l := faults.List{Of: "Options."}
	if o.Recorder == nil {
		l.Add("Recorder", "is nil, expected one")
	}
	if o.Rows == nil {
		l.Add("Rows", "is nil, expected a function")
	}
	if o.Stream == nil {
		l.Add("Stream", "is nil, expected one")
	}
	l.Count("Size", o.Size)
	l.Count("Least", o.Least)
	l.Count("MaxUndelivered", o.MaxUndelivered)
	l.Count("StepGroups", o.StepGroups)
	l.Count("Deadline", int(o.Deadline))
	if o.MaxAge != nil {
		l.Count("MaxAge", int(*o.MaxAge))
	}
	if size := cmp.Or(max(0, o.Size), 8); o.Least > size {
		l.Add("Least", "is %d, a group has %d", o.Least, size)
	}
	return l.Err()
}

func (o Options) withDefaults() Options {
	o.Size = cmp.Or(o.Size, 8)
	o.Least = cmp.Or(o.Least, 1)
	o.MaxUndelivered = cmp.Or(o.MaxUndelivered, 64)
	o.Folder = o.Folder || o.StepGroups > 0
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Refused == nil {
		o.Refused = func(stream.Key, error) {}
	}
	return o
}

// Ending describes how a rollout ended, as its harness reports it.
type Ending struct {
	Group    string                     `json:"group"`
	Resolved *bool                      `json:"resolved,omitempty"`
	Reward   *float64                   `json:"reward,omitempty"`
	Failure  string                     `json:"failure,omitempty"` // a failure that the policy did not cause
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// maxName is the maximum length of a group's name, and of a rollout's that begins with its end.
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

// digest identifies an ending.
func (e Ending) digest() (string, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{}, "the ending: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// Answer is the answer to a harness. Repeating the request returns the same answer.
type Answer struct {
	Group   string   `json:"group"`
	Waiting int      `json:"waiting"` // rollouts that the group still lacked after this one
	Batch   *Written `json:"batch"`   // if this rollout completed the group
	// LeftOut is the reason why the rollout is in no batch if it came too late, or why the group has no batch.
	LeftOut string `json:"left_out,omitempty"`
}

// Written describes a batch that was made.
type Written struct {
	Seq     int    `json:"seq"`
	Path    string `json:"path"`
	Rows    int    `json:"rows"`
	Tokens  int64  `json:"tokens"`
	Trained int64  `json:"trained"`
}

// Stats describes the contents and activity of a queue.
type Stats struct {
	Open        int            `json:"open"`        // incomplete groups
	Waiting     int            `json:"waiting"`     // rollouts in them
	Making      int            `json:"making"`      // complete groups without a batch so far
	Undelivered int            `json:"undelivered"` // complete, unacknowledged groups, including those of Making
	Last        int            `json:"last"`        // number of the last batch
	Acked       int            `json:"acked"`       // number of the last acknowledged batch
	Groups      int64          `json:"groups"`      // made since the start, as the counts below
	Rows        int64          `json:"rows"`
	Tokens      int64          `json:"tokens"`
	Trained     int64          `json:"trained"`
	Refused     int64          `json:"refused"`  // groups of which no batch could be made
	LeftOut     map[string]int `json:"left_out"` // rollouts, by reason
}
