//go:build unix

package process

import (
	"io"
	"os"
	"syscall"
)

// maxPipe is the maximum content of a pipe; more is not read from a process that keeps writing.
const maxPipe = 1 << 20

// drain reads what is in a pipe, without waiting.
func drain(f *os.File, to io.Writer) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	b := make([]byte, 64<<10)
	for left := maxPipe; left > 0; {
		n := 0
		err := conn.Read(func(fd uintptr) bool {
			for {
				if n, err = syscall.Read(int(fd), b); err != syscall.EINTR {
					return true
				}
			}
		})
		if err != nil || n <= 0 {
			return
		}
		_, _ = to.Write(b[:n]) // see openStream
		left -= n
	}
}
