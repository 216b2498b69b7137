package filter

import "math"

// The deviations as the reproduced systems compute them. The order of their sums matters: it decides
// whether a deviation is 0.

// deviation returns σ₁ about the mean, no positive number for fewer than two values.
func deviation(x []float64) float64 {
	mean := 0.0
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	square := 0.0
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	return math.Sqrt(square / float64(len(x)-1))
}

// deviationFloat32 returns σ₁ as torch computes it: the mean is a float32 sum divided by n, the
// squares are float64. It is no positive number for fewer than two values.
func deviationFloat32(x []float64) float64 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	mean := float64(vectorSum(y) / float32(len(y)))
	square := 0.0
	for _, v := range y {
		d := float64(v) - mean
		square += d * d
	}
	return math.Sqrt(square / float64(len(y)-1))
}

// vectorSum adds in torch's order for a contiguous float32 tensor: four vectors of eight lanes,
// joined, the tail first, then lane by lane.
func vectorSum(x []float32) float32 {
	const lanes, unroll = 8, 4
	var acc [unroll][lanes]float32
	vectors := len(x) / lanes
	full := vectors / unroll * unroll
	for v := range vectors {
		k := 0
		if v < full {
			k = v % unroll
		}
		for l := range lanes {
			acc[k][l] += x[v*lanes+l]
		}
	}
	for k := 1; k < unroll; k++ {
		for l := range lanes {
			acc[0][l] += acc[k][l]
		}
	}
	sum := float32(0)
	for _, v := range x[vectors*lanes:] {
		sum += v
	}
	for _, v := range acc[0] {
		sum += v
	}
	return sum
}

// rowVaries reports whether the float32 variance of x without entry skip (−1 = of all entries) is
// positive when computed as mean of squares − square of mean, as in NeMo RL's baselines.
func rowVaries(x []float64, skip int) bool {
	values, squares := make([]float32, len(x)), make([]float32, len(x))
	n := len(x)
	for i, v := range x {
		if i == skip {
			n--
			continue
		}
		values[i] = float32(v)
		squares[i] = values[i] * values[i]
	}
	mean := dotSum(values) / float32(n)
	square := float32(mean * mean)
	return dotSum(squares)/float32(n)-square > 0
}

// dotSum adds in the order of the matrix-vector product that computes those means: four entries in one
// accumulator, the rest in four accumulators that start from it, joined crosswise.
func dotSum(x []float32) float32 {
	var acc [4]float32
	i := 0
	for ; i < min(4, len(x)); i++ {
		acc[0] += x[i]
	}
	for ; i+4 <= len(x); i += 4 {
		for l := range acc {
			acc[l] += x[i+l]
		}
	}
	sum := (acc[0] + acc[2]) + (acc[1] + acc[3])
	for ; i < len(x); i++ {
		sum += x[i]
	}
	return sum
}
