// Package process runs one command with limits: on its output while it streams, its time, and on Linux its
// memory and number of processes. When a limit is exceeded every process that it started is killed.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// Options are a command and its limits.
type Options struct {
	Args      []string
	Dir       string
	Env       []string // the whole environment; nil = that of this process
	Stdin     []byte
	Timeout   time.Duration // 0 = no limit
	MaxOutput int           // bytes of each stream
	// Limits are checked if not 0.
	Limits sandbox.Limits
	// Mark is a NAME=value of Env that identifies processes that left their group.
	Mark string
	// Every is the interval between checks of memory and processes; a quarter of a second if 0.
	Every time.Duration
	Table *Table // shared by concurrent commands, or nil
}

// Run runs a command to its end. An error is KindSandbox: the command could not be started, or ctx ended.
func Run(ctx context.Context, o Options) (sandbox.Result, error) {
	lost := func(err error) error {
		return rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "%s did not run: %w", o.Args[0], err)
	}
	if err := ctx.Err(); err != nil {
		return sandbox.Result{}, lost(err)
	}
	if o.Table == nil {
		o.Table = &Table{}
	}
	if o.Every <= 0 {
		o.Every = 250 * time.Millisecond
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if o.Timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, o.Timeout)
	}
	defer cancel()
	cmd := exec.Command(o.Args[0], o.Args[1:]...)
	stdout, stderr := &capped{limit: o.MaxOutput}, &capped{limit: o.MaxOutput}
	var streams []*stream
	abandon := func(err error) (sandbox.Result, error) {
		for _, s := range streams {
			s.started()
			s.finish(0)
		}
		return sandbox.Result{}, lost(err)
	}
	for _, to := range []io.Writer{stdout, stderr} {
		s, err := openStream(to)
		if err != nil {
			return abandon(err)
		}
		streams = append(streams, s)
	}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = o.Dir, o.Env, streams[0].in, streams[1].in
	if o.Stdin != nil {
		cmd.Stdin = bytes.NewReader(o.Stdin)
	}
	// Processes that the command left running hold its pipes, which are closed after this time.
	const patience = 200 * time.Millisecond
	cmd.WaitDelay = patience
	group(cmd)
	if err := cmd.Start(); err != nil {
		return abandon(err)
	}
	for _, s := range streams {
		s.started()
	}
	w := &watch{pid: cmd.Process.Pid, options: o}
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		w.until(limited, done)
	}()
	err := cmd.Wait()
	close(done)
	<-watched
	until := time.Now().Add(patience)
	for _, s := range streams {
		s.finish(time.Until(until))
	}
	r := sandbox.Result{ExitCode: exitCode(cmd), LeftOut: stdout.leftOut() + stderr.leftOut(), Peak: w.peak, End: w.end}
	r.Stdout, r.Stderr = stdout.text(), stderr.text()
	if w.end == sandbox.EndTimeout && ctx.Err() != nil {
		return r, lost(ctx.Err())
	}
	switch exit := (*exec.ExitError)(nil); {
	case r.End == sandbox.EndTimeout:
		r.ExitCode = -1
	case r.End != sandbox.EndExited:
		r.ExitCode = 137
	case err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay):
		return r, lost(err)
	}
	return r, nil
}

// capped keeps the first and the last bytes written to it.
type capped struct {
	limit      int
	head, ring []byte
	total      int64
}

func (c *capped) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if free := c.limit/2 - len(c.head); free > 0 {
		k := min(free, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	keep := c.limit - c.limit/2
	if c.ring = append(c.ring, p...); len(c.ring) > 2*keep+64<<10 {
		c.ring = append(c.ring[:0], c.ring[len(c.ring)-keep:]...)
	}
	return n, nil
}

func (c *capped) leftOut() int64 { return max(0, c.total-int64(c.limit)) }

func (c *capped) text() string {
	if c.leftOut() == 0 {
		return string(c.head) + string(c.ring)
	}
	keep := c.limit - c.limit/2
	return string(c.head) + fmt.Sprintf("\n[... %d bytes left out ...]\n", c.leftOut()) + string(c.ring[len(c.ring)-keep:])
}

// watch checks the processes of one command.
type watch struct {
	pid     int
	options Options
	known   map[int]uint64 // processes of the command and their start times
	peak    int64
	end     sandbox.End
}

// until checks until done is closed, and kills all processes when ctx ends or a limit is exceeded.
func (w *watch) until(ctx context.Context, done <-chan struct{}) {
	tick := time.NewTicker(w.options.Every)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			w.end = sandbox.EndTimeout
		case <-tick.C:
			memory, processes := w.look(w.options.Every / 2)
			w.peak = max(w.peak, memory)
			if limit := w.options.Limits; limit.Memory > 0 && memory > limit.Memory {
				w.end = sandbox.EndOOM
			} else if limit.Processes > 0 && processes > limit.Processes {
				w.end = sandbox.EndPids
			}
		}
		if w.end != sandbox.EndExited {
			w.kill()
			return
		}
	}
}
