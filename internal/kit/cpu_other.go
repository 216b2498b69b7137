//go:build !unix

package kit

import "time"

// CPUTime returns 0: it is not supported here.
func CPUTime() time.Duration { return 0 }
