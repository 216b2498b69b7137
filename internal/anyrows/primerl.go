package anyrows

import (
	"bytes"
	"fmt"
	"io"

	"github.com/turnpack/turnpack/export/primerl"
)

// primerlHead reports whether a file starts like a prime-rl rank file: a MessagePack array of
// arrays of 16.
func primerlHead(head []byte) bool {
	if len(head) == 0 {
		return false
	}
	var rest []byte
	switch c := head[0]; {
	case c > 0x90 && c <= 0x9f:
		rest = head[1:]
	case c == 0xdc && len(head) > 3:
		rest = head[3:]
	case c == 0xdd && len(head) > 5:
		rest = head[5:]
	}
	return bytes.HasPrefix(rest, []byte{0xdc, 0, 16})
}

// primerlSource reads the sequences of micro-batches without padding. Row IDs are positions,
// since the file holds no ids.
type primerlSource struct {
	batches     []primerl.MicroBatch
	batch, item int
	at          int // position of the sequence's first token
}

func (s *primerlSource) close() error { return nil }

func (s *primerlSource) next() (*Row, error) {
	for s.batch < len(s.batches) && s.item == len(s.batches[s.batch].SequenceLengths) {
		s.batch, s.item, s.at = s.batch+1, 0, 0
	}
	if s.batch == len(s.batches) {
		return nil, io.EOF
	}
	b := &s.batches[s.batch]
	next := min(s.at+max(0, int(b.SequenceLengths[s.item])), len(b.InputIDs))
	end := next
	for end > s.at && end <= len(b.EnvNames) && b.EnvNames[end-1] == "" {
		end-- // padding has no environment name and belongs to the last sequence
	}
	r := &Row{ID: fmt.Sprintf("batch %d, sequence %d", s.batch, s.item), PromptLen: -1, IDs: b.InputIDs[s.at:end]}
	for t := s.at; t < end; t++ {
		w := 0.0
		if t < len(b.LossMask) && b.LossMask[t] {
			w = 1
			if t < len(b.RLWeights) {
				w = float64(b.RLWeights[t])
			}
		}
		r.Mask = append(r.Mask, w)
	}
	r.Logprobs, r.Advantages = cut(b.InferenceLogprobs, s.at, end), cut(b.Advantages, s.at, end)
	for _, c := range []struct {
		name string
		n    int
	}{{"loss_mask", len(b.LossMask)}, {"inference_logprobs", len(b.InferenceLogprobs)}, {"advantages", len(b.Advantages)}} {
		if c.n != len(b.InputIDs) {
			r.Faults = append(r.Faults, Fault{c.name, fmt.Sprintf("%d values for the %d tokens of the micro-batch", c.n, len(b.InputIDs))})
		}
	}
	s.item, s.at = s.item+1, next
	return r, nil
}

// cut returns the values of tokens [from, to), as far as there are any.
func cut(v []float32, from, to int) []float64 {
	to = min(to, len(v))
	return widen(v[min(from, to):to])
}
