package stats

import "math"

// Moments holds what the estimators need to know of a set of rewards, without
// the rewards: count, exact sums of r and r², the two largest and the smallest.
type Moments struct {
	N           int // observations
	Min, Max    float64
	Second      float64 // second largest, counted with multiplicity
	hi, lo      float64 // the sum, once frozen
	sum, square Sum
	length      *lengths
}

// Freeze makes the sum ready for deviations; no reward may be added afterwards.
func (m *Moments) Freeze() { m.hi, m.lo = m.sum.pair() }

// lengths are the sums of a length-weighted mean.
type lengths struct{ total, weighted Sum }

// Add counts r k times.
func (m *Moments) Add(r float64, k int) {
	if k <= 0 {
		return
	}
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

// AddLength adds r to the length-weighted mean.
func (m *Moments) AddLength(r float64, length int) {
	if m.length == nil {
		m.length = new(lengths)
	}
	m.length.total.Add(float64(length))
	m.length.weighted.AddProduct(float64(length), r)
}

// Spread is the largest reward less the smallest.
func (m *Moments) Spread() float64 { return m.Max - m.Min }

// Mean is the mean of the frozen rewards, 0 without any.
func (m *Moments) Mean() float64 {
	if m.N == 0 {
		return 0
	}
	return m.hi / float64(m.N)
}

// Deviation is r − mean, from a numerator of twice the precision: no digits are
// lost however far the rewards lie from zero.
func (m *Moments) Deviation(r float64) float64 {
	return m.excess(r) / float64(m.N)
}

// DeviationFromOthers is r minus the mean of the others, for n ≥ 2.
func (m *Moments) DeviationFromOthers(r float64) float64 {
	return m.excess(r) / float64(m.N-1)
}

// excess is n·r − sum.
func (m *Moments) excess(r float64) float64 {
	p := float64(m.N) * r
	e := math.FMA(float64(m.N), r, -p)
	d, lost := twoSum(p, -m.hi)
	return d + (lost + (e - m.lo))
}

// LengthDeviation is r minus the length-weighted mean; without any length the
// Mean is 0.
func (m *Moments) LengthDeviation(r float64) float64 {
	if m.length == nil {
		return r
	}
	total := m.length.total.Round()
	if total == 0 {
		return r
	}
	var d Sum
	d.addScaled(-1, &m.length.weighted)
	d.AddProduct(total, r)
	return d.Round() / total
}

// Variance divides the sum of squared deviations by n − ddof; 0 where that is
// not positive.
func (m *Moments) Variance(ddof int) float64 {
	if m.N-ddof <= 0 {
		return 0
	}
	var d Sum
	d.addScaled(float64(m.N), &m.square)
	d.addTimes(-1, &m.sum, &m.sum)
	// n·Σr² − (Σr)² is exact here, so it cannot come out negative.
	return d.Round() / float64(m.N) / float64(m.N-ddof)
}

// Without returns the moments of the others, for the leave-one-out spread.
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

// SumOfSquares is Σr².
func (m *Moments) SumOfSquares() float64 { return m.square.Round() }

// SquaresAbout is Σ(r − c̄)² over the rewards of m, c̄ the mean of c, which is not
// empty.
func (m *Moments) SquaresAbout(c *Moments) float64 {
	n := float64(c.N)
	var d Sum // n²·Σr² − 2n·Σr·S + N·S², S and n those of c
	d.addScaled(n*n, &m.square)
	var cross, sq Sum
	cross.addTimes(1, &m.sum, &c.sum)
	sq.addTimes(1, &c.sum, &c.sum)
	d.addScaled(-2*n, &cross)
	d.addScaled(float64(m.N), &sq)
	return d.Round() / (n * n)
}
