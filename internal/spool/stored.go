package spool

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// A stored row is its head, then its columns. Ids and log probabilities differ from token to
// token and are stored one by one. The other columns are long runs of one value. A row thus
// takes two or three bytes a token, where its columns take twenty.

// coder encodes values, or decodes them in the same order, so that one function describes the
// layout for both. Encoding does not modify the values, which others may read. The first error
// is kept in err; values decoded after it are invalid.
type coder struct {
	b     []byte    // encoded so far, or next to be decoded
	names *[]string // strings shared by very many rows
	err   error

	// When encoding, b is passed to store once it is longer than most.
	most  int
	store func([]byte) (empty []byte, err error)

	reads bool
}

var errStored = errors.New("the stored row is damaged")

// damaged records that the bytes are not a valid row.
func (c *coder) damaged() { c.err = cmp.Or(c.err, errStored) }

// written passes b to store if it is long enough.
func (c *coder) written() {
	if len(c.b) <= c.most || c.store == nil {
		return
	}
	var err error
	if c.b, err = c.store(c.b); err != nil {
		c.err = cmp.Or(c.err, err)
	}
}

func number[T ~int | ~int32 | ~int64 | ~uint8 | ~uint32](c *coder, v *T) {
	if !c.reads {
		c.b = binary.AppendVarint(c.b, int64(*v))
		return
	}
	x, n := binary.Varint(c.b)
	if *v = T(x); n <= 0 || int64(*v) != x {
		c.damaged()
		return
	}
	c.b = c.b[n:]
}

func (c *coder) flags(all ...*bool) {
	var bits uint8
	for i, v := range all {
		if *v {
			bits |= 1 << i
		}
	}
	if number(c, &bits); !c.reads {
		return
	}
	for i, v := range all {
		*v = bits>>i&1 > 0
	}
}

func (c *coder) text(v *string) {
	n := len(*v)
	number(c, &n)
	switch {
	case !c.reads:
		c.b = append(c.b, *v...)
	case n < 0 || n > len(c.b):
		c.damaged()
	default:
		*v, c.b = string(c.b[:n]), c.b[n:]
	}
}

// name codes a string of which few distinct values occur.
func (c *coder) name(v *string) {
	k := slices.Index(*c.names, *v)
	if !c.reads && k < 0 && len(*c.names) < maxNames {
		k, *c.names = len(*c.names), append(*c.names, *v)
	}
	number(c, &k)
	switch {
	case k < 0:
		c.text(v)
	case k >= len(*c.names):
		c.damaged()
	case c.reads:
		*v = (*c.names)[k]
	}
}

// maxNames is the greatest length of names, which are searched linearly.
const maxNames = 16

func (c *coder) float(v *float64) {
	bits := int64(math.Float64bits(*v))
	if number(c, &bits); c.reads {
		*v = math.Float64frombits(uint64(bits))
	}
}

func (c *coder) floatOrNil(v **float64) {
	there := *v != nil
	if c.flags(&there); !there {
		return
	}
	if c.reads {
		*v = new(float64)
	}
	c.float(*v)
}

// columns says which columns a row has and how they are stored.
type columns struct {
	entries                                int
	logprob, version, weight, credit, runs bool // runs: the row is run-length encoded
	tokens, logprobs                       int  // number of stored ids and log probabilities
}

// head codes all fields of a row except its columns.
func (c *coder) head(s *rollout.Sample, h *columns) {
	for _, v := range []*string{&s.Rollout, &s.Group, &s.ID, &s.FinishReason, &s.MaskReason} {
		c.text(v)
	}
	c.name(&s.Tokenizer)
	c.name(&s.Template)
	for _, v := range []*int{&s.SampleIndex, &s.FirstTurn, &s.LastTurn, &s.FirstStep, &s.LastStep, &s.RolloutIndex, &s.PromptLen, &h.entries, &h.tokens, &h.logprobs} {
		number(c, v)
	}
	number(c, &s.RolloutMaskSum)
	c.name((*string)(&s.Fidelity))
	number(c, &s.Status)
	c.float(&s.Reward)
	c.float(&s.OutcomeReward)
	temperature := math.Float32bits(s.Temperature)
	if number(c, &temperature); c.reads {
		s.Temperature = math.Float32frombits(temperature)
	}
	c.floatOrNil(&s.StepReward)
	c.floatOrNil(&s.Advantage)
	described := s.Metadata != nil
	c.flags(&s.IsLast, &described, &h.logprob, &h.version, &h.weight, &h.credit, &h.runs)
	if metadata := string(s.Metadata); described {
		if c.text(&metadata); c.reads {
			s.Metadata = json.RawMessage(metadata)
		}
	}
}

// row codes a row.
func (c *coder) row(row *Row) {
	q := &row.Sequence
	ids, logprobs := &q.IDs, &q.Logprob
	if row.Lens != nil {
		ids, logprobs = &row.Tokens, &row.Logprobs
	}
	h := columns{row.Sample.Len(), row.Logprob != nil, row.Version != nil, row.Weight != nil, row.Credit != nil, row.Lens != nil, len(*ids), len(*logprobs)}
	c.head(&row.Sample, &h)
	if c.reads && h.runs {
		ids, logprobs = &row.Tokens, &row.Logprobs
	}
	if h.entries < 0 || !h.runs && (h.tokens != h.entries || h.logprob && h.logprobs != h.entries) {
		c.damaged()
	}
	varints(c, ids, h.tokens, 0, math.MaxUint32)
	if h.logprob {
		c.floats(logprobs, h.logprobs)
	}
	if h.runs {
		if varints(c, &row.Lens, h.entries, 1, math.MaxInt32); c.reads && c.err == nil {
			q.IDs = make([]rollout.TokenID, h.entries)
			if h.logprob {
				q.Logprob = make([]float32, h.entries)
			}
		}
	}
	asBits, asInt := func(v int32) uint32 { return uint32(v) }, func(v uint32) int32 { return int32(v) }
	runs(c, &q.Flags, true, h.entries, func(f rollout.Flag) uint32 { return uint32(f) }, func(v uint32) rollout.Flag { return rollout.Flag(v) })
	runs(c, &q.Source, true, h.entries, asBits, asInt)
	runs(c, &q.Turn, true, h.entries, asBits, asInt)
	runs(c, &q.Version, h.version, h.entries, asBits, asInt)
	runs(c, &q.Weight, h.weight, h.entries, math.Float32bits, math.Float32frombits)
	runs(c, &q.Credit, h.credit, h.entries, math.Float32bits, math.Float32frombits)
}

// read decodes a row that takes all bytes left.
func (c *coder) read() (row Row, err error) {
	if c.row(&row); c.err == nil && len(c.b) > 0 {
		c.damaged()
	}
	if c.err != nil {
		return Row{}, c.err
	}
	return row, nil
}

// floats codes n numbers.
func (c *coder) floats(v *[]float32, n int) {
	if !c.reads {
		for _, x := range *v {
			c.b = binary.LittleEndian.AppendUint32(c.b, math.Float32bits(x))
			c.written()
		}
		return
	}
	if c.err != nil || n < 0 || n > len(c.b)/4 {
		c.damaged()
		return
	}
	*v = make([]float32, n)
	for i := range *v {
		(*v)[i], c.b = math.Float32frombits(binary.LittleEndian.Uint32(c.b)), c.b[4:]
	}
}

// varints codes n numbers between least and most.
func varints[T ~int32](c *coder, v *[]T, n int, least, most uint64) {
	if !c.reads {
		for _, x := range *v {
			c.b = binary.AppendUvarint(c.b, uint64(uint32(x)))
			c.written()
		}
		return
	}
	if c.err != nil || n < 0 || n > len(c.b) {
		c.damaged()
		return
	}
	*v = make([]T, n)
	for i := range *v {
		x, size := binary.Uvarint(c.b)
		if size <= 0 || x < least || x > most {
			c.damaged()
			return
		}
		(*v)[i], c.b = T(uint32(x)), c.b[size:]
	}
}

// runs codes a column of n entries, each run as its length and the bits of its value, so that 0
// and -0 stay distinct. A column that is not there stays nil.
func runs[T any](c *coder, v *[]T, there bool, n int, bits func(T) uint32, of func(uint32) T) {
	if !c.reads {
		for column, i := *v, 0; i < len(column); {
			x, from := bits(column[i]), i
			for i++; i < len(column) && bits(column[i]) == x; i++ {
			}
			c.b = binary.LittleEndian.AppendUint32(binary.AppendUvarint(c.b, uint64(i-from)), x)
			c.written()
		}
		return
	}
	if !there || c.err != nil {
		return
	}
	*v = make([]T, 0, n)
	for len(*v) < n {
		count, k := binary.Uvarint(c.b)
		if k <= 0 || count == 0 || count > uint64(n-len(*v)) || len(c.b) < k+4 {
			c.damaged()
			return
		}
		*v = appendRun(*v, of(binary.LittleEndian.Uint32(c.b[k:])), int(count))
		c.b = c.b[k+4:]
	}
}
