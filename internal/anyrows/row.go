// Package anyrows reads the rows of training batches from any writer: this module's Parquet and
// Arrow files, slime's .pt files, prime-rl rank files, other Parquet files with token ids and
// JSON Lines.
package anyrows

import (
	"encoding/json"

	"github.com/turnpack/turnpack/rollout"
)

// Row is one training row in a form common to all sources. Per-token slices are nil if the
// source has none; their lengths are not checked.
type Row struct {
	Index   int // from 0
	ID      string
	Group   string // "" = unknown
	Rollout string // "" = unknown
	IDs     []rollout.TokenID
	// Mask is the loss mask or weight of each token; nil means that the file has no mask
	// column.
	Mask       []float64
	Logprobs   []float64
	Advantages []float64
	// TrainLogprobs are the log probabilities that a trainer computed itself before its step;
	// nil if the file has none.
	TrainLogprobs []float64
	// Sources and Flags say where each token is from (see export.Options.Trace); nil means
	// unknown.
	Sources []int32
	Flags   []rollout.Flag
	// PromptLen is the number of leading prompt tokens, −1 = unknown.
	PromptLen    int
	Reward       *float64
	Advantage    *float64 // the row's scalar advantage
	Status       string
	FinishReason string
	// Sample is set for rows of this module's schema.
	Sample *rollout.Sample
	// Faults are the wrong lengths that the source had to work around.
	Faults []Fault

	Whole      *float64 // rollout_mask_sum of a row from another writer
	Unreadable error    // why the rows from this one on do not fit this module's schema
}

// Roles returns the roles of the rollout's messages from the row's metadata, or nil if it has
// none.
func (r *Row) Roles() []rollout.Role {
	var m struct {
		Turnpack struct {
			Roles []rollout.Role `json:"roles"`
		} `json:"turnpack"`
	}
	if r.Sample == nil || json.Unmarshal(r.Sample.Metadata, &m) != nil {
		return nil
	}
	return m.Turnpack.Roles
}

// Fault is a column of the wrong length.
type Fault struct{ Column, Text string }

// OneAdvantage returns the scalar advantage or, without one, the advantage that all trained
// tokens share.
func (r *Row) OneAdvantage() (v float64, ok bool) {
	if r.Advantage != nil {
		return *r.Advantage, true
	}
	for t, a := range r.Advantages {
		if !r.Trained(t) {
			continue
		}
		if ok && a != v {
			return 0, false
		}
		v, ok = a, true
	}
	return v, ok
}

// Trained reports whether token t is trained.
func (r *Row) Trained(t int) bool { return t < len(r.Mask) && r.Mask[t] > 0 }
