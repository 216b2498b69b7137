package weights_test

import (
	"fmt"

	"github.com/turnpack/turnpack/reward/weights"
)

// A rollout split into two rows counts as much as a rollout of one row.
func ExamplePerRow() {
	rows := []weights.Row{
		{Rollout: "a", Trained: 10, Length: 40}, {Rollout: "a", Trained: 30, Length: 60},
		{Rollout: "b", Trained: 20, Length: 50},
	}
	for _, mode := range []string{"rollout_mean", "token_mean", "sequence_mean"} {
		w, err := weights.PerRow(rows, weights.Aggregation{Mode: mode})
		if err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%-13s a has %.3f of the loss, b %.3f\n", mode, 10*w[0]+30*w[1], 20*w[2])
	}
	// Output:
	// rollout_mean  a has 0.500 of the loss, b 0.500
	// token_mean    a has 0.667 of the loss, b 0.333
	// sequence_mean a has 0.667 of the loss, b 0.333
}
