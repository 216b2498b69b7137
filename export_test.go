package turnpack

// WithHeldLimit sets how many bytes of rows stay in memory.
func WithHeldLimit(p Pipeline, limit int64) Pipeline {
	p.heldLimit = limit
	return p
}
