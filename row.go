package turnpack

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/turnpack/turnpack/internal/rowsteps"
	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// credits holds what the tokens of a rollout's rows are given.
type credits struct {
	at        rolloutAt
	reward    rollout.Reward
	applied   []shaped.Applied
	advantage reward.Advantage
	flags     map[int]reward.MessageFlags
	// parts gives the tokens of a row the advantages of their steps or tokens; nil = one for the
	// rollout.
	parts    func(rollout.Sequence) (rollout.Sequence, int, error)
	unscored int64 // tokens left out because their step has no advantage
	// With parts: the sum of the advantages of trained tokens, and their number.
	sum float64
	n   int
}

// sample makes the row of a sequence, which may be held as runs.
func (x *run) sample(r *rollout.Rollout, key string, made spool.Row, c *credits) (rollout.Sample, error) {
	seq, err := lossmask.Apply(made.Sequence, x.Mask)
	if err != nil {
		return rollout.Sample{}, err
	}
	if !x.logprobs {
		seq.Logprob = nil
	}
	switch {
	case !x.versions:
		seq.Version = nil
	case x.PolicyVersion != nil:
		fillVersions(&seq, *x.PolicyVersion)
	}
	seq.Group = key
	trained := func() int {
		made.Sequence = seq
		return made.Trained()
	}
	if c.parts != nil {
		before := trained()
		if seq, _, err = c.parts(seq); err != nil {
			return rollout.Sample{}, err
		}
		c.unscored += int64(before - trained())
	}
	turns := rollout.TurnsOf(r)
	boundTurns(&seq, turns)
	s := rollout.Sample{
		RolloutIndex: int(c.at.index), Reward: c.reward.Total, OutcomeReward: c.reward.Outcome,
		Status: r.Status, FinishReason: finishReason(r, turns, seq.LastTurn), Temperature: x.temperature(r, seq.LastTurn),
		StepReward: stepReward(r, turns, &seq),
	}
	if !x.NoAdvantages {
		value := c.advantage.Value
		switch {
		case c.parts != nil:
			n := trained()
			value = made.MeanCredit()
			c.sum, c.n = c.sum+value*float64(n), c.n+n
		case len(c.flags) == 0:
			seq, err = reward.Credit(seq, value)
		default:
			seq, err = reward.CreditMessages(seq, value, c.flags, x.overrides())
			value = x.rowAdvantage(&seq, value, c.flags)
		}
		if err != nil {
			return s, err
		}
		s.Advantage = &value
	}
	s.Sequence, made.Sequence = seq, seq
	if s.Metadata, err = x.metadata(r, &made, c); err != nil {
		return s, err
	}
	return s, nil
}

// finishReason returns the recorded finish reason of the row's last turn; if there is none, "limit"
// for the last turn of a truncated rollout, else "".
func finishReason(r *rollout.Rollout, turns []rollout.Turn, turn int) string {
	if turn < 0 || turn >= len(turns) {
		return ""
	}
	if why := turns[turn].FinishReason; why != "" {
		return why
	}
	if turn == len(turns)-1 && r.Status == rollout.StatusTruncated {
		return "limit"
	}
	return ""
}

// fillVersions sets the policy version of trained tokens that have none.
func fillVersions(seq *rollout.Sequence, version int32) {
	v := slices.Clone(seq.Version)
	if v == nil {
		v = slices.Repeat([]int32{-1}, seq.Len())
	}
	for i := range v {
		if v[i] < 0 && seq.Weight[i] > 0 {
			v[i] = version
		}
	}
	seq.Version = v
}

// boundTurns sets the first and last turn and step of seq to those with a trained token.
func boundTurns(seq *rollout.Sequence, turns []rollout.Turn) {
	seq.FirstTurn, seq.LastTurn, seq.FirstStep, seq.LastStep = -1, -1, -1, -1
	for i, t := range seq.Turn {
		if seq.Weight[i] == 0 || t < 0 || int(t) >= len(turns) {
			continue
		}
		turn, step := int(t), turns[t].Step
		if seq.FirstTurn < 0 {
			seq.FirstTurn, seq.FirstStep = turn, step
		}
		seq.FirstTurn, seq.LastTurn = min(seq.FirstTurn, turn), max(seq.LastTurn, turn)
		seq.FirstStep, seq.LastStep = min(seq.FirstStep, step), max(seq.LastStep, step)
	}
}

// stepReward returns the mean score of the steps whose tokens the row trains, nil if none has a
// score.
func stepReward(r *rollout.Rollout, turns []rollout.Turn, seq *rollout.Sequence) *float64 {
	if len(r.Steps) == 0 {
		return nil
	}
	owned := map[int]bool{}
	for i, t := range seq.Turn {
		if seq.Weight[i] > 0 && t >= 0 && int(t) < len(turns) {
			owned[turns[t].Step] = true
		}
	}
	scores := slices.DeleteFunc(slices.Clone(r.Steps), func(s rollout.StepScore) bool { return !owned[s.Step] })
	mean, n := reward.MeanStep(scores)
	if n == 0 || math.IsNaN(mean) {
		return nil
	}
	return &mean
}

// metadata returns the rollout's metadata with the row's own under the key turnpack.
func (x *run) metadata(r *rollout.Rollout, row *spool.Row, c *credits) (json.RawMessage, error) {
	seq := &row.Sequence
	own := ownMetadata{Fidelity: string(seq.Fidelity), Format: r.Origin.Format, Instance: r.Instance, OutcomeReason: r.Outcome.Reason, Shaped: c.applied}
	if x.stepwise() && c.parts != nil {
		own.Steps = rowsteps.Of(row, r, reward.StepsOf(r, c.reward.Total, x.Scale.StepCoef))
	}
	if r.TemperatureAt(seq.LastTurn) == nil {
		if own.Temperature = "assumed"; x.Temperature > 0 {
			own.Temperature = "given"
		}
	}
	if x.Trace {
		own.Roles = roles(r, seq)
	}
	b, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	m := map[string]json.RawMessage{}
	maps.Copy(m, r.Metadata)
	m["turnpack"] = b
	return json.Marshal(m)
}

// ownMetadata is the row's own metadata, with keys in alphabetical order.
type ownMetadata struct {
	Fidelity      string           `json:"fidelity"`
	Format        string           `json:"format,omitempty"`
	Instance      string           `json:"instance,omitempty"`
	OutcomeReason string           `json:"outcome_reason,omitempty"`
	Roles         any              `json:"roles,omitempty"`
	Shaped        []shaped.Applied `json:"shaped,omitempty"`
	Steps         any              `json:"steps,omitempty"`
	Temperature   string           `json:"temperature,omitempty"`
}

// roles returns the roles of r's messages up to the last one that seq has tokens of.
func roles(r *rollout.Rollout, seq *rollout.Sequence) []rollout.Role {
	out := []rollout.Role{}
	for _, m := range seq.Source {
		for len(out) <= int(m) {
			out = append(out, r.Messages[len(out)].Role)
		}
	}
	return out
}
