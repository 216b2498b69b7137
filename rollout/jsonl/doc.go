// Package jsonl reads and writes rollouts as native JSONL: one JSON object per line, one
// rollout per object. docs/format-rollout.md describes the keys.
//
// [Read] and [Write] work on streams, [Parse] and [Append] on the text of one rollout. What
// is written is read back equal, including keys without a field of their own (Extra), and
// equal rollouts give equal bytes.
//
// Each kind of object is one table of its fields, in the order in which they are written: a
// new key is one line there.
package jsonl
