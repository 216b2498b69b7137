package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/turnpack/turnpack/rollout"
)

// endRequest describes how a rollout ended, as its harness reports it.
type endRequest struct {
	Group    string                     `json:"group"`
	Resolved *bool                      `json:"resolved,omitempty"`
	Reward   *float64                   `json:"reward,omitempty"`
	Failure  string                     `json:"failure,omitempty"` // a failure that the policy did not cause
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// maxName is the maximum length of a group's name, and of a rollout's that begins with its end.
const maxName = 256

func (e endRequest) validate() error {
	if e.Group == "" || e.Resolved == nil && e.Reward == nil && e.Failure == "" {
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "expected a group, and resolved, reward or failure")
	}
	if len(e.Group) > maxName {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "group"}, "has %d bytes, at most %d are allowed", len(e.Group), maxName)
	}
	return nil
}

// digest identifies an ending.
func (e endRequest) digest() (string, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{}, "the ending: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// endAnswer is the answer to a harness. Repeating the request returns the same answer.
type endAnswer struct {
	Group   string   `json:"group"`
	Waiting int      `json:"waiting"` // rollouts that the group still lacked after this one
	Batch   *written `json:"batch"`   // if this rollout completed the group
	// LeftOut is the reason why the rollout is in no batch if it came too late, or why the group has no batch.
	LeftOut string `json:"left_out,omitempty"`
}

// written describes a batch that was made.
type written struct {
	Seq     int    `json:"seq"`
	Path    string `json:"path"`
	Rows    int    `json:"rows"`
	Tokens  int64  `json:"tokens"`
	Trained int64  `json:"trained"`
}

// queueStats describes the contents and activity of a queue.
type queueStats struct {
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
