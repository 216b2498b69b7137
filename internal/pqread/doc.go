// Package pqread reads Parquet files from any writer, possibly damaged or hostile: time and
// memory are bounded by a file's size, never by a number in it.
//
// [Open] and [File.Read] return flat columns, scalars and lists of numbers, as typed slices,
// for training batches. [Rows] returns whole rows of any nesting as JSON, page by page. Only
// the compression is done by libraries; docs/adr/0003-parquet-writer.md says why none reads the
// format here.
package pqread
