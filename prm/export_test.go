package prm

import "github.com/turnpack/turnpack/rollout"

var VerdictFor, DefaultEscapes, Cut = verdictFor, defaultEscapes, cut

// Needed returns the number of votes that would be requested next.
func Needed(a Aggregate, votes []rollout.Vote, m int) int { return a.needed(votes, m) }
