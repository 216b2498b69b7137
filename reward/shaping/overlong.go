package shaping

import (
	"math"

	"github.com/turnpack/turnpack/internal/faults"
)

// Overlong is the soft overlong punishment of DAPO (arXiv:2503.14476, eq. 13): 0 up to Max − Cache
// tokens, then falling linearly to −Penalty at Max.
type Overlong struct {
	Max, Cache int     // tokens; Max >= 1, 0 <= Cache <= Max; a Cache of 0 punishes beyond Max only, not allowed with Unbounded
	Penalty    float64 // at Max tokens
	// Unbounded makes the punishment fall further beyond Max, as verl (1dda039b9) and NeMo RL
	// (7ea279abf) do. By default it stays at −Penalty, as in the paper and TRL (1.16.0, where Penalty
	// is 1).
	Unbounded bool
}

// Validate reports every fault of o at once.
func (o Overlong) Validate() error {
	var f faults.List
	if o.Max < 1 || o.Cache < 0 || o.Cache > o.Max || o.Cache == 0 && o.Unbounded {
		f.Add("Cache", "cache of %d tokens below a limit of %d, expected a limit of 1 or more and a cache of 0 (1 if Unbounded) to the limit", o.Cache, o.Max)
	}
	f.Amount("Penalty", o.Penalty)
	return f.Err()
}

// Punishment returns the amount to add to the reward of a response of length tokens, 0 or less.
func (o Overlong) Punishment(length int) float64 {
	over := float64(length - (o.Max - o.Cache))
	if over <= 0 {
		return 0
	}
	if !o.Unbounded && length > o.Max {
		return -o.Penalty
	}
	return math.Min(-over/float64(o.Cache)*o.Penalty, 0)
}
