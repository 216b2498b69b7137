// Package weights makes the aggregation of a loss explicit: it computes a weight for every trained
// token, such that a trainer that simply sums its weighted token losses gets the intended mean. All
// trained tokens of a row have the same weight, so one number per row is enough.
//
// The choice matters: token mean gives long rollouts more weight, sequence mean counts a rollout once
// for each of its rows, and rollout mean counts every rollout once, however many rows it has.
package weights
