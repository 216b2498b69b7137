// Package pq writes the Parquet files that training batches need: scalar columns and lists
// of numbers, one level deep, and trees of them for chats. Package pqread reads them.
//
// Schema trees, footers and statistics are written by arrow/go; pages are made
// here. A row group is handed over as typed slices with list lengths, so that
// definition and repetition levels are emitted as runs instead of one 16-bit
// level per token, and so that BYTE_STREAM_SPLIT, which arrow/go v17 lacks, is
// available. docs/adr/0003-parquet-writer.md holds the reasons and the figures.
//
// Errors of the destination are kept and returned by every later call; arrow's
// own file writer drops them in its Close.
package pq
