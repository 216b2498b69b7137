package view

import (
	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/reward/overview"
	"github.com/turnpack/turnpack/reward/shaping"
)

// report is the part of a batch's record that describes all rollouts read, including
// those without rows.
type report struct {
	Rollouts    int             `json:"rollouts"`
	Groups      int             `json:"groups"`
	Status      map[string]int  `json:"status"`
	Verdicts    map[string]int  `json:"verdicts,omitempty"`
	WithoutRows map[string]int  `json:"rollouts_without_rows,omitempty"`
	OutOf       map[string]int  `json:"out_of_statistics,omitempty"`
	MaskedRows  map[string]int  `json:"masked_rows,omitempty"`
	Faults      map[string]int  `json:"message_faults,omitempty"`
	Unscored    int64           `json:"unscored_tokens,omitempty"`
	Batch       *overview.Batch `json:"batch,omitempty"`
	Judge       *prm.Agreement  `json:"judge,omitempty"`
	Shaping     *shaping.Report `json:"shaping,omitempty"`
	Recipe      string          `json:"recipe,omitempty"`
	Estimator   string          `json:"estimator,omitempty"`
}

// reportOf reads the report of a batch. It returns nil if there is no record or if an
// earlier build wrote it, without a description of the batch.
func reportOf(batch string) (*report, error) {
	var made struct {
		Options struct {
			Recipe    string
			Estimator string
		} `json:"options"`
		Summary report `json:"summary"`
	}
	if _, err := cli.RecordOf(batch, &made); err != nil || made.Summary.Batch == nil {
		return nil, err
	}
	made.Summary.Recipe, made.Summary.Estimator = made.Options.Recipe, made.Options.Estimator
	return &made.Summary, nil
}
