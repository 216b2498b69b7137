package rewards

import (
	"encoding/json"
	"math"

	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/filter"
	"github.com/turnpack/turnpack/reward/offpolicy"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

// shapeCase is one line of any file of the shaping kit except the group filters. The
// fields present determine the rule.
type shapeCase struct {
	Rule string `json:"rule"`

	MaxLen      *int      `json:"max_len"`
	Cache       int       `json:"cache"`
	Penalty     float64   `json:"penalty"`
	Lengths     []int     `json:"lengths"`
	BaseRewards []float64 `json:"base_rewards"`

	Rewards       []rewardValue       `json:"rewards"`
	Truncated     []bool              `json:"truncated"`
	Coef          float64             `json:"coef"`
	StopReasons   []*string           `json:"stop_reasons"`
	CompletionIDs [][]rollout.TokenID `json:"completion_ids"`
	NGram         int                 `json:"ngram"`
	MaxPenalty    float64             `json:"max_penalty"`

	Advantages        []float64        `json:"advantages"`
	Rows              [][]shapeMessage `json:"rows"`
	InvalidToolCall   *float64         `json:"invalid_tool_call_advantage"`
	MalformedThinking *float64         `json:"malformed_thinking_advantage"`
	ClipLow           *float64         `json:"clip_low"`
	ClipHigh          *float64         `json:"clip_high"`

	Masks           [][]int8    `json:"masks"`
	TrainLogprobs   [][]float64 `json:"train_logprobs"`
	RolloutLogprobs [][]float64 `json:"rollout_logprobs"`
}

// rewardValue is one reward per rollout, or a list of rewards.
type rewardValue struct {
	values []float64
	list   bool
}

func (r *rewardValue) UnmarshalJSON(b []byte) error {
	if r.list = len(b) > 0 && b[0] == '['; r.list {
		return json.Unmarshal(b, &r.values)
	}
	r.values = make([]float64, 1)
	return json.Unmarshal(b, &r.values[0])
}

func (r rewardValue) MarshalJSON() ([]byte, error) {
	if r.list {
		return json.Marshal(r.values)
	}
	return json.Marshal(r.values[0])
}

type shapeMessage struct {
	Role              string `json:"role"`
	Tokens            int    `json:"tokens"`
	Sampled           bool   `json:"sampled"`
	InvalidToolCall   bool   `json:"invalid_tool_call"`
	MalformedThinking bool   `json:"malformed_thinking"`
}

func shapeLine(c *shapeCase) (any, error) {
	expected := func(v any) (any, error) { return map[string]any{"expected": v}, nil }
	switch {
	case c.MaxLen != nil:
		return c.length()
	case c.Rule == "nemo_stop_properly":
		out := c.Rewards
		for i, r := range out {
			for j := range r.values {
				r.values[j] = shaped.Truncated(r.values[j], at(c.Truncated, i), c.Coef)
			}
		}
		return expected(out)
	case c.Rule == "skyrl_stop_reason":
		return c.stopReason(), nil
	case c.Rule == "trl_repetition_penalty":
		out := make([]float64, len(c.CompletionIDs))
		for i, ids := range c.CompletionIDs {
			out[i] = shaped.Repetition(ids, c.NGram, c.MaxPenalty)
		}
		return expected(out)
	case c.Rule != "":
		return nil, pipe.Unsupported("shaping rule " + c.Rule)
	case c.Rows != nil:
		return c.override()
	case c.TrainLogprobs != nil:
		return c.offPolicy()
	}
	return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "the line has none of max_len, rule, rows and train_logprobs").
		WithFix("give a case of the shaping kit")
}

func (c *shapeCase) length() (any, error) {
	soft := shaping.Overlong{Max: *c.MaxLen, Cache: c.Cache, Penalty: 1}
	unbounded := shaping.Overlong{Max: *c.MaxLen, Cache: c.Cache, Penalty: c.Penalty, Unbounded: true}
	if err := unbounded.Validate(); err != nil {
		return nil, err
	}
	punishment, shaped := make([]float64, len(c.Lengths)), make([]float64, len(c.Lengths))
	for i, n := range c.Lengths {
		punishment[i] = soft.Punishment(n)
		shaped[i] = at(c.BaseRewards, i) + unbounded.Punishment(n)
	}
	return map[string]any{"trl_punishment": punishment, "verl_reward": shaped, "nemo_reward": shaped}, nil
}

func (c *shapeCase) stopReason() any {
	rewards, masks := c.Rewards, make([][]int8, len(c.Masks))
	for i := range c.Masks {
		reason := ""
		if r := at(c.StopReasons, i); r != nil {
			reason = *r
		}
		r, mask := shaped.ZeroOnNonStop(reason, at(c.Rewards, i).values, bools(c.Masks[i]))
		masks[i] = bits(mask)
		if i < len(rewards) {
			rewards[i].values = r
		}
	}
	return map[string]any{"masks": masks, "rewards": rewards}
}

// maxShapeTokens is the largest number of tokens in a case; the answer has a number for
// each.
const maxShapeTokens = 1 << 24

func (c *shapeCase) override() (any, error) {
	e := reward.Estimator{
		Override: reward.Override{InvalidToolCall: c.InvalidToolCall, MalformedThinking: c.MalformedThinking},
		Clip:     &reward.Range{Low: math.Inf(-1), High: math.Inf(1)},
	}
	if c.ClipLow != nil {
		e.Clip.Low = *c.ClipLow
	}
	if c.ClipHigh != nil {
		e.Clip.High = *c.ClipHigh
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	out := make([][]float64, len(c.Rows))
	left := maxShapeTokens
	for i, messages := range c.Rows {
		out[i] = []float64{}
		for j, m := range messages {
			if m.Tokens < 0 || m.Tokens > left {
				return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "tokens"}, "row %d, message %d: expected 0 to %d tokens, found %d", i, j, left, m.Tokens)
			}
			left -= m.Tokens
			flags := reward.MessageFlags{}
			if m.Sampled && m.Role == string(rollout.RoleAssistant) {
				flags = reward.MessageFlags{InvalidToolCall: m.InvalidToolCall, MalformedThinking: m.MalformedThinking}
			}
			v := e.MessageAdvantage(at(c.Advantages, i), flags)
			for range m.Tokens {
				out[i] = append(out[i], v)
			}
		}
	}
	return map[string]any{"expected": out}, nil
}

func (c *shapeCase) offPolicy() (any, error) {
	rows := make([]offpolicy.Row, len(c.Masks))
	for i, m := range c.Masks {
		rows[i] = offpolicy.Row{Mask: bools(m), Train: at(c.TrainLogprobs, i), Rollout: at(c.RolloutLogprobs, i)}
	}
	out := map[string]any{}
	for _, w := range []struct {
		name string
		c    offpolicy.Correction
	}{
		{"verl_is_token_2.0", offpolicy.Correction{High: 2, MaxLog: 20, CountEpsilon: 1e-8}},
		{"verl_is_token_0.5_5.0", offpolicy.Correction{Low: 0.5, High: 5, Drop: true, MaxLog: 20, CountEpsilon: 1e-8}},
		{"verl_is_token_2.0_batchnorm", offpolicy.Correction{High: 2, MaxLog: 20, Normalize: true, CountEpsilon: 1e-8}},
		{"verl_is_sequence_2.0", offpolicy.Correction{Sequence: true, High: 2, MaxLog: 20, CountEpsilon: 1e-8}},
		{"verl_is_sequence_0.5_5.0", offpolicy.Correction{Sequence: true, Low: 0.5, High: 5, Drop: true, MaxLog: 20, CountEpsilon: 1e-8}},
		{"verl_is_sequence_2.0_batchnorm", offpolicy.Correction{Sequence: true, High: 2, MaxLog: 20, Normalize: true, CountEpsilon: 1e-8}},
		{"trl_sequence_mask_None_3.0", offpolicy.Correction{Sequence: true, High: 3, Drop: true, Untrained: "unit"}},
		{"trl_token_mask_None_3.0", offpolicy.Correction{High: 3, Drop: true, Untrained: "unit"}},
		{"trl_token_truncate_None_3.0", offpolicy.Correction{High: 3, Untrained: "unit"}},
		{"trl_sequence_truncate_0.5_3.0", offpolicy.Correction{Sequence: true, Low: 0.5, High: 3, Untrained: "unit"}},
		{"slime_tis_0_2", offpolicy.Correction{High: 2, Untrained: "ratio"}},
		{"slime_icepop_0.5_5", offpolicy.Correction{Low: 0.5, High: 5, Drop: true, Untrained: "ratio"}},
	} {
		weights, err := offpolicy.Weights(rows, w.c)
		if err != nil {
			return nil, err
		}
		out[w.name] = weights
	}
	token := offpolicy.Rejection{Estimator: "k1", Low: 0.5, High: 2}
	for _, k := range []struct {
		name  string
		rules []offpolicy.Rejection
	}{
		{"verl_rs_token_k1_0.5_2.0", []offpolicy.Rejection{token}},
		{"verl_rs_token_k2_0.1", []offpolicy.Rejection{{Estimator: "k2", High: 0.1}}},
		{"verl_rs_token_k3_0.1", []offpolicy.Rejection{{Estimator: "k3", High: 0.1}}},
		{"verl_rs_seq_sum_k1_0.5_2.0", []offpolicy.Rejection{{Estimator: "k1", Over: "sum", Low: 0.5, High: 2}}},
		{"verl_rs_seq_mean_k1_0.99_1.01", []offpolicy.Rejection{{Estimator: "k1", Over: "mean", Low: 0.99, High: 1.01}}},
		{"verl_rs_seq_mean_k3_0.05", []offpolicy.Rejection{{Estimator: "k3", Over: "mean", High: 0.05}}},
		{"verl_rs_seq_max_k2_0.5", []offpolicy.Rejection{{Estimator: "k2", Over: "max", High: 0.5}}},
		{"verl_rs_token_k1,seq_mean_k3_0.5_2.0,0.2", []offpolicy.Rejection{token, {Estimator: "k3", Over: "mean", High: 0.2}}},
	} {
		keep, err := offpolicy.Keep(rows, k.rules...)
		if err != nil {
			return nil, err
		}
		masks := make([][]int8, len(keep))
		for i := range keep {
			masks[i] = bits(keep[i])
		}
		out[k.name] = masks
	}
	return out, nil
}

func bools(mask []int8) []bool {
	out := make([]bool, len(mask))
	for i, m := range mask {
		out[i] = m != 0
	}
	return out
}

func bits(mask []bool) []int8 {
	out := make([]int8, len(mask))
	for i, on := range mask {
		if on {
			out[i] = 1
		}
	}
	return out
}

// filterCase is one line of the group filters of the shaping kit.
type filterCase struct {
	Groups [][]float64 `json:"groups"`
	Live   [][]bool    `json:"live"`
}

func filterLine(c *filterCase) (any, error) {
	rules := map[string]filter.Rule{}
	for _, r := range filter.Presets() {
		rules[r.Name] = r
	}
	skyrl := rules["skyrl@a9564572e"]
	tolerant, live := skyrl, skyrl
	tolerant.Tolerance, tolerant.Exact = 1e-6, false
	live.Tolerance, live.Exact, live.LiveOnly = 1e-6, false, true
	out := map[string]any{}
	for _, f := range []struct {
		name string
		rule filter.Rule
	}{
		{"slime_keep", rules["slime@624b824a8"]},
		{"openclaw_keep", rules["openclaw@0d034dd5e"]},
		{"verl_keep", rules["verl@1dda039b9"]},
		{"nemo_keep_rows_loo", rules["nemo_loo@7ea279abf"]},
		{"nemo_keep_rows_group", rules["nemo_group@7ea279abf"]},
		{"skyrl_keep_tol0", skyrl},
		{"skyrl_keep_tol1e-6", tolerant},
		{"skyrl_keep_live_tol1e-6", live},
		{"openclaw_drop_constant_keep", rules["openclaw_drop_constant@0d034dd5e"]},
	} {
		decisions, _, err := filter.Apply(c.groups(), f.rule)
		if err != nil {
			return nil, err
		}
		keep, rows := make([]bool, len(decisions)), make([][]bool, len(decisions))
		for i, d := range decisions {
			keep[i], rows[i] = d.Keep, d.Rows
		}
		if out[f.name] = keep; f.rule.Test == "row_deviation" || f.rule.Test == "row_deviation_group" {
			out[f.name] = rows
		}
	}
	return out, nil
}

func (c *filterCase) groups() []filter.Group {
	groups := make([]filter.Group, len(c.Groups))
	for i, rewards := range c.Groups {
		groups[i] = filter.Group{Rewards: rewards, Live: at(c.Live, i)}
	}
	return groups
}
