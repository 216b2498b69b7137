// Package shard writes a folder of export files that survives a kill at any moment. Each file
// appears complete or not at all. A killed run resumes when it is started again with the same
// input and options, and the folder then holds the same bytes as after an uninterrupted run.
//
// The folder holds the shards and, once it is complete, manifest.json. Until then it holds
// progress.json (the finished shards) and a lock against a second writer. Shards end at the end
// of a GRPO group.
//
// [Verify] checks a complete folder against its manifest. [Merge] makes the manifest of shards
// that were written separately, for example by several machines.
package shard
