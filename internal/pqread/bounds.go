package pqread

// MostBytes returns the most bytes that the buffers of a column may take when reading a file of
// the given size: 256 times the size, and at least 64 MiB, far more than any file of training
// batches needs.
func MostBytes(fileSize int64) int64 { return max(64<<20, min(256*fileSize, 1<<40)) }

// MostValues returns the most values that a row group may have: as [MostBytes], and at least
// 16 Mi.
func MostValues(fileSize int64) int64 { return max(16<<20, min(256*fileSize, 1<<40)) }
