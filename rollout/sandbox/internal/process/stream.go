package process

import (
	"io"
	"os"
	"time"
)

// stream carries what a command prints. os/exec has one too, which forgets what is in the
// pipe where the machine is too busy to read it in time.
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
		_, _ = io.Copy(to, out) // to takes all; the pipe ends or its time is over
	}()
	return s, nil
}

// started leaves the pipe to the command.
func (s *stream) started() { s.in.Close() }

// rest reads until no process holds the pipe, or for some time, and then what is in it.
func (s *stream) rest(patience time.Duration) {
	if s.out.SetReadDeadline(time.Now().Add(patience)) != nil { // no such pipes here
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
