package stats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// The exact sum equals the rational sum, rounded once, in any order and for terms of any magnitudes.
func TestSumAgainstRationals(t *testing.T) {
	rnd := seeded(t)
	for range 500 {
		terms := make([]float64, rnd.IntN(40))
		want := new(big.Rat)
		for i := range terms {
			terms[i] = math.Ldexp(rnd.Float64()-0.5, rnd.IntN(400)-200)
			want.Add(want, new(big.Rat).SetFloat64(terms[i]))
		}
		wanted, _ := want.Float64()
		for range 3 {
			rnd.Shuffle(len(terms), func(i, j int) { terms[i], terms[j] = terms[j], terms[i] })
			var s Sum
			for _, x := range terms {
				s.Add(x)
			}
			require.Equal(t, wanted, s.Round())
			c := s.clone()
			c.Add(1)
			require.Equal(t, wanted, s.Round(), "a clone shares nothing")
			hi, lo := s.pair()
			rest := new(big.Rat).Sub(want, new(big.Rat).SetFloat64(hi))
			wantLo, _ := rest.Float64()
			require.Equal(t, [2]float64{wanted, wantLo}, [2]float64{hi, lo})
		}
	}
}

func TestVarianceAgainstRationals(t *testing.T) {
	rnd := seeded(t)
	for range 300 {
		var m Moments
		sum, square := new(big.Rat), new(big.Rat)
		n := int64(0)
		offset := math.Ldexp(1, rnd.IntN(40))
		for range 2 + rnd.IntN(20) {
			r, k := offset+rnd.Float64(), 1+rnd.IntN(3)
			m.Add(r, k)
			x := new(big.Rat).SetFloat64(r)
			times := new(big.Rat).SetInt64(int64(k))
			sum.Add(sum, new(big.Rat).Mul(times, x))
			square.Add(square, new(big.Rat).Mul(times, new(big.Rat).Mul(x, x)))
			n += int64(k)
		}
		// (Σr² − (Σr)²/n)/(n − 1)
		v := new(big.Rat).Sub(square, new(big.Rat).Quo(new(big.Rat).Mul(sum, sum), new(big.Rat).SetInt64(n)))
		want, _ := v.Quo(v, new(big.Rat).SetInt64(n-1)).Float64()
		require.InEpsilon(t, want, m.Variance(1), 1e-14, "no digit is lost to an offset of %g", offset)
		require.GreaterOrEqual(t, m.Variance(0), 0.0)
	}
}

// SquaresAbout loses no digits for rewards far from zero, with the mean of another set too, as when
// one level is centred and another scaled.
func TestSquaresAboutAnotherMeanLoseNoDigitToAnOffset(t *testing.T) {
	rnd := seeded(t)
	for range 300 {
		offset := math.Ldexp(1, rnd.IntN(40))
		fill := func() (m Moments, all []*big.Rat, mean *big.Rat) {
			mean = new(big.Rat)
			for range 2 + rnd.IntN(20) {
				r := offset + rnd.Float64()
				m.Add(r, 1)
				all = append(all, new(big.Rat).SetFloat64(r))
				mean.Add(mean, all[len(all)-1])
			}
			return m, all, mean.Quo(mean, new(big.Rat).SetInt64(int64(len(all))))
		}
		m, rewards, own := fill()
		c, _, other := fill()
		for _, about := range []struct {
			of   *Moments
			mean *big.Rat
		}{{&m, own}, {&c, other}} {
			want := new(big.Rat)
			for _, r := range rewards {
				d := new(big.Rat).Sub(r, about.mean)
				want.Add(want, d.Mul(d, d))
			}
			wanted, _ := want.Float64()
			require.InEpsilon(t, wanted, m.SquaresAbout(about.of), 1e-14, "offset %g", offset)
		}
	}
}
