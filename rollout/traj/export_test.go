package traj

// JoinRecorded exports joinCalls to tests.
var JoinRecorded = joinCalls
