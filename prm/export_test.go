package prm

import "github.com/turnpack/turnpack/rollout"

var VerdictFor, DefaultEscapes, Cut = verdictFor, defaultEscapes, cut

// Needed is how many votes a judge would be asked for next.
func Needed(a Aggregate, votes []rollout.Vote, m int) int { return a.needed(votes, m) }
