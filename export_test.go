package turnpack

// WithHeldLimit sets how many bytes of rows stay in memory.
func WithHeldLimit(p Pipeline, limit int64) Pipeline {
	p.heldLimit = limit
	return p
}

// WithAgainLimit sets how many bytes of rollouts the first pass keeps; −1 = none.
func WithAgainLimit(p Pipeline, limit int64) Pipeline {
	p.againLimit = limit
	return p
}
