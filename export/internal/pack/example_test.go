package pack_test

import (
	"fmt"

	"github.com/turnpack/turnpack/export/internal/pack"
)

func ExampleBestFit() {
	bins := pack.BestFit([]int{6, 3, 5, 4, 2}, 10)
	fmt.Println(bins)
	// Output: [{[0 3] 10} {[1 2 4] 10}]
}
