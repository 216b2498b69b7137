package ssr

import (
	"math"

	"github.com/turnpack/turnpack/rollout"
)

// DefaultAlpha is the paper's α: bugs that no attempt or every attempt solves earn −α.
const DefaultAlpha = 0.8

// InvalidReward is the injector's reward for an artifact that fails a check.
const InvalidReward = -1.0

// InjectReward returns the injector's reward: −1 for an invalid artifact; −α if none or all of the
// attempts solved the bug; else 1 − (1+α)·s with s = solved/attempts (paper, eq. 1). These cases are
// distinguished by comparing integers. For a valid artifact, attempts must be positive and solved
// between 0 and attempts.
func InjectReward(solved, attempts int, valid bool, alpha float64) (float64, error) {
	if err := checkAlpha(alpha); err != nil {
		return 0, err
	}
	if !valid {
		return InvalidReward, nil
	}
	if attempts <= 0 {
		return 0, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "attempts"}, "expected a positive number, found %d", attempts)
	}
	if solved < 0 || solved > attempts {
		return 0, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "solved"}, "expected 0 to %d, the number of attempts, found %d", attempts, solved)
	}
	return injectReward(solved, attempts, alpha), nil
}

func injectReward(solved, attempts int, alpha float64) float64 {
	if solved == 0 || solved == attempts {
		return -alpha
	}
	return 1 - (1+alpha)*float64(solved)/float64(attempts)
}

func checkAlpha(alpha float64) error {
	if math.IsNaN(alpha) || alpha < 0 || alpha > 1 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "alpha"}, "expected 0 to 1, found %v", alpha).
			WithFix("the paper uses 0.8")
	}
	return nil
}

// SolveReward returns the solver's reward: +1 if every test of the original suite passed, else −1. An
// empty suite proves nothing and is an error of kind input.
func SolveReward(tests []string) (float64, error) {
	if len(tests) == 0 {
		return 0, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "tests"}, "expected the result of at least one test, found none")
	}
	for _, t := range tests {
		if t != passed {
			return -1, nil
		}
	}
	return 1, nil
}

// Attempt is the end of a solver attempt.
type Attempt string

// Values of Attempt. Only the first two carry information about the bug.
const (
	Solved     Attempt = "solved"
	Unsolved   Attempt = "failed"
	Aborted    Attempt = "aborted"
	InfraError Attempt = "infra_error"
)

// Resolution is the outcome of one group of solver attempts.
type Resolution struct {
	Solved int // attempts that solved the bug
	Live   int // attempts that ended on their own: the denominator of s
	// Inject is the injector's reward, nil if too few attempts are live to determine it: a missing
	// reward rather than a bad one.
	Inject *float64
	// Solve holds the solver's reward for each attempt, nil for attempts that are not live.
	Solve []*float64
}

// Resolve returns the rewards of an injector and of the attempts at its bug. Attempts lost to the
// infrastructure do not count in s and get no reward (the paper does not cover them). minLive is the
// least number of live attempts; 0 means 1.
func Resolve(attempts []Attempt, minLive int, alpha float64) (Resolution, error) {
	if err := checkAlpha(alpha); err != nil {
		return Resolution{}, err
	}
	if minLive < 0 {
		return Resolution{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "min_live_attempts"}, "expected a number that is not negative, found %d", minLive)
	}
	s := Resolution{Solve: make([]*float64, len(attempts))}
	for i, a := range attempts {
		reward := -1.0
		switch a {
		case Solved:
			reward = 1
			s.Solved++
		case Unsolved:
		case Aborted, InfraError:
			continue
		default:
			return Resolution{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "attempts"}, "attempt %d: expected solved, failed, aborted or infra_error, found %q", i, a)
		}
		s.Live++
		s.Solve[i] = &reward
	}
	if s.Live >= max(minLive, 1) {
		reward := injectReward(s.Solved, s.Live, alpha)
		s.Inject = &reward
	}
	return s, nil
}

// Expectation computes the average reward of both roles when each of Attempts independent attempts
// solves the bug with probability p.
type Expectation struct {
	Attempts int
	Alpha    float64
}

// Inject returns the injector's expected reward at p, clamped to [0, 1]. The mean of 1 − (1+α)s is 1 −
// (1+α)p; at s = 1 the line equals −α anyway, so only s = 0, with probability (1−p)ⁿ, earns 1+α less
// than the line.
func (e Expectation) Inject(p float64) float64 {
	p = max(0, min(1, p))
	return 1 - (1+e.Alpha)*(p+math.Pow(1-p, float64(e.Attempts)))
}

// Solve returns the solver's expected reward at p.
func (e Expectation) Solve(p float64) float64 { return 2*p - 1 }

// Best returns the p on the grid 0, 1/steps … 1 with the largest value of Inject, the smallest such p
// if several share it. ok is false if no p is better than another, as with a single attempt, or if
// steps < 1.
func (e Expectation) Best(steps int) (p, value float64, ok bool) {
	if e.Attempts < 2 || steps < 1 {
		return 0, 0, false
	}
	value = math.Inf(-1)
	for i := 0; i <= steps; i++ {
		at := float64(i) / float64(steps)
		if v := e.Inject(at); v > value {
			p, value = at, v
		}
	}
	return p, value, true
}
