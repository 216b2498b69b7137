//go:build !unix

package kit

import "time"

// CPUTime is not known here.
func CPUTime() time.Duration { return 0 }
