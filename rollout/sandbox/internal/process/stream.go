package process

import (
	"io"
	"os"
	"time"
)

// stream copies a command's output. The pipes of os/exec discard what remains in the pipe if a busy machine
// does not read it in time.
type stream struct {
	in, out *os.File
	to      io.Writer
	read    chan struct{}
}

func openStream(to io.Writer) (*stream, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s := &stream{in: in, out: out, to: to, read: make(chan struct{})}
	go func() {
		defer close(s.read)
		_, _ = io.Copy(to, out) // to never fails; the copy ends with the pipe or its deadline
	}()
	return s, nil
}

// started closes this process's end for writing, after the command has inherited it.
func (s *stream) started() { s.in.Close() }

// finish reads until no process holds the pipe or patience has passed, and then what is left in it.
func (s *stream) finish(patience time.Duration) {
	if s.out.SetReadDeadline(time.Now().Add(patience)) != nil { // pipes without deadlines
		select {
		case <-s.read:
		case <-time.After(patience):
		}
		s.out.Close()
		return
	}
	<-s.read
	if s.out.SetReadDeadline(time.Time{}) == nil {
		drain(s.out, s.to)
	}
	s.out.Close()
}
