package reward

import "math"

// moments holds what the estimators need to know of a set of rewards, without
// the rewards: count, exact sums of r and r², the two largest and the smallest.
type moments struct {
	n           int // observations
	sum, square exact
	min, max    float64
	second      float64 // second largest, counted with multiplicity
	hi, lo      float64 // the sum, once frozen
	length      *lengths
}

// freeze makes the sum ready for deviations; no reward may be added afterwards.
func (m *moments) freeze() { m.hi, m.lo = m.sum.pair() }

// lengths are the sums that make a length-weighted mean.
type lengths struct{ total, weighted exact }

// add counts r k times.
func (m *moments) add(r float64, k int) {
	if k <= 0 {
		return
	}
	switch {
	case m.n == 0:
		m.min, m.max, m.second = r, r, math.Inf(-1)
		if k > 1 {
			m.second = r
		}
	case r >= m.max:
		m.second = m.max
		if k > 1 {
			m.second = r
		}
		m.max = r
	default:
		m.min, m.second = math.Min(m.min, r), math.Max(m.second, r)
	}
	m.n += k
	if r == 0 {
		return
	}
	if k == 1 {
		m.sum.add(r)
		m.square.addProduct(r, r)
		return
	}
	m.sum.addProduct(float64(k), r)
	m.square.addScaledSquare(float64(k), r)
}

func (m *moments) addLength(r float64, length int) {
	if m.length == nil {
		m.length = new(lengths)
	}
	m.length.total.add(float64(length))
	m.length.weighted.addProduct(float64(length), r)
}

func (m *moments) spread() float64 { return m.max - m.min }

func (m *moments) mean() float64 {
	if m.n == 0 {
		return 0
	}
	return m.hi / float64(m.n)
}

// deviation is r − mean, from a numerator of twice the precision: no digits are
// lost however far the rewards lie from zero.
func (m *moments) deviation(r float64) float64 {
	return m.excess(r) / float64(m.n)
}

// looDeviation is r minus the mean of the others, for n ≥ 2.
func (m *moments) looDeviation(r float64) float64 {
	return m.excess(r) / float64(m.n-1)
}

// excess is n·r − sum.
func (m *moments) excess(r float64) float64 {
	p := float64(m.n) * r
	e := math.FMA(float64(m.n), r, -p)
	d, lost := twoSum(p, -m.hi)
	return d + (lost + (e - m.lo))
}

// lengthDeviation is r minus the length-weighted mean; without any length the
// mean is 0.
func (m *moments) lengthDeviation(r float64) float64 {
	if m.length == nil {
		return r
	}
	total := m.length.total.round()
	if total == 0 {
		return r
	}
	var d exact
	d.addScaled(-1, &m.length.weighted)
	d.addProduct(total, r)
	return d.round() / total
}

// variance divides the sum of squared deviations by n − ddof; 0 where that is
// not positive.
func (m *moments) variance(ddof int) float64 {
	if m.n-ddof <= 0 {
		return 0
	}
	var d exact
	d.addScaled(float64(m.n), &m.square)
	d.addNegSquare(&m.sum)
	// n·Σr² − (Σr)² is exact here, so it cannot come out negative.
	return d.round() / float64(m.n) / float64(m.n-ddof)
}

// without returns the moments of the others, for the leave-one-out spread.
func (m *moments) without(r float64) moments {
	o := moments{n: m.n - 1, sum: m.sum.clone(), square: m.square.clone()}
	o.sum.add(-r)
	p := r * r
	o.square.add(-p)
	if e := math.FMA(r, r, -p); e != 0 {
		o.square.add(-e)
	}
	return o
}
