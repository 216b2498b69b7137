//go:build unix

package process

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// late is a writer that gets no processor time for a while.
type late struct {
	text         bytes.Buffer
	came, resume chan struct{}
}

func (l *late) Write(p []byte) (int, error) {
	if l.came != nil {
		close(l.came)
		l.came = nil
		<-l.resume
	}
	return l.text.Write(p)
}

// TestNothingIsLostOnABusyMachine: a command's output is read even if the deadline passed before the reader
// ran, and a process that the command left holds the pipe.
func TestNothingIsLostOnABusyMachine(t *testing.T) {
	came, resume := make(chan struct{}), make(chan struct{})
	to := &late{came: came, resume: resume}
	s, err := openStream(to)
	require.NoError(t, err)
	defer s.started()
	_, err = s.in.WriteString("one ")
	require.NoError(t, err)
	<-came
	_, err = s.in.WriteString("two")
	require.NoError(t, err)
	time.AfterFunc(50*time.Millisecond, func() { close(resume) })
	began := time.Now()
	s.finish(time.Millisecond)
	require.Equal(t, "one two", to.text.String())
	require.Less(t, time.Since(began), 10*time.Second)
}
