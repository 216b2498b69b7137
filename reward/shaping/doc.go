// Package shaping changes rewards and masks before advantages are estimated: length penalties near a
// limit, truncated rollouts, repetition, groups without a learning signal, stale rollouts. Where
// trainers disagree, each variant is named.
//
// [Rules] combines the rules of a batch job in one record, whose zero value does nothing;
// turnpack.Pipeline applies it and reports its effects and their reasons.
package shaping
