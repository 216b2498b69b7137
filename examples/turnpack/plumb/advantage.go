package plumb

import (
	"context"
	"encoding/json"

	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// advantageCase is one line of the advantages kit.
type advantageCase struct {
	Estimator        string                     `json:"estimator"`
	Kind             string                     `json:"kind"`
	Params           map[string]json.RawMessage `json:"params"`
	SamplesPerPrompt int                        `json:"n_samples_per_prompt"`
	GroupSize        int                        `json:"group_size"`
	MeanLevel        *string                    `json:"mean_level"`
	StdLevel         *string                    `json:"std_level"`
	MeanLeaveOneOut  bool                       `json:"mean_leave1out"`
	StdUnbiased      bool                       `json:"std_unbiased"`
	RowOrder         []int                      `json:"row_order"`
	Gamma            *float64                   `json:"gamma"`
	Baselines        []float64                  `json:"reward_baselines"`
	Weights          []float64                  `json:"weights"`
	Decay            float64                    `json:"decay"`
	LengthPenalty    *lengthPenalty             `json:"length_penalty"`
	Groups           []advantageGroup           `json:"groups"`
}

type lengthPenalty struct {
	Output float64 `json:"num_output_tokens_weight"`
	Input  float64 `json:"num_input_tokens_weight"`
	Turns  float64 `json:"num_turns_weight"`
}

type advantageGroup struct {
	Key            string         `json:"key"`
	Rewards        []*float64     `json:"rewards"`
	Lengths        []int          `json:"lengths"`
	Masks          [][]int8       `json:"masks"`
	Steps          []int          `json:"steps"`
	Components     [][]float64    `json:"components"`
	OutputTokens   []int          `json:"output_tokens"`
	TotalTokens    []int          `json:"total_tokens"`
	Turns          []int          `json:"turns"`
	Agents         []string       `json:"agents"`
	ProposerReward float64        `json:"proposer_reward"`
	Rollouts       []stepwiseCase `json:"rollouts"`
}

type stepwiseCase struct{}

func advantageVerb() verb {
	return lineVerb("advantage", "group advantages of rewards under a named estimator", advantageLine)
}

func advantageLine(_ context.Context, line []byte) (any, error) {
	var c advantageCase
	if err := json.Unmarshal(line, &c); err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "not an advantages case: %w", err)
	}
	switch c.Estimator {
	case "slime_grpo_count_mismatch":
		c.Estimator = "slime_grpo"
	}
	e, ok := reward.Preset(c.Estimator)
	if !ok || c.Estimator == "trl_async_grpo" || c.Estimator == "prime_rae" {
		return nil, unsupported("estimator " + c.Estimator)
	}
	return c.scalar(e)
}

func (c *advantageCase) scalar(e reward.Estimator) (any, error) {
	if c.Estimator == "areal_norm" {
		e = reward.ArealNorm(c.GroupSize, level(c.MeanLevel), level(c.StdLevel), c.MeanLeaveOneOut, c.StdUnbiased)
	} else if e.Grouping == reward.GroupByPosition {
		e.Size = c.SamplesPerPrompt
	}
	groups := make([]reward.GroupRewards, len(c.Groups))
	for i, g := range c.Groups {
		groups[i].Key = g.Key
		for j, r := range g.Rewards {
			rr := reward.RolloutReward{}
			if r == nil {
				rr.Excluded = "no reward"
			} else {
				rr.Reward = *r
			}
			if j < len(g.Lengths) {
				rr.Length = g.Lengths[j]
			}
			if j < len(g.Steps) {
				rr.Rows = g.Steps[j]
			}
			groups[i].Rollouts = append(groups[i].Rollouts, rr)
		}
	}
	out, _, err := reward.Advantages(groups, e)
	if err != nil {
		return nil, err
	}
	return map[string]any{"expected": values(out)}, nil
}

// values writes a dropped row as null.
func values(in [][]reward.Advantage) [][]*float64 {
	out := make([][]*float64, len(in))
	for i, g := range in {
		out[i] = make([]*float64, len(g))
		for j := range g {
			if g[j].Dropped == "" {
				out[i][j] = &g[j].Value
			}
		}
	}
	return out
}

func level(s *string) *reward.Level {
	if s == nil {
		return nil
	}
	l := reward.LevelGroup
	if *s == "batch" {
		l = reward.LevelBatch
	}
	return &l
}
