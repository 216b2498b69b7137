package play_test

import (
	"fmt"

	"github.com/turnpack/turnpack/reward/ssr/play"
)

// The difficulty of a bug is the share of attempts that failed.
func ExampleBug_Difficulty() {
	b := play.Bug{Solved: 2, Live: 8}
	fmt.Println(b.Difficulty())
	// Output: 0.75
}
