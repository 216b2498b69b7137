package proxy

import "time"

// WaitForBodies sets how long a request body may take to arrive.
func (h *Handler) WaitForBodies(d time.Duration) { h.bodyTime = d }
