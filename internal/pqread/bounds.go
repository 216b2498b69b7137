package pqread

// MostBytes is how many bytes the buffers of a column may take for reading a
// file of the given size, and MostValues how many values a row group may have:
// 256 times the file, which nothing that holds rows of a training batch comes
// near.
func MostBytes(fileSize int64) int64 { return max(64<<20, min(256*fileSize, 1<<40)) }

// MostValues says how many values a row group may have; see [MostBytes].
func MostValues(fileSize int64) int64 { return max(16<<20, min(256*fileSize, 1<<40)) }
