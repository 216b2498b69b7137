// Package overview describes a batch in numbers to read before training: how many rollouts solved
// their task, how often each group did, the distributions of rewards, steps, lengths and advantages,
// and how many rollouts were cut off by a limit.
//
// turnpack.Report holds the [Batch] of a run.
package overview
