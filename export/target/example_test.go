package target_test

import (
	"fmt"

	"github.com/turnpack/turnpack/export/target"
)

func ExampleTarget_Group() {
	t, err := target.New("slime", target.Options{})
	if err != nil {
		panic(err)
	}
	rows, err := t.Group(group()) // two rollouts, one row without trained tokens
	for _, s := range rows {
		fmt.Println(s.ID, s.Len(), s.IsLast)
	}
	fmt.Println(err, t.Dropped)

	bad := group()
	bad[0].Advantage = nil
	_, err = t.Group(bad)
	fmt.Println(err)
	// Output:
	// g/0#0 5 false
	// g/0#1 8 true
	// g/1#0 5 true
	// <nil> map[row without a trained token:1]
	// rollout "g/1", advantage: row "g/1#0": slime: its loader reads the advantage and the row has none [rule 11 (target)] (run an advantage estimator first)
}
