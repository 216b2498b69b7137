// Package pq writes the Parquet files of training batches, with scalar columns and lists of
// numbers one level deep, and nested columns for chats. Package pqread reads them.
//
// arrow/go writes schema trees, footers and statistics; this package makes the pages. A row
// group is passed as typed slices with list lengths, so that definition and repetition levels
// are emitted as runs instead of one 16-bit level per token, and BYTE_STREAM_SPLIT, which
// arrow/go v17 lacks, is available. docs/adr/0003-parquet-writer.md holds the reasons and the
// figures.
//
// An error of the destination is returned by every later call; arrow's own file writer drops it
// in its Close.
package pq
