// Package tokenize turns rollouts into token sequences that say for each token
// where it came from and whether the policy sampled it.
package tokenize
