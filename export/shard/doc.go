// Package shard writes a folder of export files that survives anything: each
// file appears whole or not at all, a run that was killed goes on where it
// stopped when it is started again with the same input and options, and the
// folder then holds the same bytes as after a run without a stop.
//
// A folder holds the shards, manifest.json once it is complete, and while it is
// not, progress.json (the shards that are done) and a lock against a second
// writer. Shards are cut where a GRPO group ends.
//
// [Verify] checks a complete folder against its manifest. [Merge] makes the manifest of
// shards that were written apart, by several machines.
package shard
