// Package rollout defines the types that every other package uses: what happened in an
// agent's attempt at a task ([Rollout], [Message], [Turn]), what a trainer reads
// ([Sequence], [Sample]), and how failures are reported ([Kind], [Error]). It uses the
// standard library only.
//
// A [Rollout] is never edited after reading. A [Sequence] is a struct of arrays with one
// entry per token; columns are shared read-only, [Columns.Sequence] builds one and
// [Sequence.Check] verifies its invariants. "Not computed" is nil and differs from zero.
package rollout
