// Package stats sums rewards for the estimators: exactly, so that the order of
// rollouts changes no bit of a result ([Sum], [Moments]), or with the rounding of
// a system that is reproduced bit for bit ([PairwiseSum] and its like).
package stats
