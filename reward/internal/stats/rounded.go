package stats

import (
	"math"
	"slices"
)

// The arithmetic of systems whose rounding is visible in their results: for a near-constant group,
// they divide differences of 1e-13 by an epsilon of 1e-8, and a variance computed as a difference of
// squares is noise below 1e-16.

// PairwiseSum returns the sum in numpy's order of additions: eight interleaved sums joined pairwise,
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

// PairwiseVariance returns the sum of squared deviations divided by n − ddof, or 0 where n − ddof is
// not positive.
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

// MeanOfSquaresVariance returns (Σx²/n − (Σx/n)²) · n/(n − ddof), or 0 where rounding makes it
// negative or n is too small. NaN entries count neither in the sums nor in n.
func MeanOfSquaresVariance(x []float64, ddof int) float64 {
	n, sum, squares := 0, 0.0, 0.0
	for _, v := range x {
		if v == v {
			n++
			sum += v
			squares += float64(v * v)
		}
	}
	if n-ddof <= 0 {
		return 0
	}
	mean, meanSquare := sum/float64(n), squares/float64(n)
	// The conversion prevents the compiler from fusing the product and the difference, which would
	// change the rounding noise.
	v := meanSquare - float64(mean*mean)
	if ddof > 0 {
		v *= float64(n) / float64(n-ddof)
	}
	return math.Max(v, 0)
}

// Masked returns a copy of x with one entry equal to r replaced by NaN.
func Masked(x []float64, r float64) []float64 {
	out := slices.Clone(x)
	if i := slices.Index(x, r); i >= 0 {
		out[i] = math.NaN()
	}
	return out
}
