package traj

// JoinRecorded exports joinCalls to tests.
var JoinRecorded = joinCalls

// WithHold sets how many bytes of a value are kept in memory before its strings are left in
// the file.
func WithHold(o Options, bytes int) Options {
	o.hold = bytes
	return o
}
