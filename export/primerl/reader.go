package primerl

import (
	"fmt"
	"io"
	"math"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/turnpack/turnpack/rollout"
)

// MicroBatch is one micro-batch as the trainer decodes it, without the fields that WriteStep
// leaves empty, which Read skips.
type MicroBatch struct {
	InputIDs          []int32
	LossMask          []bool
	Advantages        []float32
	InferenceLogprobs []float32
	PositionIDs       []int32
	SequenceLengths   []int32
	Temperatures      []float32
	EnvNames          []string
	SeqLens           []int32
	RLWeights         []float32
}

// Read decodes a rank file. Memory is bounded by the size of r's content, not by the lengths it
// claims.
func Read(r io.Reader) ([]MicroBatch, error) {
	var out []MicroBatch
	d := decoder{msgpack.NewDecoder(r)}
	n, err := d.DecodeArrayLen()
	for i := 0; err == nil && i < n; i++ {
		var b MicroBatch
		if err = d.microBatch(&b); err != nil {
			err = fmt.Errorf("micro-batch %d: %w", i, err)
		}
		out = append(out, b)
	}
	if err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "not a rank file: %v", err).WithFix("write the step again")
	}
	return out, nil
}

type decoder struct{ *msgpack.Decoder }

func (d decoder) microBatch(b *MicroBatch) error {
	fields := [...]func() error{
		list(&b.InputIDs, d, d.int32), list(&b.LossMask, d, d.DecodeBool), list(&b.Advantages, d, d.float32), list(&b.InferenceLogprobs, d, d.float32),
		list(&b.PositionIDs, d, d.int32), list(&b.SequenceLengths, d, d.int32), list(&b.Temperatures, d, d.float32), list(&b.EnvNames, d, d.DecodeString),
		list(&b.SeqLens, d, d.int32), d.skip, d.skip, d.skip, d.skip, list(&b.RLWeights, d, d.float32), d.skip, d.skip,
	}
	n, err := d.DecodeArrayLen()
	if err != nil {
		return err
	}
	if n != len(fields) {
		return fmt.Errorf("%d fields, expected %d", n, len(fields))
	}
	for i, read := range fields {
		if err := read(); err != nil {
			return fmt.Errorf("field %d: %w", i, err)
		}
	}
	return nil
}

// list returns a function that reads a list into to. The slice grows as elements arrive; a
// MessagePack nil leaves to unchanged.
func list[T any](to *[]T, d decoder, one func() (T, error)) func() error {
	return func() error {
		n, err := d.DecodeArrayLen()
		if err != nil || n < 0 {
			return err
		}
		out := make([]T, 0, min(n, 1<<10))
		for range n {
			v, err := one()
			if err != nil {
				return err
			}
			out = append(out, v)
		}
		*to = out
		return nil
	}
}

func (d decoder) int32() (int32, error) {
	v, err := d.DecodeInt64()
	if err == nil && int64(int32(v)) != v {
		err = fmt.Errorf("%d is no 32-bit integer", v)
	}
	return int32(v), err
}

// float32 accepts both widths: the trainer's own files hold 64 bits.
func (d decoder) float32() (float32, error) {
	v, err := d.DecodeFloat64()
	return float32(v), err
}

// skip skips one value without recursion, however deeply nested.
func (d decoder) skip() error {
	for left := 1; left > 0; left-- {
		code, err := d.PeekCode()
		if err != nil {
			return err
		}
		n, each := 0, 1
		switch {
		case msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32:
			n, err = d.DecodeArrayLen()
		case msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32:
			n, err = d.DecodeMapLen()
			each = 2
		default:
			err = d.Skip()
		}
		if err != nil {
			return err
		}
		if left += each * n; left > math.MaxInt32 {
			return fmt.Errorf("more than %d values", math.MaxInt32)
		}
	}
	return nil
}
