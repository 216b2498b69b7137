package stats

import "math"

// Moments summarises a set of rewards for the estimators without storing the rewards: count, exact
// sums of r and r², the two largest and the smallest.
type Moments struct {
	N                int // observations
	Min, Max         float64
	Second           float64 // second largest, counted with multiplicity
	hi, lo           float64 // the sum after Freeze
	sum, square      Sum
	length, weighted Sum // of a length-weighted mean
}

// Freeze prepares the sum for deviations; no reward may be added afterwards.
func (m *Moments) Freeze() { m.hi, m.lo = m.sum.pair() }

// Add adds the reward r k times.
func (m *Moments) Add(r float64, k int) {
	switch {
	case m.N == 0:
		m.Min, m.Max, m.Second = r, r, math.Inf(-1)
		if k > 1 {
			m.Second = r
		}
	case r >= m.Max:
		m.Second = m.Max
		if k > 1 {
			m.Second = r
		}
		m.Max = r
	default:
		m.Min, m.Second = math.Min(m.Min, r), math.Max(m.Second, r)
	}
	m.N += k
	if r == 0 {
		return
	}
	if k == 1 {
		m.sum.Add(r)
		m.square.AddProduct(r, r)
		return
	}
	m.sum.AddProduct(float64(k), r)
	m.square.addScaledSquare(float64(k), r)
}

// AddLength adds r with the given length to the length-weighted mean.
func (m *Moments) AddLength(r float64, length int) {
	m.length.Add(float64(length))
	m.weighted.AddProduct(float64(length), r)
}

// Spread returns the largest reward minus the smallest.
func (m *Moments) Spread() float64 { return m.Max - m.Min }

// Mean returns the mean of the rewards after Freeze, 0 without rewards.
func (m *Moments) Mean() float64 { return m.hi / float64(max(m.N, 1)) }

// Deviation returns r − mean, computed from a numerator of twice the precision, so that no digits are
// lost however far the rewards are from zero.
func (m *Moments) Deviation(r float64) float64 {
	return m.excess(r) / float64(m.N)
}

// DeviationFromOthers returns r minus the mean of the other rewards, for N ≥ 2.
func (m *Moments) DeviationFromOthers(r float64) float64 {
	return m.excess(r) / float64(m.N-1)
}

// excess returns n·r − sum.
func (m *Moments) excess(r float64) float64 {
	p := float64(m.N) * r
	e := math.FMA(float64(m.N), r, -p)
	d, lost := twoSum(p, -m.hi)
	return d + (lost + (e - m.lo))
}

// LengthDeviation returns r minus the length-weighted mean, which is 0 if all lengths are 0.
func (m *Moments) LengthDeviation(r float64) float64 {
	total := m.length.Round()
	if total == 0 {
		return r
	}
	var d Sum
	d.addScaled(-1, &m.weighted)
	d.AddProduct(total, r)
	return d.Round() / total
}

// Variance returns the sum of squared deviations divided by n − ddof, or 0 where n − ddof is not
// positive.
func (m *Moments) Variance(ddof int) float64 {
	if m.N-ddof <= 0 {
		return 0
	}
	var d Sum
	d.addScaled(float64(m.N), &m.square)
	d.addTimes(-1, &m.sum, &m.sum)
	// n·Σr² − (Σr)² is exact here, so it cannot be negative.
	return d.Round() / float64(m.N) / float64(m.N-ddof)
}

// Without returns the moments of the rewards other than r, for the leave-one-out spread.
func (m *Moments) Without(r float64) Moments {
	o := Moments{N: m.N - 1, sum: m.sum.clone(), square: m.square.clone()}
	o.sum.Add(-r)
	p := r * r
	o.square.Add(-p)
	if e := math.FMA(r, r, -p); e != 0 {
		o.square.Add(-e)
	}
	return o
}

// SumOfSquares returns Σr².
func (m *Moments) SumOfSquares() float64 { return m.square.Round() }

// SquaresAbout returns Σ(r − c̄)² over the rewards of m, where c̄ is the mean of c, which must not be
// empty.
func (m *Moments) SquaresAbout(c *Moments) float64 {
	n := float64(c.N)
	var d Sum // n²·Σr² − 2n·Σr·S + N·S², with S and n of c
	d.addScaled(n*n, &m.square)
	var cross, sq Sum
	cross.addTimes(1, &m.sum, &c.sum)
	sq.addTimes(1, &c.sum, &c.sum)
	d.addScaled(-2*n, &cross)
	d.addScaled(float64(m.N), &sq)
	return d.Round() / (n * n)
}
