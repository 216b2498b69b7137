// Package reward turns recorded outcomes into rewards, and rewards into the
// advantages that a trainer multiplies its policy gradient with.
//
// The way of a reward:
//
//	rollout ── Score ─▶ reward (or a reason for having none)
//	        ── Advantages, or Estimator.Statistics in two passes ─▶ one advantage per rollout
//	        ── Credit ─▶ Sequence.Credit on every trained token
//
// Each step is a plain value in, a plain value out. An Estimator is a record of
// independent choices (what is compared, what is subtracted, what it is divided
// by, what happens to groups that cannot be compared), not a name: there are
// several incompatible formulas called GRPO, and Presets lists those of the
// trainers by system and revision. The zero Estimator is the default of this
// module: groups by key, one reward per rollout, (r − mean) / (σ₁ + 1e-6), and
// exactly 0 where all rewards of a group are alike.
//
// Sums are exact, so the order of rollouts changes no bit of any result, and
// Statistics agree with Advantages.
//
// Around these: shaping changes rewards and masks before they are compared,
// filter drops groups without a signal, weights makes the aggregation of the
// loss explicit per token, offpolicy corrects for a sampling policy that is not
// the trained one, detect finds messages that an Override is for. Rewards per
// step go through StepsOf, StepAdvantages and CreditSteps, rewards per token
// through TokenAdvantages and TokenTable.
//
// A rollout without a usable reward is never given a low one: it is excluded
// with a reason, leaves every statistic, and is counted in the Report.
package reward
