// Package target prepares rows for one trainer and refuses rows that the trainer would crash
// on, drop, or silently train wrongly on. Every rule comes from a run of the trainer's own
// code.
//
// A [Target] takes the rows of one GRPO group and returns the rows to write. Package export
// writes the file or, for trainers with their own format, export/slime, export/primerl or
// export/megatron. Loaders for the other trainers are in examples/trainers.
//
//	target    reads                         refused or changed
//	slime     scalar advantage, mask        weights; advantages that vary inside a row; truncated only on a rollout's last row
//	openclaw  reward, or scores of steps    advantages that vary inside a step, or inside a row without steps; else as slime
//	megatron  mask (SFT)                    weights, rows over the pack size, endings that padding would hide
//	verl      scalar advantage, logprobs    aborted rollouts left out; advantages that differ between the rows of a rollout; as slime
//	skyrl     logprobs, reward, is_last     stop reason "length" on truncated rollouts
//	prime-rl  logprobs, advantages, weights rows over the sequence length
//	trl       advantages, logprobs          more than one row per rollout, unequal groups, groups of one
//	trl-async logprobs, scalar advantage    as slime
//	areal     versions, advantage, logprobs aborted rollouts left out; as slime
//	nemo-rl   advantages, logprobs          weights; several temperatures
//	none      everything                    nothing
//
// prime-rl and trl-async refuse rows without log probabilities; the other trainers can compute
// those of the policy before the step.
//
// All but prime-rl, megatron and none refuse rows sampled at different temperatures; all but
// megatron and none refuse rows sampled at 0.
package target
