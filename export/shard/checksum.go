package shard

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/turnpack/turnpack/rollout"
)

// checksum adds everything that decides the row's bytes.
func (c *current) checksum(s *rollout.Sample, traced bool) {
	b := c.buf[:0]
	le := binary.LittleEndian
	b = fmt.Appendf(b, "%q%q%d %d %v %d %d %d %x %x %v %q%q%d %x%q", s.Rollout, s.Group, s.RolloutIndex, s.SampleIndex, s.IsLast, s.FirstStep, s.LastStep,
		s.PromptLen, math.Float64bits(s.Reward), math.Float64bits(s.OutcomeReward), s.Status, s.FinishReason, s.MaskReason, s.RolloutMaskSum,
		math.Float32bits(s.Temperature), s.Metadata)
	for _, p := range []*float64{s.StepReward, s.Advantage} {
		if p != nil {
			b = le.AppendUint64(append(b, 1), math.Float64bits(*p))
		}
		b = append(b, 0)
	}
	for _, ints := range [][]int32{s.IDs, s.Version} {
		b = le.AppendUint64(b, uint64(len(ints)))
		for _, v := range ints {
			b = le.AppendUint32(b, uint32(v))
		}
	}
	for _, floats := range [][]float32{s.Weight, s.Logprob, s.Credit} {
		b = le.AppendUint64(b, uint64(len(floats)))
		for _, v := range floats {
			b = le.AppendUint32(b, math.Float32bits(v))
		}
	}
	if traced { // else the file holds neither
		for _, v := range s.Source {
			b = le.AppendUint32(b, uint32(v))
		}
		for _, f := range s.Flags {
			b = append(b, byte(f))
		}
	}
	_, _ = c.crc.Write(b)
	c.buf = b
}
