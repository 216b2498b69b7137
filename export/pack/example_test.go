package pack_test

import (
	"fmt"

	"github.com/turnpack/turnpack/export/pack"
)

func ExampleBestFit() {
	bins, err := pack.BestFit([]pack.Item{{Size: 6}, {Size: 3}, {Size: 5}, {Size: 4}, {Size: 2}}, pack.Options{Capacity: 10})
	fmt.Println(bins, pack.Fill(bins, 10), err)
	// Output: [{[0 3] 10} {[1 2 4] 10}] 1 <nil>
}
