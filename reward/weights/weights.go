// Package weights makes the aggregation of a loss explicit: it gives every
// trained token the weight with which a trainer that simply sums its token
// losses gets the mean it should have had. All trained tokens of a row have the
// same weight, so one number per row says everything.
//
// The choice matters: token mean lets long rollouts dominate, sequence mean
// lets a rollout that was split into many rows count many times, rollout mean
// counts every attempt once however it was cut.
package weights

import (
	"errors"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Mode says what is averaged over what. The number is the weight of one trained
// token of row i, with T trained tokens per row, N in the batch, B rows, P
// prompts, R rollouts and S trained tokens of the row's prompt or rollout.
type Mode uint8

// The modes.
const (
	RolloutMean  Mode = iota // 1/(R·S): every rollout counts once, over all its rows
	TokenMean                // 1/N
	TokenSum                 // 1
	SequenceMean             // 1/(B·Tᵢ): every row counts once
	SequenceSum              // 1/B
	Constant                 // 1/(B·Divisor)
	PromptMean               // 1/(P·S): every prompt counts once
	RolloutSum               // 1/S: the trainer divides by its rollouts itself
)

var modeNames = []string{"rollout_mean", "token_mean", "token_sum", "sequence_mean", "sequence_sum", "constant", "prompt_mean", "rollout_sum"}

// String returns the name used in reports.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "mode(?)"
}

// Aggregation is a mode with its settings. The zero value is the mean over
// rollouts.
type Aggregation struct {
	Name string // preset name, "" for a custom record
	Mode Mode
	// PerToken multiplies all weights by the number of trained tokens, for a
	// trainer that divides the weighted sum by it. Their mean is then 1.
	PerToken bool
	// CountEmpty lets rows (prompts, rollouts) without a trained token enter B, P
	// and R.
	CountEmpty bool
	// Sequences replaces B, Tokens replaces N; 0 = counted.
	Sequences, Tokens int
	// Divisor of Constant; 0 = the longest row.
	Divisor float64
	// Epsilon is added to Tᵢ by SequenceMean.
	Epsilon float64
	// MicroBatch averages each run of so many rows alone and then over the runs;
	// rows beyond the last full run get 0. TokenMean only; 0 = off.
	MicroBatch int
}

// Row is what a weight depends on.
type Row struct {
	Trained int // trained tokens
	Length  int // tokens, or the padded width
	Prompt  string
	Rollout string
	// RolloutTrained is the number of trained tokens of the whole rollout, when
	// rows of it are elsewhere; 0 = those given here.
	RolloutTrained int
}

// Presets lists the aggregations of trainers, named system_mode@revision.
func Presets() []Aggregation {
	return []Aggregation{
		{Name: "token-mean@verl-1dda039b9", Mode: TokenMean},
		{Name: "token-sum@verl-1dda039b9", Mode: TokenSum},
		{Name: "seq-mean-token-sum@verl-1dda039b9", Mode: SequenceSum},
		{Name: "seq-mean-token-sum-norm@verl-1dda039b9", Mode: Constant},
		{Name: "seq-mean-token-mean@verl-1dda039b9", Mode: SequenceMean, Epsilon: 1e-8},
		{Name: "skyrl_token_mean@a9564572e", Mode: TokenMean},
		{Name: "skyrl_token_mean_legacy@a9564572e", Mode: TokenMean, MicroBatch: 1},
		{Name: "skyrl_sequence_mean@a9564572e", Mode: SequenceMean, CountEmpty: true},
		{Name: "skyrl_seq_mean_token_sum_norm@a9564572e", Mode: Constant, CountEmpty: true},
		{Name: "skyrl_prompt_mean@a9564572e", Mode: PromptMean, CountEmpty: true},
		{Name: "slime_rollout_mean@624b824a8", Mode: RolloutSum},
		{Name: "export", Mode: RolloutMean, PerToken: true},
	}
}

// Preset returns the aggregation of that name, with or without its revision.
func Preset(name string) (Aggregation, bool) {
	for _, a := range Presets() {
		base, _, _ := strings.Cut(a.Name, "@")
		if a.Name == name || base == name {
			return a, true
		}
	}
	return Aggregation{}, false
}

// Validate reports every fault of a at once.
func (a Aggregation) Validate() error {
	var faults []error
	fault := func(field, format string, args ...any) {
		faults = append(faults, rollout.Errorf(rollout.KindInput, rollout.Where{Field: field}, format, args...))
	}
	if int(a.Mode) >= len(modeNames) {
		fault("Mode", "%d is none of the %d known values", a.Mode, len(modeNames))
	}
	if a.Sequences < 0 || a.Tokens < 0 || a.MicroBatch < 0 {
		fault("Sequences", "counts are %d, %d and %d, expected >= 0", a.Sequences, a.Tokens, a.MicroBatch)
	}
	if !(a.Divisor >= 0) || a.Divisor > 1e300 {
		fault("Divisor", "%g is not a finite number >= 0", a.Divisor)
	}
	if !(a.Epsilon >= 0) || a.Epsilon > 1e300 {
		fault("Epsilon", "%g is not a finite number >= 0", a.Epsilon)
	}
	if a.MicroBatch > 0 && a.Mode != TokenMean {
		fault("MicroBatch", "runs of rows have a meaning with TokenMean only, found %s", a.Mode)
	}
	return errors.Join(faults...)
}

// PerRow returns the weight of each trained token of each row; 0 for a row
// without any. All other tokens weigh 0.
func PerRow(rows []Row, a Aggregation) ([]float64, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	var c counts
	for i, r := range rows {
		if r.Trained < 0 || r.Length < 0 || r.RolloutTrained < 0 || r.RolloutTrained > 0 && r.RolloutTrained < r.Trained {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.Rollout},
				"row %d has %d trained tokens of %d, its rollout %d", i, r.Trained, r.Length, r.RolloutTrained)
		}
		c.add(r, a.CountEmpty)
	}
	out := make([]float64, len(rows))
	for i, r := range rows {
		if r.Trained == 0 {
			continue
		}
		if d := a.divisor(i, r, rows, &c); d > 0 {
			out[i] = 1 / d
		}
		if a.PerToken {
			out[i] *= float64(c.tokens)
		}
	}
	return out, nil
}

type counts struct {
	tokens, rows, width int
	prompt, rollout     map[string]int // trained tokens by key
	prompts, rollouts   int
}

func (c *counts) add(r Row, empty bool) {
	if c.prompt == nil {
		c.prompt, c.rollout = map[string]int{}, map[string]int{}
	}
	c.tokens += r.Trained
	c.width = max(c.width, r.Length)
	if r.Trained > 0 || empty {
		c.rows++
	}
	count := func(m map[string]int, key string, n *int) {
		before, seen := m[key]
		if empty && !seen || !empty && before == 0 && r.Trained > 0 {
			*n++
		}
		m[key] = before + r.Trained
	}
	count(c.prompt, r.Prompt, &c.prompts)
	count(c.rollout, r.Rollout, &c.rollouts)
}

// divisor is the inverse of the weight of row i, 0 for no weight.
func (a *Aggregation) divisor(i int, r Row, rows []Row, c *counts) float64 {
	sequences := float64(c.rows)
	if a.Sequences > 0 {
		sequences = float64(a.Sequences)
	}
	whole := c.rollout[r.Rollout]
	if r.RolloutTrained > 0 {
		whole = r.RolloutTrained
	}
	switch a.Mode {
	case TokenSum:
		return 1
	case SequenceMean:
		return sequences * (float64(r.Trained) + a.Epsilon)
	case SequenceSum:
		return sequences
	case Constant:
		d := a.Divisor
		if d == 0 {
			d = float64(c.width)
		}
		return sequences * d
	case PromptMean:
		return float64(c.prompts) * float64(c.prompt[r.Prompt])
	case RolloutMean:
		return float64(c.rollouts) * float64(whole)
	case RolloutSum:
		return float64(whole)
	}
	if a.MicroBatch > 0 {
		runs := len(rows) / a.MicroBatch
		from := i / a.MicroBatch * a.MicroBatch
		if i/a.MicroBatch >= runs {
			return 0
		}
		n := 0
		for _, x := range rows[from : from+a.MicroBatch] {
			n += x.Trained
		}
		return float64(runs) * float64(n)
	}
	if a.Tokens > 0 {
		return float64(a.Tokens)
	}
	return float64(c.tokens)
}

// Apply multiplies the loss weights of a sequence by its row's weight.
func Apply(seq rollout.Sequence, weight float64) (rollout.Sequence, error) {
	if seq.Weight == nil {
		return seq, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: seq.Rollout, Field: "Weight"},
			"the sequence has no loss weights, so its trained tokens are not known").WithFix("apply a loss mask first")
	}
	if !(weight >= 0) || weight > 1e30 {
		return seq, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: seq.Rollout, Field: "Weight"},
			"row weight %g is not a finite number >= 0", weight)
	}
	column := make([]float32, len(seq.Weight))
	for i, w := range seq.Weight {
		column[i] = float32(float64(w) * weight)
	}
	return seq.WithWeight(column)
}
