package shard

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/turnpack/turnpack/internal/spool"
)

// checksum adds everything that decides the bytes of a row, with numbers in the file's
// precision.
func (c *current) checksum(r *spool.Row, traced bool) {
	s := &r.Sample
	le := binary.LittleEndian
	b := strconv.AppendQuote(strconv.AppendQuote(c.buf[:0], s.Rollout), s.Group)
	b = append(strconv.AppendInt(b, int64(s.RolloutIndex), 10), ' ')
	b = append(strconv.AppendInt(b, int64(s.SampleIndex), 10), ' ')
	b = strconv.AppendBool(b, s.IsLast)
	for _, n := range [...]int{s.FirstStep, s.LastStep, s.PromptLen} {
		b = strconv.AppendInt(append(b, ' '), int64(n), 10)
	}
	for _, v := range [...]float64{s.Reward, s.OutcomeReward} {
		b = strconv.AppendUint(append(b, ' '), uint64(math.Float32bits(float32(v))), 16)
	}
	b = append(append(append(b, ' '), s.Status.String()...), ' ')
	b = strconv.AppendInt(strconv.AppendQuote(strconv.AppendQuote(b, s.FinishReason), s.MaskReason), s.RolloutMaskSum, 10)
	b = strconv.AppendUint(append(b, ' '), uint64(math.Float32bits(s.Temperature)), 16)
	c.buf = strconv.AppendQuote(b, string(s.Metadata))
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
	if traced { // without a trace the file holds neither column
		column(c, s.Source, r.Lens, func(v int32) uint32 { return uint32(v) })
		for i, f := range s.Flags {
			if c.buf = append(c.buf, byte(f)); r.Lens != nil {
				c.repeat(1, int(r.Lens[i])-1)
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

// column adds the values of a column, each repeated as often as lens says; nil lens means once.
func column[T any](c *current, values []T, lens []int32, bits func(T) uint32) {
	le := binary.LittleEndian
	for i, v := range values {
		if c.buf = le.AppendUint32(c.buf, bits(v)); lens != nil {
			c.repeat(4, int(lens[i])-1)
		}
		if len(c.buf) > muchToSum {
			c.sumUp()
		}
	}
}

// repeat adds the last size bytes of the buffer n more times.
func (c *current) repeat(size, n int) {
	for n > 0 {
		more := min(n, muchToSum/size)
		from, end := len(c.buf)-size, len(c.buf)+more*size
		for len(c.buf) < end { // doubles the copied part each time
			c.buf = append(c.buf, c.buf[from:min(len(c.buf), from+end-len(c.buf))]...)
		}
		if n -= more; n > 0 { // the last size bytes stay, to be repeated again
			_, _ = c.crc.Write(c.buf[:len(c.buf)-size])
			c.buf = append(c.buf[:0], c.buf[len(c.buf)-size:]...)
		}
	}
}

// muchToSum is the size at which the buffer is added to the checksum, in bytes.
const muchToSum = 1 << 16

func (c *current) sumUp() {
	_, _ = c.crc.Write(c.buf)
	c.buf = c.buf[:0]
}
