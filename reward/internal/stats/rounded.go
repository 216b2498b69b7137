package stats

import "math"

// The arithmetics of systems whose rounding can be seen in their results: a
// near-constant group divides differences of 1e-13 by an epsilon of 1e-8, and a
// variance formed as a difference of squares is noise below 1e-16.

// PairwiseSum adds in numpy's order: eight interleaved sums joined pairwise,
// blocks of more than 128 halved.
func PairwiseSum(x []float64) float64 {
	n := len(x)
	switch {
	case n < 8:
		s := 0.0
		for _, v := range x {
			s += v
		}
		return s
	case n <= 128:
		var r [8]float64
		copy(r[:], x)
		i := 8
		for ; i < n-n%8; i += 8 {
			for j := range r {
				r[j] += x[i+j]
			}
		}
		s := ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
		for ; i < n; i++ {
			s += x[i]
		}
		return s
	}
	half := n / 2
	half -= half % 8
	return PairwiseSum(x[:half]) + PairwiseSum(x[half:])
}

// PairwiseVariance divides the sum of squared deviations by n − ddof, 0 where
// that is not positive.
func PairwiseVariance(x []float64, ddof int) float64 {
	if len(x)-ddof <= 0 {
		return 0
	}
	mean := PairwiseSum(x) / float64(len(x))
	sq := make([]float64, len(x))
	for i, v := range x {
		d := v - mean
		sq[i] = float64(d * d)
	}
	return PairwiseSum(sq) / float64(len(x)-ddof)
}

// MeanOfSquaresVariance is (Σx²/n − (Σx/n)²) · n/(n − ddof), 0 where rounding
// makes it negative or n is too small. Entries that are NaN count for 0 in the
// sums and not in n.
func MeanOfSquaresVariance(x []float64, ddof int) float64 {
	n := 0
	values, squares := make([]float64, len(x)), make([]float64, len(x))
	for i, v := range x {
		if v != v {
			continue
		}
		n++
		values[i], squares[i] = v, float64(v*v)
	}
	if n-ddof <= 0 {
		return 0
	}
	mean := sequentialSum(values) / float64(n)
	meanSquare := sequentialSum(squares) / float64(n)
	// The conversion keeps a compiler from fusing the product into the
	// difference, which would change the noise.
	v := meanSquare - float64(mean*mean)
	if ddof > 0 {
		v *= float64(n) / float64(n-ddof)
	}
	return math.Max(v, 0)
}

func sequentialSum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}

// Masked replaces one entry equal to r by NaN.
func Masked(x []float64, r float64) []float64 {
	out := append([]float64(nil), x...)
	for i, v := range out {
		if v == r {
			out[i] = math.NaN()
			break
		}
	}
	return out
}
