//go:build !purego

package value

const hasBlocks = true

// escapeBlocks writes src with its escapes to dst, 32 bytes at a time, and returns how
// much it read and wrote. It ends before a byte that must be escaped and is not in short, or
// where fewer than 64 bytes are left. dst needs room for twice as much and 32 bytes.
//
//go:noescape
func escapeBlocks(dst []byte, src string, short *[256]byte) (read, written int)
