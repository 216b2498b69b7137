// Package offpolicy corrects for the difference between the policy that sampled a token and the policy
// that trains it: importance weights ρ = exp(train − rollout) with their bounds, and rejection of
// tokens or rows that drifted too far. Both use recorded log probabilities; this package does not run
// a model.
package offpolicy
