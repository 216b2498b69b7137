// Package turnpack turns recorded multi-turn agent rollouts into training
// batches: token sequences with exact loss masks, outcome rewards, group
// advantages, and rows that GPU trainers read.
//
// One noun flows through packages that are each one verb:
//
//	dump files ─ rollout/traj ─▶ Rollout ─ tokenize ─▶ []Sequence ─ lossmask ─▶ +Weight ─ reward ─▶ +Credit ─ export ─▶ Parquet
//
// [Pipeline] composes them over a [Source] and a [Sink] in two passes: the
// first scores every rollout and keeps sums per group, the second encodes and
// writes, so neither rollouts nor groups need fit in memory. Every verb also
// works alone; see the packages rollout, rollout/traj, tokenize, lossmask,
// ctxwindow, reward, prm and export.
//
// The promise: every trained token is a token the model sampled, in the context
// the model saw, exactly once, with its own log probability, and every row says
// where each of its tokens came from. Where a dump cannot prove that, the row
// says so.
package turnpack
