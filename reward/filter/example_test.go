package filter_test

import (
	"fmt"

	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/filter"
)

func ExampleApply() {
	groups := []filter.Group{
		{Key: "varied", Rewards: []float64{1, 0, 0, 0}},
		{Key: "rounding", Rewards: []float64{0.7, 0.7, 0.7, float64(float32(0.7))}},
		{Key: "solved", Rewards: []float64{1, 1, 1, 0.9}},
	}
	decisions, _, err := filter.Apply(groups, filter.Rule{Band: &reward.Range{Low: 0.1, High: 0.95}})
	if err != nil {
		fmt.Println(err)
	}
	for i, d := range decisions {
		fmt.Printf("%s: keep %t %q\n", groups[i].Key, d.Keep, d.Reason)
	}
	// Output:
	// varied: keep true ""
	// rounding: keep false "all rewards are alike"
	// solved: keep false "mean reward above the band"
}
