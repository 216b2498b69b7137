// Package slime writes the debug rollout data of slime: a file that torch.load opens, also with
// weights_only, written without torch. slime trains on it with --load-debug-rollout-data and a
// five-line reward hook (examples/trainers/slime). Prepare the rows with target "slime".
//
// The file is a zip archive with one pickle of plain values: {"rollout_id": n, "samples":
// [sample, …]}, one sample per row, in order. loss_mask and rollout_log_probs cover the
// response, the tokens after prompt_len. The samples of a rollout share its rollout_id, the
// index of its first sample.
//
// Rows of an estimator that compares steps also have metadata["step_wise"], from which the
// slime of OpenClaw-RL (--advantage-estimator step_wise) computes step advantages. For it the
// target "openclaw" accepts rows of several steps.
package slime
