package shaping

// Report counts the effects of rules.
type Report struct {
	// Rewards counts rollouts whose reward a rule changed, by rule.
	Rewards map[string]int `json:"rewards_changed,omitempty"`
	// Groups and Rollouts count those left out, by reason; Rollouts includes the rollouts of left out
	// groups.
	Groups   map[string]int `json:"groups_left_out,omitempty"`
	Rollouts map[string]int `json:"rollouts_left_out,omitempty"`
	// UnknownAge counts rollouts of unknown age, to which the maximum age could not be applied.
	UnknownAge int `json:"unknown_age,omitempty"`
	// NoTrainLogprobs counts rows without log probabilities of the training policy, to which OffPolicy
	// could not be applied: the trainer has to bound them.
	NoTrainLogprobs int `json:"rows_without_train_logprobs,omitempty"`
	// KeptAlike counts groups that the filter would leave out but kept, since too few others remained
	// (filter.Rule.KeepAtLeast).
	KeptAlike int `json:"groups_kept_though_alike,omitempty"`
}
