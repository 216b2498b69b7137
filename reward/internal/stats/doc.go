// Package stats sums rewards for the estimators: exactly, so that results do not depend on the order
// of rollouts, bit for bit ([Sum], [Moments]), or with the rounding of a reproduced system
// ([PairwiseSum] and similar functions).
package stats
