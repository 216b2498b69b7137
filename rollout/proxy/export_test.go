package proxy

import "time"

// WaitForBodies sets how long a body may take to come.
func (h *Handler) WaitForBodies(d time.Duration) { h.bodyTime = d }
