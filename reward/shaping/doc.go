// Package shaping changes rewards and masks before advantages are estimated:
// length penalties near a limit, rollouts that were cut off, repetition.
// Everything is a plain function of numbers; the variants of trainers that
// disagree are named.
package shaping
