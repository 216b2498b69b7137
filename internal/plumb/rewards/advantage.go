package rewards

import (
	"math"

	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

// advantageCase is one line of the advantages kit.
type advantageCase struct {
	Estimator        string           `json:"estimator"`
	Params           estimatorParams  `json:"params"`
	SamplesPerPrompt int              `json:"n_samples_per_prompt"`
	GroupSize        int              `json:"group_size"`
	MeanLevel        *string          `json:"mean_level"`
	StdLevel         *string          `json:"std_level"`
	MeanLeaveOneOut  bool             `json:"mean_leave1out"`
	StdUnbiased      bool             `json:"std_unbiased"`
	RowOrder         []int            `json:"row_order"`
	Gamma            *float64         `json:"gamma"`
	Baselines        []float64        `json:"reward_baselines"`
	Weights          []float64        `json:"weights"`
	Decay            *float64         `json:"decay"`
	LengthPenalty    *lengthPenalty   `json:"length_penalty"`
	Groups           []advantageGroup `json:"groups"`
}

// estimatorParams override the numbers of a preset.
type estimatorParams struct {
	Eps  float64 `json:"eps"`
	DDoF *int    `json:"ddof"`
}

func (p estimatorParams) apply(e *reward.Estimator) {
	std := e.Divisor == "" || e.Divisor == "std0"
	if p.Eps > 0 && e.Place != "none" && (e.Divisor != "none" || e.Normalize) {
		e.Epsilon = p.Eps
	}
	if p.DDoF != nil && std {
		if e.Divisor = ""; *p.DDoF == 0 {
			e.Divisor = "std0"
		}
	}
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
	Components     [][]*float64   `json:"components"`
	OutputTokens   []int          `json:"output_tokens"`
	TotalTokens    []int          `json:"total_tokens"`
	Turns          []int          `json:"turns"`
	Agents         []string       `json:"agents"`
	ProposerReward *float64       `json:"proposer_reward"`
	Rollouts       []stepwiseCase `json:"rollouts"`
}

type stepwiseCase struct {
	Outcome     float64   `json:"outcome"`
	Scores      []float64 `json:"step_scores"`
	WithOutcome []float64 `json:"step_scores_with_outcome"`
	Indices     []int     `json:"step_indices"`
	Spans       [][2]int  `json:"spans"`
}

type stepwiseAnswer struct {
	Indices    []int     `json:"step_indices"`
	Advantages []float64 `json:"advantages"`
	Spans      [][2]int  `json:"spans"`
	Removed    bool      `json:"removed"`
}

func advantageLine(c *advantageCase) (any, error) {
	answer, err := c.answer()
	if err != nil {
		return nil, err
	}
	return map[string]any{"expected": answer}, nil
}

func (c *advantageCase) answer() (any, error) {
	if e, ok := reward.TokenPreset(c.Estimator); ok {
		return c.tokens(e)
	}
	name := c.Estimator
	switch name {
	case "slime_grpo_count_mismatch":
		name = "slime_grpo"
	case "trl_normalize_then_sum":
		name = "trl_grpo_group"
	case "prime_grpo_length_penalty":
		name = "prime_grpo"
	}
	e, ok := reward.Preset(name)
	if !ok {
		return nil, pipe.Unsupported("estimator " + c.Estimator)
	}
	if e.Grouping == "position" {
		e.Size = c.SamplesPerPrompt
	}
	c.Params.apply(&e)
	switch c.Estimator {
	case "areal_norm":
		e = reward.ArealNorm(c.GroupSize, level(c.MeanLevel), level(c.StdLevel), c.MeanLeaveOneOut, c.StdUnbiased)
		if c.Params.Eps > 0 && e.Divisor != "none" {
			e.Epsilon = c.Params.Eps
		}
	case "openclaw_step_wise":
		return c.stepwise(e)
	case "trl_normalize_then_sum":
		return c.components(e)
	case "prime_rae":
		if c.Decay != nil {
			e.Decay = factorForRecord(*c.Decay)
		}
		return c.reshape(c.groupPerRow(func(g advantageGroup, j int) string {
			if j < len(g.Agents) {
				return g.Agents[j]
			}
			return g.Key
		}), e, nil)
	case "prime_hierarchical_grpo":
		for i := range c.Groups {
			g := &c.Groups[i]
			g.Rewards = append([]*float64{g.ProposerReward}, g.Rewards...)
		}
		return c.reshape(c.groupPerRow(func(g advantageGroup, j int) string {
			if j == 0 {
				return reward.ProposerKey
			}
			return g.Key
		}), e, nil)
	case "prime_grpo_length_penalty":
		if c.LengthPenalty != nil {
			c.penalise()
		}
	}
	if len(c.RowOrder) > 0 {
		return c.reordered(e)
	}
	out, _, err := reward.Advantages(c.rewards(), e)
	return values(out), err
}

func at[T any](list []T, i int) (v T) {
	if i < len(list) {
		v = list[i]
	}
	return v
}

func (g *advantageGroup) row(j int) reward.RolloutReward {
	r := reward.RolloutReward{Length: at(g.Lengths, j), Rows: at(g.Steps, j)}
	if g.Rewards[j] == nil {
		r.Excluded = reward.ExcludedNoReward
	} else {
		r.Reward = *g.Rewards[j]
	}
	return r
}

func (c *advantageCase) rewards() []reward.GroupRewards {
	groups := make([]reward.GroupRewards, len(c.Groups))
	for i := range c.Groups {
		groups[i].Key = c.Groups[i].Key
		for j := range c.Groups[i].Rewards {
			groups[i].Rollouts = append(groups[i].Rollouts, c.Groups[i].row(j))
		}
	}
	return groups
}

// groupPerRow returns one group per row, with the key that key returns for it.
func (c *advantageCase) groupPerRow(key func(g advantageGroup, j int) string) (out []reward.GroupRewards) {
	for i := range c.Groups {
		for j := range c.Groups[i].Rewards {
			out = append(out, reward.GroupRewards{Key: key(c.Groups[i], j), Rollouts: []reward.RolloutReward{c.Groups[i].row(j)}})
		}
	}
	return out
}

// reordered computes the advantages with the rows of all groups in the order of the case.
func (c *advantageCase) reordered(e reward.Estimator) (any, error) {
	flat := c.groupPerRow(func(g advantageGroup, _ int) string { return g.Key })
	if len(c.RowOrder) != len(flat) {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "row_order"}, "%d entries for %d rows", len(c.RowOrder), len(flat))
	}
	fed := make([]reward.GroupRewards, len(flat))
	seen := make([]bool, len(flat))
	for i, row := range c.RowOrder {
		if row < 0 || row >= len(flat) || seen[row] {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "row_order"}, "entry %d is %d, expected a permutation of %d rows", i, row, len(flat))
		}
		seen[row] = true
		fed[i] = flat[row]
	}
	return c.reshape(fed, e, c.RowOrder)
}

// reshape computes the advantages of sets of one row each and returns them in the shape
// of the case. order is the row of each set; nil means in order.
func (c *advantageCase) reshape(sets []reward.GroupRewards, e reward.Estimator, order []int) (any, error) {
	out, _, err := reward.Advantages(sets, e)
	if err != nil {
		return nil, err
	}
	rows := make([]reward.Advantage, len(out))
	for i := range out {
		if order == nil {
			rows[i] = out[i][0]
		} else {
			rows[order[i]] = out[i][0]
		}
	}
	shaped := make([][]reward.Advantage, len(c.Groups))
	for i := range c.Groups {
		n := len(c.Groups[i].Rewards)
		shaped[i], rows = rows[:n], rows[n:]
	}
	return values(shaped), nil
}

func (c *advantageCase) penalise() {
	p := shaping.Spending{Output: c.LengthPenalty.Output, Input: c.LengthPenalty.Input, Turns: c.LengthPenalty.Turns}
	for i := range c.Groups {
		g := &c.Groups[i]
		rewards := make([]float64, len(g.Rewards))
		usage := make([]shaped.Usage, len(g.Rewards))
		for j, r := range g.Rewards {
			if r != nil {
				rewards[j] = *r
			}
			usage[j] = shaped.Usage{OutputTokens: at(g.OutputTokens, j), TotalTokens: at(g.TotalTokens, j), Turns: at(g.Turns, j)}
		}
		for j, r := range shaped.Spend(p, rewards, usage) {
			g.Rewards[j] = &r
		}
	}
}

func (c *advantageCase) components(e reward.Estimator) (any, error) {
	groups := make([]reward.ComponentGroup, len(c.Groups))
	for i, g := range c.Groups {
		groups[i] = reward.ComponentGroup{Key: g.Key, Rewards: g.Components}
	}
	out, err := reward.NormalizeThenSum(groups, c.Weights, e)
	return values(out), err
}

func (c *advantageCase) tokens(e reward.TokenEstimator) (any, error) {
	if c.Gamma != nil && e.Center == "none" {
		e.Discount = factorForRecord(*c.Gamma)
	}
	if c.Params.Eps > 0 && !e.Whiten.Off {
		e.Whiten.Epsilon = c.Params.Eps
	}
	if c.Params.DDoF != nil {
		e.Whiten.Population = *c.Params.DDoF == 0
	}
	groups := make([]reward.TokenGroup, len(c.Groups))
	row := 0
	for i, g := range c.Groups {
		groups[i].Key = g.Key
		for j, r := range g.Rewards {
			t := reward.TokenRollout{Baseline: at(c.Baselines, row), Mask: make([]bool, len(at(g.Masks, j)))}
			if r != nil {
				t.Reward = *r
			}
			for k, m := range at(g.Masks, j) {
				t.Mask[k] = m != 0
			}
			groups[i].Rollouts = append(groups[i].Rollouts, t)
			row++
		}
	}
	return reward.TokenAdvantages(groups, e)
}

func (c *advantageCase) stepwise(e reward.Estimator) (any, error) {
	groups := make([]reward.StepGroup, len(c.Groups))
	for i, g := range c.Groups {
		groups[i].Key = g.Key
		for _, r := range g.Rollouts {
			values := r.WithOutcome
			if values == nil {
				for _, s := range r.Scores {
					values = append(values, s+r.Outcome)
				}
			}
			// The reference truncates lists of unequal length.
			n := min(len(values), len(r.Indices), len(r.Spans))
			var steps reward.RolloutSteps
			for k := range n {
				steps.Steps = append(steps.Steps, reward.StepValue{Step: r.Indices[k], Value: values[k]})
			}
			groups[i].Rollouts = append(groups[i].Rollouts, steps)
		}
	}
	out, _, err := reward.StepAdvantages(groups, e)
	if err != nil {
		return nil, err
	}
	answer := make([][]stepwiseAnswer, len(out))
	for i := range out {
		answer[i] = make([]stepwiseAnswer, len(out[i]))
		for j := range out[i] {
			a := stepwiseAnswer{Indices: []int{}, Advantages: []float64{}, Spans: [][2]int{}}
			for k, v := range out[i][j] {
				if v.Dropped != "" {
					continue
				}
				a.Indices = append(a.Indices, groups[i].Rollouts[j].Steps[k].Step)
				a.Advantages = append(a.Advantages, v.Value)
				a.Spans = append(a.Spans, c.Groups[i].Rollouts[j].Spans[k])
			}
			a.Removed = len(a.Indices) == 0
			answer[i][j] = a
		}
	}
	return answer, nil
}

// values returns the values of rows, with nil for dropped ones.
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

// factorForRecord returns a factor for a record in which 0 stands for the default: it replaces 0
// by the smallest positive number, which reduces any reward to nothing.
func factorForRecord(factor float64) float64 {
	if factor == 0 {
		return math.SmallestNonzeroFloat64
	}
	return factor
}

func level(s *string) reward.Choice {
	switch {
	case s == nil:
		return "none"
	case *s == "batch":
		return "batch"
	}
	return ""
}
