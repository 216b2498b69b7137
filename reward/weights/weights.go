package weights

import (
	"strings"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

const (
	rolloutMean  = "rollout_mean"
	tokenMean    = "token_mean"
	tokenSum     = "token_sum"
	sequenceMean = "sequence_mean"
	sequenceSum  = "sequence_sum"
	constant     = "constant"
	promptMean   = "prompt_mean"
	rolloutSum   = "rollout_sum"
)

// Aggregation is an aggregation mode with its settings. The zero value is the mean over rollouts.
type Aggregation struct {
	Name string // preset name, "" for a custom record
	// Mode selects the mean. With B rows, P prompts, R rollouts, T trained tokens in the row and S in
	// all rows of its prompt or rollout, the weight of a trained token is: "rollout_mean" or "",
	// 1/(R·S), so that every rollout counts once, over all its rows; "token_mean", 1 over the number
	// of trained tokens; "token_sum", 1; "sequence_mean", 1/(B·T), so that every row counts once;
	// "sequence_sum", 1/B; "constant", 1/(B·Divisor); "prompt_mean", 1/(P·S), so that every prompt
	// counts once; "rollout_sum", 1/S, for a trainer that divides by its number of rollouts itself.
	Mode string
	// PerToken multiplies all weights by the number of trained tokens, for a trainer that divides the
	// weighted sum by that number. The mean weight is then 1.
	PerToken bool
	// CountEmpty includes rows, prompts and rollouts without a trained token in B, P and R.
	CountEmpty bool
	// Sequences replaces B, Tokens replaces the number of trained tokens of "token_mean"; 0 = counted.
	Sequences, Tokens int
	// Divisor is the divisor of "constant"; 0 = the length of the longest row.
	Divisor float64
	// Epsilon is added to T in "sequence_mean".
	Epsilon float64
	// MicroBatch averages within each run of MicroBatch consecutive rows and then over the runs; rows
	// after the last full run get 0. For "token_mean" only; 0 = off.
	MicroBatch int
}

// Row holds the counts and keys of a row that its weight depends on.
type Row struct {
	Trained int // trained tokens
	Length  int // tokens, or the padded width
	Prompt  string
	Rollout string
	// RolloutTrained is the number of trained tokens of the whole rollout, if not all its rows are
	// given; 0 = the sum over the given rows.
	RolloutTrained int
}

// Presets lists the aggregations of trainers, named system_mode@revision.
func Presets() []Aggregation {
	return []Aggregation{
		{Name: "token-mean@verl-1dda039b9", Mode: tokenMean},
		{Name: "token-sum@verl-1dda039b9", Mode: tokenSum},
		{Name: "seq-mean-token-sum@verl-1dda039b9", Mode: sequenceSum},
		{Name: "seq-mean-token-sum-norm@verl-1dda039b9", Mode: constant},
		{Name: "seq-mean-token-mean@verl-1dda039b9", Mode: sequenceMean, Epsilon: 1e-8},
		{Name: "skyrl_token_mean@a9564572e", Mode: tokenMean},
		{Name: "skyrl_token_mean_legacy@a9564572e", Mode: tokenMean, MicroBatch: 1},
		{Name: "skyrl_sequence_mean@a9564572e", Mode: sequenceMean, CountEmpty: true},
		{Name: "skyrl_seq_mean_token_sum_norm@a9564572e", Mode: constant, CountEmpty: true},
		{Name: "skyrl_prompt_mean@a9564572e", Mode: promptMean, CountEmpty: true},
		{Name: "slime_rollout_mean@624b824a8", Mode: rolloutSum},
		{Name: "openclaw_sample_mean@0d034dd5e", Mode: sequenceMean, CountEmpty: true},
		{Name: "export", Mode: rolloutMean, PerToken: true},
	}
}

// Preset returns the aggregation of that name, given with or without its revision.
func Preset(name string) (Aggregation, bool) {
	for _, a := range Presets() {
		base, _, _ := strings.Cut(a.Name, "@")
		if a.Name == name || base == name {
			return a, true
		}
	}
	return Aggregation{}, false
}

func (a Aggregation) validate() error {
	var f faults.List
	faults.Word(&f, "Mode", a.Mode, rolloutMean, tokenMean, tokenSum, sequenceMean, sequenceSum, constant, promptMean, rolloutSum)
	f.Count("Sequences", a.Sequences)
	f.Count("Tokens", a.Tokens)
	f.Count("MicroBatch", a.MicroBatch)
	f.Amount("Divisor", a.Divisor)
	f.Amount("Epsilon", a.Epsilon)
	if a.Divisor != 0 && a.Mode != constant {
		f.Add("Divisor", "%g, which has a meaning with constant only, found %q", a.Divisor, a.Mode)
	}
	if a.Epsilon != 0 && a.Mode != sequenceMean {
		f.Add("Epsilon", "%g, which has a meaning with sequence_mean only, found %q", a.Epsilon, a.Mode)
	}
	if a.MicroBatch > 0 && a.Mode != tokenMean {
		f.Add("MicroBatch", "runs of rows have a meaning with token_mean only, found %q", a.Mode)
	}
	return f.Err()
}

// PerRow returns, for each row, the weight of each of its trained tokens; 0 for a row without trained
// tokens. All other tokens have weight 0.
func PerRow(rows []Row, a Aggregation) ([]float64, error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	var t Totals
	for i, r := range rows {
		if err := t.Add(r); err != nil {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.Rollout}, "row %d: %w", i, err)
		}
	}
	out := make([]float64, len(rows))
	for i, r := range rows {
		if a.MicroBatch == 0 {
			out[i] = t.Weight(r, a)
			continue
		}
		runs := len(rows) / a.MicroBatch
		if run := i / a.MicroBatch; run < runs {
			n := 0
			for _, x := range rows[run*a.MicroBatch : (run+1)*a.MicroBatch] {
				n += x.Trained
			}
			out[i] = a.scaled(r, float64(runs)*float64(n), &t)
		}
	}
	return out, nil
}

// Totals counts rows in a first pass, so that a second pass can compute weights row by row. It stores
// one number per prompt and per rollout. The zero value is ready for use; after the last Add, Weight
// is safe for concurrent use.
type Totals struct {
	tokens, rows, trained, width int
	prompt, rollout              map[string]int // trained tokens by key
	prompts, rollouts            int            // keys with a trained token
}

// Add counts one row. Counts that contradict each other are errors of KindInput.
func (t *Totals) Add(r Row) error {
	if r.Trained < 0 || r.Length < r.Trained || r.RolloutTrained < 0 || r.RolloutTrained > 0 && r.RolloutTrained < r.Trained {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.Rollout},
			"%d trained tokens of %d, %d in the whole rollout", r.Trained, r.Length, r.RolloutTrained)
	}
	if t.prompt == nil {
		t.prompt, t.rollout = map[string]int{}, map[string]int{}
	}
	t.tokens += r.Trained
	t.width = max(t.width, r.Length)
	t.rows++
	if r.Trained > 0 {
		t.trained++
	}
	count := func(m map[string]int, key string, n *int) {
		before := m[key]
		if before == 0 && r.Trained > 0 {
			*n++
		}
		m[key] = before + r.Trained
	}
	count(t.prompt, r.Prompt, &t.prompts)
	count(t.rollout, r.Rollout, &t.rollouts)
	return nil
}

// Weight returns the weight of each trained token of a row that was added. For an aggregation with
// MicroBatch, which depends on neighbouring rows, use PerRow.
func (t *Totals) Weight(r Row, a Aggregation) float64 {
	rows, prompts, rollouts := float64(t.trained), float64(t.prompts), float64(t.rollouts)
	if a.CountEmpty {
		rows, prompts, rollouts = float64(t.rows), float64(len(t.prompt)), float64(len(t.rollout))
	}
	if a.Sequences > 0 {
		rows = float64(a.Sequences)
	}
	whole := t.rollout[r.Rollout]
	if r.RolloutTrained > 0 {
		whole = r.RolloutTrained
	}
	divisor := float64(t.tokens)
	switch a.Mode {
	case "", rolloutMean:
		divisor = rollouts * float64(whole)
	case rolloutSum:
		divisor = float64(whole)
	case promptMean:
		divisor = prompts * float64(t.prompt[r.Prompt])
	case sequenceMean:
		divisor = rows * (float64(r.Trained) + a.Epsilon)
	case sequenceSum:
		divisor = rows
	case constant:
		if divisor = rows * a.Divisor; a.Divisor == 0 {
			divisor = rows * float64(t.width)
		}
	case tokenSum:
		divisor = 1
	default:
		if a.Tokens > 0 {
			divisor = float64(a.Tokens)
		}
	}
	return a.scaled(r, divisor, t)
}

func (a *Aggregation) scaled(r Row, divisor float64, t *Totals) float64 {
	switch {
	case r.Trained == 0 || divisor <= 0:
		return 0
	case a.PerToken:
		return float64(t.tokens) / divisor
	}
	return 1 / divisor
}

// Apply returns seq with its loss weights multiplied by weight, the weight of its row.
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
