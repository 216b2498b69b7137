package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// process is a Python program with a line protocol on its standard streams.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(c *config, script string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(c.python, append([]string{filepath.Join(c.here, script)}, args...)...)}
	p.cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "TOKENIZERS_PARALLELISM=false", "PYTHONDONTWRITEBYTECODE=1", "HF_HUB_OFFLINE=1")
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// close ends the program; all its lasting state is on disk.
func (p *process) close() {
	_ = p.in.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// engine is a running engine.py.
type engine struct {
	*process
	url string
}

func startEngine(c *config) (*engine, error) {
	p, err := start(c, "engine.py", c.model())
	if err != nil {
		return nil, err
	}
	line, err := p.out.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		p.close()
		return nil, fmt.Errorf("engine.py did not start: %q: %w", line, err)
	}
	return &engine{p, url}, nil
}

// answer is a line from a trainer.
type answer struct {
	Ready   bool   `json:"ready"`
	Resumed bool   `json:"resumed"`
	Begun   int    `json:"begun"`
	Already bool   `json:"already"`
	Refused string `json:"refused"`
	Version int    `json:"version"`
	Seq     int    `json:"seq"`

	Rows    int     `json:"rows"`
	Tokens  int64   `json:"tokens"`
	Trained int64   `json:"trained"`
	Loss    float64 `json:"loss"`
	Drift   float64 `json:"drift"`   // mean |trainer's − recorded log probability| over trained tokens
	Beyond  float64 `json:"beyond"`  // share of trained tokens with a difference above 1e-3
	Largest float64 `json:"largest"` // largest difference
	Seconds float64 `json:"seconds"` // of processor time
}

// refused is the error of a trainer that refuses a step, with its reason.
type refused struct{ why string }

func (r *refused) Error() string { return "the trainer makes no step: " + r.why }

// errDied reports that a trainer ended without an answer.
var errDied = errors.New("the trainer died")

// trainer is a running train.py.
type trainer struct {
	*process
	begun func(answer) // called when a step begins; may be nil
}

func startTrainer(c *config, script string) (*trainer, error) {
	p, err := start(c, script)
	if err != nil {
		return nil, err
	}
	t := &trainer{process: p}
	_, err = t.read()
	return t, err
}

func (t *trainer) read() (a answer, err error) {
	for {
		line, err := t.out.ReadBytes('\n')
		if err != nil {
			return a, fmt.Errorf("%w: %v", errDied, err)
		}
		if err := json.Unmarshal(line, &a); err != nil {
			return a, fmt.Errorf("the trainer says %q: %w", line, err)
		}
		switch {
		case a.Refused != "":
			return a, &refused{a.Refused}
		case a.Begun == 0:
			return a, nil
		case t.begun != nil:
			t.begun(a)
		}
		a = answer{}
	}
}

// say sends a message and waits for the answer.
func (t *trainer) say(ctx context.Context, what any) (answer, error) {
	line, err := json.Marshal(what)
	if err != nil {
		return answer{}, err
	}
	defer context.AfterFunc(ctx, func() { _ = t.cmd.Process.Kill() })()
	if _, err := t.in.Write(append(line, '\n')); err != nil {
		return answer{}, fmt.Errorf("%w: %v", errDied, err)
	}
	a, err := t.read()
	if ctx.Err() != nil {
		return a, context.Cause(ctx)
	}
	return a, err
}

// since returns the seconds since t.
func since(t time.Time) float64 { return time.Since(t).Seconds() }
