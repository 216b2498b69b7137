//go:build !amd64 || purego

package value

const hasBlocks = false

func escapeBlocks([]byte, string, *[256]byte) (read, written int) { return 0, 0 }
