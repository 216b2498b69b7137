package overview_test

import (
	"fmt"

	"github.com/turnpack/turnpack/reward/overview"
)

// turnpack.Report.Overview holds a Batch like this.
func ExampleBatch() {
	b := overview.Batch{Rollouts: 4, Graded: 3, Resolved: 1, Truncated: 1}
	fmt.Printf("%.2f %.2f\n", b.ResolveRate(), b.TruncatedShare())
	// Output: 0.33 0.25
}
