package trainers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// SkyRLBatch is a training batch of SkyRL (dump_data_batch): padded tensors with one row
// per sequence.
type SkyRLBatch struct {
	rows, width, response int
	ids, attention        column
	loss, said, logprobs  column // for the last positions of a row
}

// column is a two-dimensional tensor.
type column struct {
	data  []byte
	size  int
	dtype string
}

var errNotSkyRL = errors.New("the pickle holds no training batch of SkyRL")

// NewSkyRLBatch returns the batch in a loaded pickle of a TrainingInputBatch.
func NewSkyRLBatch(v any) (*SkyRLBatch, error) {
	state, _ := v.(map[any]any)
	tensors, ok := state["batch_dict"].(map[any]any)
	if !ok {
		return nil, errNotSkyRL
	}
	b := &SkyRLBatch{}
	var err error
	if b.ids, b.rows, b.width, err = tensor(tensors, "sequences"); err != nil || b.ids.data == nil {
		return nil, errors.Join(errNotSkyRL, err)
	}
	for name, c := range map[string]*column{"attention_mask": &b.attention, "loss_mask": &b.loss, "response_mask": &b.said, "rollout_logprobs": &b.logprobs} {
		var rows, width int
		if *c, rows, width, err = tensor(tensors, name); err != nil {
			return nil, err
		}
		switch {
		case c.data == nil && name == "rollout_logprobs":
			continue
		case c.data == nil:
			return nil, fmt.Errorf("the batch has no %s", name)
		case rows != b.rows || name == "attention_mask" && width != b.width || width > b.width || name != "attention_mask" && b.response != 0 && width != b.response:
			return nil, fmt.Errorf("%s has %d × %d entries for %d × %d tokens", name, rows, width, b.rows, b.width)
		}
		if name != "attention_mask" {
			b.response = width
		}
	}
	return b, nil
}

// tensor returns a tensor, stored as numpy bytes.
func tensor(all map[any]any, name string) (c column, rows, width int, err error) {
	if all[name] == nil {
		return c, 0, 0, nil
	}
	t, _ := all[name].(map[any]any)
	data, isData := t["data"].([]byte)
	shape, isShape := t["shape"].([]any)
	dtype, isType := t["dtype"].(string)
	if !isData || !isShape || !isType || len(shape) != 2 {
		return c, 0, 0, fmt.Errorf("%s is no tensor of two dimensions that numpy can hold", name)
	}
	sizes := map[string]int{"int64": 8, "int32": 4, "uint8": 1, "bool": 1, "float32": 4}
	r, ok := shape[0].(int64)
	w, also := shape[1].(int64)
	size := sizes[dtype]
	if !ok || !also || size == 0 || r < 0 || w < 0 || r > 0 && w > int64(len(data))/r || r*w*int64(size) != int64(len(data)) {
		return c, 0, 0, fmt.Errorf("%s has %d bytes of %s for a shape of %v", name, len(data), dtype, shape)
	}
	return column{data: data, size: size, dtype: dtype}, int(r), int(w), nil
}

// at returns entry i.
func (c *column) at(i int) float64 {
	b := c.data[i*c.size:]
	switch c.dtype {
	case "float32":
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case "int64":
		return float64(int64(binary.LittleEndian.Uint64(b)))
	case "int32":
		return float64(int32(binary.LittleEndian.Uint32(b)))
	}
	return float64(b[0])
}

// Len returns the number of sequences in the batch.
func (b *SkyRLBatch) Len() int { return b.rows }

// AppendRow appends a sequence as a record: its tokens without padding, which of them count
// in the loss, and their log probabilities.
func (b *SkyRLBatch) AppendRow(out []byte, row int) []byte {
	lists := [4][]byte{{'['}, {'['}, {'['}, {'['}}
	add := func(k int, x float64, float bool) {
		if len(lists[k]) > 1 {
			lists[k] = append(lists[k], ',')
		}
		switch {
		case float && !math.IsNaN(x) && !math.IsInf(x, 0):
			lists[k] = strconv.AppendFloat(lists[k], x, 'g', -1, 64)
		case float:
			lists[k] = append(lists[k], "NaN"...)
		default:
			lists[k] = strconv.AppendInt(lists[k], int64(x), 10)
		}
	}
	for j := range b.width {
		if b.attention.at(row*b.width+j) == 0 {
			continue
		}
		loss, said, lp := 0.0, 0.0, 0.0
		if k := j - (b.width - b.response); k >= 0 {
			at := row*b.response + k
			loss, said = b.loss.at(at), b.said.at(at)
			if b.logprobs.data != nil {
				lp = b.logprobs.at(at)
			}
		}
		add(0, b.ids.at(row*b.width+j), false)
		add(1, loss, true)
		add(2, said, false)
		add(3, lp, true)
	}
	out = append(append(append(append(out, `{"skyrl_sequence":`...), append(lists[0], ']')...), `,"loss_mask":`...), append(lists[1], ']')...)
	out = append(append(out, `,"response_mask":`...), append(lists[2], ']')...)
	if b.logprobs.data != nil {
		out = append(append(out, `,"rollout_logprobs":`...), append(lists[3], ']')...)
	}
	return append(out, '}')
}

// SkyRLBatches reads the sequences of training batches.
func SkyRLBatches() format.Importer {
	return format.Importer{Name: "skyrl", Stateless: true, Read: readSkyRL, Match: func(v format.Value, _ *format.File) bool {
		return v.Get("skyrl_sequence").Kind() == jsonscan.Array && v.Get("loss_mask").Kind() == jsonscan.Array
	}}
}

func readSkyRL(in *format.File, v format.Value) error {
	s, err := read(in, v.Get("skyrl_sequence"), v.Get("loss_mask"), v.Get("rollout_logprobs"), [3]string{"sequences", "loss_mask", "rollout_logprobs"}, 0, -1)
	if err != nil {
		return err
	}
	r := &rollout.Rollout{Index: format.NoIndex, Group: s.group()}
	trained := false
	for _, x := range s.sampled {
		trained = trained || x
	}
	if !trained { // filtered, or a copy that fills up the batch
		s.sampled = marks(v.Get("response_mask"), 0)
		if len(s.sampled) != len(s.ids) {
			return in.Fail(0, "/response_mask", "found %d entries for %d tokens", len(s.sampled), len(s.ids))
		}
		r.Failure = &rollout.Failure{Reason: "masked_by_framework"}
		in.Note("masked_by_framework", 0, "no token of the sequence counts in the loss: the framework filtered it, or it fills the batch")
	}
	s.turns(in, r)
	for i := range r.Turns {
		if !trained {
			r.Turns[i].Incomplete = "the framework masked the sequence, so which of its tokens were sampled is not recorded"
		}
	}
	in.Note("reward_not_recorded", 0, "SkyRL takes the rewards out of a batch before it is written; give rewards from elsewhere")
	return in.Emit(r)
}
