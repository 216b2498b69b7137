// Package slime writes the debug rollout data of slime: a file that
// torch.load opens, also with weights_only, made without torch. slime trains
// from it with --load-debug-rollout-data and a five-line reward hook
// (examples/trainers/slime); prepare the rows with target "slime".
//
// The file is a zip archive with one pickle of plain values: {"rollout_id": n,
// "samples": [sample, …]}, one sample per row in order. loss_mask and
// rollout_log_probs cover the response, the tokens after prompt_len. Samples of
// one rollout share its rollout_id, the index of its first sample.
//
// Rows of an estimator that compares steps have metadata["step_wise"] too, from which the
// slime of OpenClaw-RL (--advantage-estimator step_wise) makes the advantages of steps; the
// target "openclaw" takes rows of several steps for it.
package slime
