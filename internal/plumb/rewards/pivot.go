package rewards

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/reward/pivot"
	"github.com/turnpack/turnpack/rollout"
)

type pivotHead struct {
	Server         string             `json:"server"`
	Config         json.RawMessage    `json:"config"`
	ResponseOutput []pivot.OutputItem `json:"response_output"`
}

type sweConfig struct {
	Mode          string   `json:"reward_mode"`
	Target        *bool    `json:"enable_target_match"`
	Similarity    *bool    `json:"enable_argument_similarity"`
	DiffSize      *bool    `json:"enable_diff_size_shaping"`
	Threshold     *float64 `json:"similarity_threshold"`
	FullCredit    *float64 `json:"similarity_full_credit"`
	DiffSizeAlpha *float64 `json:"diff_size_alpha"`
}

func (c sweConfig) verifier() pivot.SWE {
	off := func(p *bool) bool { return p != nil && !*p }
	return pivot.SWE{
		Mode: c.Mode, Threshold: c.Threshold, FullCredit: c.FullCredit, DiffSizeAlpha: c.DiffSizeAlpha,
		SkipTarget: off(c.Target), SkipSimilarity: off(c.Similarity), SkipDiffSize: off(c.DiffSize),
	}
}

func pivotLine(_ context.Context, line []byte) (any, error) {
	head := pivotHead{Config: json.RawMessage("{}")}
	if err := pipe.Decode(line, &head); err != nil {
		return nil, err
	}
	switch head.Server {
	case "swe_pivot":
		var config sweConfig
		if err := pipe.Decode(head.Config, &config); err != nil {
			return nil, err
		}
		var row pivot.Row
		if err := pipe.Decode(line, &row); err != nil {
			return nil, err
		}
		return config.verifier().VerifyRow(row, head.ResponseOutput)
	case "argument_comparison", "":
		var comparator pivot.Comparator
		if err := pipe.Decode(head.Config, &comparator); err != nil {
			return nil, err
		}
		var row struct {
			Expected pivot.Action `json:"expected_action"`
		}
		if err := pipe.Decode(line, &row); err != nil {
			return nil, err
		}
		r, err := comparator.Compare(row.Expected, pivot.ActionOf(head.ResponseOutput))
		if errors.Is(err, rollout.KindFormat) {
			// The kit gives the name of the reference's exception.
			return map[string]string{"error": "JSONDecodeError"}, nil
		}
		return r, err
	}
	return nil, pipe.Unsupported("pivot server " + head.Server)
}
