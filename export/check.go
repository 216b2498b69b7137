package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

// refuse returns the error for a refused row. token is the token's position, or −1 for the
// whole row.
func refuse(s *rollout.Sample, column, rule string, token int, fix, format string, args ...any) error {
	where := rollout.Where{Rollout: s.Rollout, Field: column}
	if token >= 0 {
		where.Token = rollout.At(token)
	}
	id := cmp.Or(s.ID, rollout.SampleID(s.Rollout, s.SampleIndex))
	e := rollout.Errorf(rollout.KindInput, where, "row %q: %s [%s]", id, fmt.Sprintf(format, args...), numbered(rule)).WithFix("%s", fix)
	e.Err = &RefusedError{Sample: id, Column: column, Rule: rule}
	return e
}

// Refuse returns the error for a row that breaks a rule, for packages built on this one. The
// error names the row, the column and the rule; fix says what to do.
func Refuse(s *rollout.Sample, column, rule, fix, format string, args ...any) error {
	return refuse(s, column, rule, -1, fix, format, args...)
}

// check applies the rules that concern a single row of a file with the optional columns c, and
// returns the first violation.
func (o *Options) check(s *rollout.Sample, c Columns) (maskFacts, error) {
	if err := checkIdentity(s); err != nil {
		return maskFacts{}, err
	}
	if err := o.checkLengths(s, c); err != nil {
		return maskFacts{}, err
	}
	m, err := checkMask(s)
	if err != nil {
		return m, err
	}
	if m.weighted && !c.Weights && o.Columns == nil {
		return m, refuse(s, col.Weights, ruleColumns, -1, "set Options.Weighted, or name the file's columns in Options.Columns", "the row has weights other than 0 and 1 and the first row of the file has not")
	}
	return m, o.checkRest(s, c, m)
}

// checkTrace checks the columns that Options.Trace adds.
func (o *Options) checkTrace(s *rollout.Sample) error {
	if !o.Trace {
		return nil
	}
	for t, m := range s.Source {
		if m < -1 {
			return refuse(s, col.Sources, ruleIdentity, t, "use -1 for what the template wrote", "message index %d is below -1", m)
		}
		if s.Flags[t] > math.MaxInt8 {
			return refuse(s, col.Flags, ruleIdentity, t, "use the flags of package rollout", "flags %d are not known", s.Flags[t])
		}
	}
	return nil
}

// checkRest applies the rules that need the mask to be valid.
func (o *Options) checkRest(s *rollout.Sample, c Columns, m maskFacts) error {
	first, last := m.first, m.last
	switch {
	case first < 0 && !o.KeepUntrained:
		return refuse(s, col.LossMask, ruleTrained, -1, "leave the row out (rollout.FinishRows does) or set Options.KeepUntrained for a file that is only looked at",
			"none of its %d tokens is trained", s.Len())
	case first >= 0 && last != s.Len()-1 && !o.KeepTail:
		return refuse(s, col.InputIDs, ruleTail, last, "cut the row after its last trained token (rollout.FinishRows does) or set Options.KeepTail",
			"%d tokens follow the last trained one", s.Len()-1-last)
	}
	limit := s.Len()
	if first >= 0 {
		limit = first
	}
	if s.PromptLen < 1 || s.PromptLen > limit {
		return refuse(s, col.PromptLen, rulePrompt, -1, "set it to the number of tokens before the first trained or sampled one (rollout.FinishRows does)",
			"prompt_len is %d, expected 1 to %d", s.PromptLen, limit)
	}
	if err := checkTokens(s, c); err != nil {
		return err
	}
	if err := o.checkTrace(s); err != nil {
		return err
	}
	return o.checkScalars(s, c)
}

func checkIdentity(s *rollout.Sample) error {
	for _, id := range []struct{ column, value string }{{col.GroupID, s.Group}, {col.RolloutID, s.Rollout}} {
		if id.value == "" {
			return refuse(s, id.column, ruleIdentity, -1, "give every rollout an id and a group", "it is empty")
		}
	}
	for _, text := range []struct{ column, value string }{
		{col.GroupID, s.Group}, {col.RolloutID, s.Rollout}, {col.FinishReason, s.FinishReason}, {col.MaskReason, s.MaskReason}, {col.Metadata, string(s.Metadata)},
	} {
		if !utf8.ValidString(text.value) {
			return refuse(s, text.column, ruleIdentity, -1, "replace the bytes that are not UTF-8", "%q is not valid UTF-8", text.value)
		}
	}
	if s.SampleIndex < 0 || s.SampleIndex > math.MaxInt32 {
		return refuse(s, col.SampleIndex, ruleIdentity, -1, "number the rows of a rollout from 0", "it is %d", s.SampleIndex)
	}
	if want := rollout.SampleID(s.Rollout, s.SampleIndex); s.ID != want {
		return refuse(s, col.SampleID, ruleIdentity, -1, "leave Sample.ID empty to have it made", "expected %q", want)
	}
	if s.RolloutIndex < 0 || s.RolloutIndex > math.MaxInt32 {
		return refuse(s, col.RolloutIndex, ruleIdentity, -1, "number the rollouts of a group from 0", "it is %d", s.RolloutIndex)
	}
	if a, b := s.FirstStep, s.LastStep; (a < 0 || b < a || b > math.MaxInt32) && (a != -1 || b != -1) {
		return refuse(s, col.StepFirst, ruleIdentity, -1, "give the first and the last step that the row trains, or -1 for both", "steps %d to %d are no range", a, b)
	}
	return nil
}

func (o *Options) checkLengths(s *rollout.Sample, c Columns) error {
	n := s.Len()
	if n == 0 {
		return refuse(s, col.InputIDs, ruleTrained, -1, "leave the row out", "it has no tokens")
	}
	if s.Weight == nil {
		return refuse(s, col.LossMask, ruleAligned, -1, "apply a loss mask policy first", "the row has no loss weights")
	}
	has := columnsOf(s)
	has.Weights, c.Weights = true, true // checkMask checks the weights column
	for i, col := range []struct {
		name string
		len  int
	}{{col.Logprobs, len(s.Logprob)}, {col.Weights, len(s.Weight)}, {col.Advantages, len(s.Credit)}, {col.Versions, len(s.Version)}, {col.Advantage, n}} {
		on, here := *c.fields()[i], *has.fields()[i]
		if here && !on && o.Columns == nil {
			return refuse(s, col.name, ruleColumns, -1, "name the file's columns in Options.Columns", "the row has this column and the first row of the file has not")
		}
		switch {
		case on && !here:
			return refuse(s, col.name, ruleColumns, -1, "give it to every row or to none; Options.Columns says which a file has",
				"the file has this column and the row does not")
		case here && col.len != n:
			return refuse(s, col.name, ruleAligned, -1, "give one value per token", "it has %d values for %d tokens", col.len, n)
		}
	}
	if o.Trace && (len(s.Source) != n || len(s.Flags) != n) {
		return refuse(s, col.Sources, ruleColumns, -1, "write rows of package tokenize, or leave Options.Trace off",
			"there are %d sources and %d flag sets for %d tokens", len(s.Source), len(s.Flags), n)
	}
	if s.Flags != nil && len(s.Flags) != n {
		return refuse(s, col.InputIDs, ruleAligned, -1, "give one flag set per token", "there are %d flag sets for %d tokens", len(s.Flags), n)
	}
	return nil
}

// maskFacts is what checkMask learns from the loss weights.
type maskFacts struct {
	first, last int // positions of the first and last trained token, −1 = none
	trained     int
	weighted    bool // some weight is neither 0 nor 1
}

func checkMask(s *rollout.Sample) (maskFacts, error) {
	m := maskFacts{first: -1, last: -1}
	for t, w := range s.Weight {
		if w == 0 {
			continue
		}
		if !(w > 0) || w > math.MaxFloat32 {
			return m, refuse(s, col.Weights, ruleWeights, t, "use finite weights, 0 for masked tokens", "weight %g is not a finite number >= 0", w)
		}
		if m.first < 0 {
			m.first = t
		}
		m.last = t
		m.trained++
		if w != 1 {
			m.weighted = true
		}
	}
	if m.first == 0 {
		return m, refuse(s, col.LossMask, rulePrompt, 0, "put a context token before it or mask it", "the first token is trained: nothing before it predicts it")
	}
	return m, nil
}

func checkTokens(s *rollout.Sample, c Columns) error {
	var sign int32
	for _, id := range s.IDs {
		sign |= id
	}
	if sign < 0 {
		for t, id := range s.IDs {
			if id >= 0 {
				continue
			}
			return refuse(s, col.InputIDs, ruleIdentity, t, "encode the row again", "token id %d is negative", id)
		}
	}
	if c.Logprobs {
		for t, lp := range s.Logprob {
			if s.Weight[t] > 0 && !(lp <= 0 && lp >= -math.MaxFloat32) {
				return refuse(s, col.Logprobs, ruleSampling, t, "record natural-log probabilities of the sampled tokens or leave the column out",
					"log probability %g is not in (-inf, 0]", lp)
			}
		}
	}
	if c.Advantages {
		for t, a := range s.Credit {
			if a-a != 0 {
				return refuse(s, col.Advantages, ruleAdvantage, t, "exclude the rollout from the group statistics", "advantage %g is not finite", a)
			}
		}
	}
	if c.Versions {
		for t, v := range s.Version {
			if v < -1 {
				return refuse(s, col.Versions, ruleSampling, t, "use -1 where a token was not sampled", "policy version %d is below -1", v)
			}
		}
	}
	return nil
}

func (o *Options) checkScalars(s *rollout.Sample, c Columns) error {
	if t := s.Temperature; !(t >= 0 && t <= math.MaxFloat32) {
		return refuse(s, col.Temperature, ruleSampling, -1, "set the temperature the row was sampled with", "temperature %g is not a finite number >= 0", t)
	}
	for _, v := range []struct {
		column, rule string
		value        *float64
	}{{col.Reward, ruleIdentity, &s.Reward}, {col.OutcomeReward, ruleIdentity, &s.OutcomeReward}, {col.StepReward, ruleIdentity, s.StepReward}, {col.Advantage, ruleAdvantage, s.Advantage}} {
		if v.value == nil {
			continue
		}
		if f := float32(*v.value); f-f != 0 {
			return refuse(s, v.column, v.rule, -1, "exclude the rollout or repair its score", "%g is not a finite 32-bit number", *v.value)
		}
	}
	if c.Advantages && !c.Advantage {
		return refuse(s, col.Advantage, ruleAdvantage, -1, "set Sample.Advantage: most trainers take nothing else", "the row has per-token advantages and no scalar one")
	}
	if o.status(s) == rollout.StatusUnknown || s.Status > rollout.StatusFailed {
		return refuse(s, col.Status, ruleIdentity, -1, "set Options.UnknownStatus to say how such rollouts count",
			"status %v is none of completed, truncated, aborted, failed", s.Status)
	}
	if len(s.Metadata) > 0 && (!json.Valid(s.Metadata) || bytes.TrimLeft(s.Metadata, " \t\r\n")[0] != '{') {
		return refuse(s, col.Metadata, ruleIdentity, -1, "give a JSON object", "%.40q is not a JSON object", s.Metadata)
	}
	return nil
}

func (o *Options) status(s *rollout.Sample) rollout.Status {
	if s.Status == rollout.StatusUnknown {
		return o.UnknownStatus
	}
	return s.Status
}
