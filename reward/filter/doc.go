// Package filter decides which groups of rollouts are worth training: those whose rewards differ, that
// are neither always nor never solved, and that have enough valid rollouts. Every decision comes with
// its reason and is counted.
//
// The tests of different trainers disagree on about three groups in ten; each test is available under
// its system's name. Tests for "deviation > 0" keep constant groups such as 8 × 0.7, whose deviation
// is rounding noise. The default rule of this package requires a spread beyond a tolerance.
package filter
