package export

import (
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

// derive checks the column lengths of a row that was read, and fills Weight, Source, Flags and
// Turn. flags is nil in a file without a trace.
func derive(s *rollout.Sample, mask, flags []int32) error {
	if err := checkRead(s, mask, flags); err != nil {
		return err
	}
	if err := deriveWeight(s, mask); err != nil {
		return err
	}
	if s.Source != nil && flags != nil {
		if err := checkOrigin(s, flags); err != nil {
			return err
		}
	} else {
		flags, s.Source = nil, make([]int32, s.Len())
		for t := range s.Source {
			s.Source[t] = -1
		}
	}
	deriveFlags(s, mask, flags)
	deriveTurn(s, mask, flags != nil)
	return nil
}

func checkRead(s *rollout.Sample, mask, flags []int32) error {
	n := s.Len()
	for _, c := range []struct {
		name string
		len  int
		null bool
	}{
		{col.LossMask, len(mask), false}, {col.Logprobs, len(s.Logprob), s.Logprob == nil}, {col.Weights, len(s.Weight), s.Weight == nil},
		{col.Advantages, len(s.Credit), s.Credit == nil}, {col.Versions, len(s.Version), s.Version == nil},
		{col.Sources, len(s.Source), s.Source == nil}, {col.Flags, len(flags), flags == nil},
	} {
		if !c.null && c.len != n {
			return rollout.Errorf(rollout.KindFormat, rollout.Where{Field: c.name}, "row %q has %d values for %d tokens", s.ID, c.len, n)
		}
	}
	return nil
}

// checkOrigin checks the values of the columns sources and flags.
func checkOrigin(s *rollout.Sample, flags []int32) error {
	for t, f := range flags {
		if s.Source[t] < -1 || f < 0 {
			return rollout.Errorf(rollout.KindFormat, rollout.Where{Field: col.Sources, Token: rollout.At(t)}, "row %q: source %d with flags %d is no origin", s.ID, s.Source[t], f)
		}
	}
	return nil
}

// deriveWeight sets the weights to the mask, or checks that existing weights agree with it.
func deriveWeight(s *rollout.Sample, mask []int32) error {
	weights := s.Weight != nil
	if !weights {
		s.Weight = make([]float32, s.Len())
	}
	for t, m := range mask {
		if m != 0 && m != 1 || weights && (s.Weight[t] > 0) != (m == 1) {
			return rollout.Errorf(rollout.KindFormat, rollout.Where{Field: col.LossMask, Token: rollout.At(t)}, "row %q: the mask is %d and does not fit 0, 1 or the weight", s.ID, m)
		}
		if !weights {
			s.Weight[t] = float32(m)
		}
	}
	return nil
}

// deriveFlags sets the recorded flags or, without a trace, marks as sampled the tokens that are
// trained or have a policy version.
func deriveFlags(s *rollout.Sample, mask, flags []int32) {
	s.Flags = make([]rollout.Flag, s.Len())
	for t := range s.Flags {
		switch {
		case flags != nil:
			s.Flags[t] = rollout.Flag(flags[t])
		case mask[t] == 1 || s.Version != nil && s.Version[t] >= 0:
			s.Flags[t] = rollout.FlagSampled
		}
	}
}

// deriveTurn sets the agent step of each token. A step begins with a run of trained tokens or,
// in a row with a trace, with the first sampled token of a message.
func deriveTurn(s *rollout.Sample, mask []int32, traced bool) {
	begins := func(t int) bool { return mask[t] == 1 && (t == 0 || mask[t-1] == 0) }
	if traced {
		last := int32(-1)
		starts := make([]bool, s.Len())
		for t, f := range s.Flags {
			if f&rollout.FlagSampled != 0 {
				starts[t] = s.Source[t] != last
				last = s.Source[t]
			}
		}
		begins = func(t int) bool { return starts[t] }
	}
	steps := 0
	for t := range mask {
		if begins(t) {
			steps++
		}
	}
	exact := steps == s.LastStep-s.FirstStep+1
	step := max(0, s.FirstStep) - 1
	s.Turn = make([]int32, s.Len())
	for t := range s.Turn {
		s.Turn[t] = -1
		if exact && begins(t) {
			step++
		}
		if s.Flags[t]&rollout.FlagSampled != 0 {
			s.Turn[t] = int32(max(step, s.FirstStep, 0))
		}
	}
}
