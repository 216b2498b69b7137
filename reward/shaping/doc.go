// Package shaping changes rewards and masks before advantages are estimated:
// length penalties near a limit, rollouts that were cut off, repetition, groups that
// teach nothing, rollouts that are too old. The variants of trainers that disagree are
// named.
//
// The parts are plain functions of numbers. [Rules] puts those that a batch job applies
// into one record, whose zero value does nothing: [Rules.Shape] is asked for each
// rollout, [Rules.Decide] for all groups together. Both say what they did and why;
// turnpack.Pipeline asks them.
package shaping
