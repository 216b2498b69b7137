package offpolicy

import (
	"cmp"
	"math"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// Row holds the natural-log probabilities of one sequence. All slices have one entry per token; Train
// and Rollout are read where Mask is true, and elsewhere only if Correction.Untrained is "ratio".
type Row struct {
	Mask    []bool // true = trained
	Train   []float64
	Rollout []float64
}

// Correction defines how weights are computed. The zero value has no bounds. slime's TIS (624b824a8)
// is {Low, High, Untrained: "ratio"}, its IcePop the same with Drop; TRL's (1.16.0) has Untrained
// "unit"; verl's rollout correction (1dda039b9) has MaxLog 20 and CountEpsilon 1e-8, and Drop where
// Low is above 0.
type Correction struct {
	Sequence  bool    // one weight per row, the product over its trained tokens, instead of one per token
	Low, High float64 // bounds on the weight, 0 = none
	// Drop replaces a weight beyond its bounds by 0, so that the token is not trained; otherwise it is
	// replaced by the bound.
	Drop   bool
	MaxLog float64 // bounds |log ρ| before the exponential, 0 = none
	// Untrained selects the weight of untrained tokens: "", 0; "unit", the weight of the ratio 1, or
	// of the row's product with Sequence; "ratio", the weight of their own ratio, as for any token.
	Untrained string
	// Normalize divides by the mean weight: over trained tokens, or over rows with a trained token if
	// Sequence is set. A mean of 1e-8 or less divides nothing. CountEpsilon is added to the token
	// counts of these means.
	Normalize    bool
	CountEpsilon float64
}

// verlBound is verl's bound on |log ρ|.
const verlBound = 20

// Validate reports every fault of c at once.
func (c Correction) Validate() error {
	var f faults.List
	faults.Word(&f, "Untrained", c.Untrained, "unit", "ratio")
	f.Amount("Low", c.Low)
	f.Amount("High", c.High)
	f.Amount("MaxLog", c.MaxLog)
	f.Amount("CountEpsilon", c.CountEpsilon)
	if c.High > 0 && c.Low > c.High {
		f.Add("Low", "[%g, %g] is no interval", c.Low, c.High)
	}
	return f.Err()
}

func (c *Correction) weight(logRatio float64) float64 {
	if c.MaxLog > 0 {
		logRatio = math.Min(math.Max(logRatio, -c.MaxLog), c.MaxLog)
	}
	return math.Exp(logRatio)
}

func (c *Correction) bound(w float64) float64 {
	low, high := c.Low, cmp.Or(c.High, math.Inf(1))
	switch {
	case w >= low && w <= high:
		return w
	case c.Drop:
		return 0
	}
	return math.Min(math.Max(w, low), high)
}

// Weights returns one weight per token of every row.
func Weights(rows []Row, c Correction) ([][]float64, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := checkRows(rows); err != nil {
		return nil, err
	}
	out := make([][]float64, len(rows))
	for i, r := range rows {
		out[i] = make([]float64, len(r.Mask))
		product := 0.0
		for t, on := range r.Mask {
			if on {
				product += r.Train[t] - r.Rollout[t]
			}
		}
		for t, on := range r.Mask {
			log := 0.0
			switch {
			case c.Sequence:
				log = product
			case on || c.Untrained == "ratio":
				log = r.Train[t] - r.Rollout[t]
			}
			if on || c.Untrained != "" {
				w := c.bound(c.weight(log))
				if w-w != 0 {
					return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Token: rollout.At(t)}, "row %d: the ratio e^%g has no finite weight", i, log).
						WithFix("bound weights by High or MaxLog")
				}
				out[i][t] = w
			}
		}
	}
	if c.Normalize {
		c.normalize(rows, out)
	}
	return out, nil
}

func (c *Correction) normalize(rows []Row, weights [][]float64) {
	sum, n, seqSum, seqs := 0.0, 0.0, 0.0, 0.0
	for i, r := range rows {
		rowSum, rowN := 0.0, 0.0
		for t, on := range r.Mask {
			if on {
				rowSum += weights[i][t]
				rowN++
			}
		}
		sum, n = sum+rowSum, n+rowN
		if rowN > 0 {
			seqSum += rowSum / (rowN + c.CountEpsilon)
			seqs++
		}
	}
	mean := sum / (n + c.CountEpsilon)
	if c.Sequence {
		mean = seqSum / seqs
	}
	if !(mean > 1e-8) { // NaN without trained tokens
		return
	}
	for i := range weights {
		for t := range weights[i] {
			weights[i][t] /= mean
		}
	}
}

func checkRows(rows []Row) error {
	for i, r := range rows {
		if len(r.Train) != len(r.Mask) || len(r.Rollout) != len(r.Mask) {
			return rollout.Errorf(rollout.KindInput, rollout.Where{},
				"row %d has %d mask entries, %d training and %d rollout log probabilities", i, len(r.Mask), len(r.Train), len(r.Rollout))
		}
		for t, on := range r.Mask {
			if d := r.Train[t] - r.Rollout[t]; on && d-d != 0 {
				return rollout.Errorf(rollout.KindInput, rollout.Where{Token: rollout.At(t)},
					"row %d: log probabilities %g and %g have no finite difference", i, r.Train[t], r.Rollout[t])
			}
		}
	}
	return nil
}
