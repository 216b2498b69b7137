package anyrows

import "math"

// ApartBound is the largest difference expected between two 32-bit computations of one log
// probability; 16-bit engines differ by about ten times as much.
const ApartBound = 1e-3

// Apart sums the differences between a trainer's own log probabilities and the recorded ones,
// over the trained tokens that have both.
type Apart struct {
	Tokens, Beyond int64 // Beyond counts differences over ApartBound
	Sum, Largest   float64
	First          int // first token of the last row that differs by more than the bound, -1 = none
}

// Add adds the tokens of a row.
func (d *Apart) Add(r *Row) {
	d.First = -1
	for t := range min(len(r.IDs), len(r.Logprobs), len(r.TrainLogprobs)) {
		if !r.Trained(t) {
			continue
		}
		off := math.Abs(r.TrainLogprobs[t] - r.Logprobs[t])
		if math.IsNaN(off) {
			off = math.MaxFloat64
		}
		d.Tokens, d.Sum, d.Largest = d.Tokens+1, d.Sum+off, max(d.Largest, off)
		if off > ApartBound {
			if d.Beyond++; d.First < 0 {
				d.First = t
			}
		}
	}
}
