package pq

import (
	"io"

	"github.com/turnpack/turnpack/internal/pqread"
)

// Files are read by package pqread, which needs no arrow/go.
type (
	// File is an open Parquet file by any writer.
	File = pqread.File
	// Leaf is one column of a file.
	Leaf = pqread.Leaf
	// Chunk is one column of one row group.
	Chunk = pqread.Chunk
	// KV is one entry of the file metadata.
	KV = pqread.KV
)

// Open reads the footer of a file of the given size.
func Open(r io.ReaderAt, size int64) (*File, error) { return pqread.Open(r, size) }

// Whole is the size of the longest beginning of a file that is a whole Parquet file.
func Whole(r io.ReaderAt, size int64) int64 { return pqread.Whole(r, size) }

// MostBytes is how many bytes the buffers of a column may take.
func MostBytes(fileSize int64) int64 { return pqread.MostBytes(fileSize) }

// MostValues says how many values a row group may have.
func MostValues(fileSize int64) int64 { return pqread.MostValues(fileSize) }
