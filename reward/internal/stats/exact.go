package stats

import (
	"math"
	"slices"
)

// Sum is a sum without rounding error: a non-overlapping expansion of partials in increasing magnitude
// (Shewchuk 1997). The order of terms changes neither its value nor its rounding, which makes every
// estimator independent of row order, bit for bit.
//
// The zero value is 0. A copy shares its partials; see clone.
type Sum struct{ partials []float64 }

func (s *Sum) clone() Sum { return Sum{slices.Clone(s.partials)} }

// twoSum returns a + b as a rounded sum and its rounding error (Knuth).
func twoSum(a, b float64) (sum, lost float64) {
	sum = a + b
	v := sum - a
	return sum, (a - (sum - v)) + (b - v)
}

// Add adds x.
func (s *Sum) Add(x float64) {
	kept := s.partials[:0] // in place: it never holds more partials than were read
	for _, p := range s.partials {
		sum, lost := twoSum(x, p)
		if lost != 0 {
			kept = append(kept, lost)
		}
		x = sum
	}
	if x != 0 {
		kept = append(kept, x)
	}
	s.partials = kept
}

// pair returns the sum as a rounded value and the rounded remainder: about 106 bits, independent of
// the order of terms.
func (s *Sum) pair() (hi, lo float64) {
	hi = s.Round()
	rest := s.clone()
	rest.Add(-hi)
	return hi, rest.Round()
}

// AddProduct adds a·b.
func (s *Sum) AddProduct(a, b float64) {
	p := a * b
	if e := math.FMA(a, b, -p); e != 0 {
		s.Add(e)
	}
	s.Add(p)
}

// addScaledSquare adds k·x².
func (s *Sum) addScaledSquare(k, x float64) {
	p := x * x
	if e := math.FMA(x, x, -p); e != 0 {
		s.AddProduct(k, e)
	}
	s.AddProduct(k, p)
}

// addScaled adds k·t.
func (s *Sum) addScaled(k float64, t *Sum) {
	for _, p := range t.partials {
		s.AddProduct(k, p)
	}
}

// addTimes adds sign·a·b. sign must be 1 or −1: another factor would round the terms.
func (s *Sum) addTimes(sign float64, a, b *Sum) {
	for _, x := range a.partials {
		for _, y := range b.partials {
			s.AddProduct(sign*x, y)
		}
	}
}

// Round returns the sum rounded once, half to even.
func (s *Sum) Round() float64 {
	i := len(s.partials) - 1
	if i < 0 {
		return 0
	}
	hi, lo := s.partials[i], 0.0
	for i > 0 {
		i--
		x, y := hi, s.partials[i]
		hi = x + y
		if lo = y - (hi - x); lo != 0 {
			break
		}
	}
	// hi may be a tie that lo alone would break wrongly; the partials below decide it.
	if i > 0 && (lo < 0) == (s.partials[i-1] < 0) && s.partials[i-1] != 0 {
		y := lo * 2
		if x := hi + y; y == x-hi {
			hi = x
		}
	}
	return hi
}
