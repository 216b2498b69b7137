package shard

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/turnpack/turnpack/internal/spool"
)

// checksum adds everything that decides the row's bytes, numbers as the file holds them.
func (c *current) checksum(r *spool.Row, traced bool) {
	s := &r.Sample
	le := binary.LittleEndian
	c.buf = fmt.Appendf(c.buf[:0], "%q%q%d %d %v %d %d %d %x %x %v %q%q%d %x%q", s.Rollout, s.Group, s.RolloutIndex, s.SampleIndex, s.IsLast, s.FirstStep, s.LastStep,
		s.PromptLen, math.Float32bits(float32(s.Reward)), math.Float32bits(float32(s.OutcomeReward)), s.Status, s.FinishReason, s.MaskReason, s.RolloutMaskSum,
		math.Float32bits(s.Temperature), s.Metadata)
	for _, p := range []*float64{s.StepReward, s.Advantage} {
		if p != nil {
			c.buf = le.AppendUint32(append(c.buf, 1), math.Float32bits(float32(*p)))
		}
		c.buf = append(c.buf, 0)
	}
	ids, logprobs := s.IDs, s.Logprob
	if r.Lens != nil {
		ids, logprobs = r.Tokens, r.Logprobs
	}
	c.counted(int64(len(ids)))
	column(c, ids, nil, func(v int32) uint32 { return uint32(v) })
	counts := func(there bool) {
		n := 0
		if there {
			n = r.Len()
		}
		c.counted(int64(n))
	}
	counts(s.Version != nil)
	column(c, s.Version, r.Lens, func(v int32) uint32 { return uint32(v) })
	counts(s.Weight != nil)
	column(c, s.Weight, r.Lens, math.Float32bits)
	c.counted(int64(len(logprobs)))
	column(c, logprobs, nil, math.Float32bits)
	counts(s.Credit != nil)
	column(c, s.Credit, r.Lens, math.Float32bits)
	if traced { // else the file holds neither
		column(c, s.Source, r.Lens, func(v int32) uint32 { return uint32(v) })
		for i, f := range s.Flags {
			n := int32(1)
			if r.Lens != nil {
				n = r.Lens[i]
			}
			for range n {
				c.buf = append(c.buf, byte(f))
			}
			if len(c.buf) > muchToSum {
				c.sumUp()
			}
		}
	}
	c.sumUp()
}

// counted adds a length.
func (c *current) counted(n int64) { c.buf = binary.LittleEndian.AppendUint64(c.buf, uint64(n)) }

// column adds the values of a column, each as often as lens says; nil = once.
func column[T any](c *current, values []T, lens []int32, bits func(T) uint32) {
	for i, v := range values {
		n := int32(1)
		if lens != nil {
			n = lens[i]
		}
		b := bits(v)
		for range n {
			if c.buf = binary.LittleEndian.AppendUint32(c.buf, b); len(c.buf) > muchToSum {
				c.sumUp()
			}
		}
	}
}

// muchToSum bounds what waits to be summed up.
const muchToSum = 1 << 16

func (c *current) sumUp() {
	_, _ = c.crc.Write(c.buf)
	c.buf = c.buf[:0]
}
