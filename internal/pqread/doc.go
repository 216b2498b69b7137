// Package pqread reads Parquet files by any writer that were not made by this project,
// or were damaged since: time and memory follow from a file's size, never from a number
// in it.
//
// [Open] and [File.Read] give flat columns, scalars and lists of numbers, as the typed
// slices that training batches need. [Rows] gives whole rows of any nesting as JSON, page
// by page. It needs no library but those of compression; docs/adr/0003-parquet-writer.md
// says why none reads the format here.
package pqread
