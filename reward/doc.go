// Package reward turns recorded outcomes into rewards, and rewards into advantages, by which a trainer
// multiplies its policy gradient.
//
// The stages of a reward:
//
//	rollout ── Score ─▶ reward (or the reason for its absence)
//	        ── Advantages, or Estimator.Statistics in two passes ─▶ one advantage per rollout
//	        ── Credit ─▶ Sequence.Credit on every trained token
//
// Each stage takes and returns plain values. An Estimator is a record of independent choices (which
// rewards are compared, what is subtracted, the divisor, the treatment of groups that cannot be
// compared) rather than a name: several incompatible formulas are called GRPO, and Presets lists those
// of the trainers by system and revision. The zero Estimator is the default of this module: groups by
// key, one reward per rollout, (r − mean) / (σ₁ + 1e-6), and exactly 0 where all rewards of a group
// are alike.
//
// Sums are exact, so results do not depend on the order of rollouts, bit for bit, and Statistics
// agrees with Advantages.
//
// Related packages: shaping changes rewards and masks before they are compared, filter drops groups
// without a learning signal, weights makes the aggregation of the loss explicit per token, offpolicy
// corrects for the difference between the sampling policy and the trained policy, detect finds the
// messages to which an Override applies. Rewards per step go through StepsOf, StepAdvantages and
// CreditSteps, rewards per token through TokenAdvantages and TokenTable.
//
// A rollout without a usable reward is never given a low one: it is excluded with a reason, kept out
// of every statistic, and counted in the Report.
package reward
