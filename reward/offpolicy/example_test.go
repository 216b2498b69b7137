package offpolicy_test

import (
	"fmt"
	"math"

	"github.com/turnpack/turnpack/reward/offpolicy"
)

// The probability of the second token has quadrupled since it was sampled; the third is not trained.
func ExampleWeights() {
	row := offpolicy.Row{
		Mask:    []bool{true, true, false},
		Train:   []float64{math.Log(0.5), math.Log(0.8), 0},
		Rollout: []float64{math.Log(0.5), math.Log(0.2), 0},
	}
	clamped, err := offpolicy.Weights([]offpolicy.Row{row}, offpolicy.Correction{Low: 0.5, High: 2})
	if err != nil {
		panic(err)
	}
	dropped, err := offpolicy.Weights([]offpolicy.Row{row}, offpolicy.Correction{Low: 0.5, High: 2, Drop: true})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.2f %.2f\n", clamped[0], dropped[0])
	// Output: [1.00 2.00 0.00] [1.00 0.00 0.00]
}
