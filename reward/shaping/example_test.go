package shaping_test

import (
	"fmt"

	"github.com/turnpack/turnpack/reward/shaping"
)

// Answers of up to 12,288 tokens lose nothing, answers of 16,384 tokens lose a full point.
func ExampleOverlong() {
	o := shaping.Overlong{Max: 16384, Cache: 4096, Penalty: 1}
	for _, tokens := range []int{12000, 14336, 20000} {
		fmt.Println(tokens, o.Punishment(tokens))
	}
	// Output:
	// 12000 0
	// 14336 -0.5
	// 20000 -1
}
