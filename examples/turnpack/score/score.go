// Package score implements the command that has an LLM judge score the steps of rollouts,
// and writes the rollouts with their step scores.
package score

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/journal"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/traj"
)

// Run scores the rollouts and prints the summary.
func (c *Cmd) Run(p *cli.Program) error {
	s, err := c.run(p)
	if s != nil {
		if err != nil {
			fmt.Fprintln(p.Err, "the run ended early; these numbers are of the rollouts and steps that were finished, not of votes under way:")
		}
		s.print(p.Err)
		if c.Summary != "" {
			err = errors.Join(err, s.write(c.Summary))
		}
	}
	if err != nil {
		if p.Ctx.Err() != nil && c.Journal != "" {
			fmt.Fprintln(p.Err, "the votes so far are in the journal; the same command goes on from there")
		}
		return cli.Mistake(err)
	}
	if s.SkippedInput > 0 || s.Agreement.NotComputed > 0 {
		return &cli.ExitError{Code: cli.Failed}
	}
	return nil
}

func (c *Cmd) run(p *cli.Program) (_ *summary, err error) {
	stderr := &lines{w: p.Err}
	seen := &watch{w: stderr, patience: c.judge.Patience}
	c.judge.Hook = seen
	client, err := openai.New(c.judge)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	o := c.options
	o.Identity = client.Identity()
	if c.Journal != "" {
		if o.Journal, err = journal.Open(c.Journal); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, o.Journal.Close()) }()
		if torn := o.Journal.Stats().Torn; torn > 0 {
			fmt.Fprintf(stderr, "cut %d torn bytes off the end of %s; their votes are asked again\n", torn, c.Journal)
		}
	}
	total, err := c.planned(p.In)
	if err != nil {
		return nil, err
	}
	votes := newProgress(stderr, cli.Terminal(p.Err), c.Progress, total, client.Stats, seen.take)
	defer votes.close()
	o.OnVote = func(_ prm.VoteID, _ rollout.Vote, resumed bool) { votes.vote(resumed) }
	scorer, err := prm.NewScorer(client, o)
	if err != nil {
		return nil, err
	}
	in, err := c.open(p.In)
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(p.Out, 1<<20)
	var file *atomic.File // appears under its name when complete
	if c.Out != "-" {
		cli.Sweep(stderr, filepath.Dir(c.Out), filepath.Base(c.Out))
		if file, err = atomic.Create(c.Out, true); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, file.Abort()) }() // nothing, once it is complete
		out.Reset(file)
	}
	s := &summary{Model: c.judge.Model, scale: c.scale()}
	began := time.Now()
	err = scorer.ScoreAll(p.Ctx, in.All(), func(r *rollout.Rollout, steps []rollout.StepScore) error {
		for _, step := range steps {
			if step.Votes != nil {
				votes.spare(o.Votes - len(step.Votes))
			}
		}
		scored := *r
		scored.Steps = steps
		s.add(&scored)
		return jsonl.Write(out, &scored)
	})
	report := in.Report()
	s.SkippedInput = report.Skipped
	for _, e := range report.Errors {
		fmt.Fprintf(stderr, "skipped: %v\n", e)
	}
	if err == nil && s.Rollouts == 0 && s.SkippedInput > 0 {
		err = rollout.Errorf(rollout.KindInput, rollout.Where{}, "no rollout could be read")
	}
	s.finish(client.Stats(), votes, time.Since(began))
	if err = errors.Join(err, out.Flush()); err == nil && file != nil {
		err = file.Commit()
	}
	return s, err
}

func (c *Cmd) open(stdin io.Reader) (*traj.Reader, error) {
	return traj.Open(c.In, traj.Options{Format: c.Format, Stdin: stdin, Except: c.Out})
}

// planned returns the number of votes that the input needs, or −1 if the input includes
// standard input, which can be read only once.
func (c *Cmd) planned(stdin io.Reader) (int64, error) {
	if slices.Contains(c.In, "-") {
		return -1, nil
	}
	in, err := c.open(stdin)
	if err != nil {
		return 0, err
	}
	var n int64
	for r, err := range in.All() {
		if err != nil {
			break // the run itself meets and reports this error
		}
		for _, s := range prm.StepsOf(r) {
			if !s.Unrecorded && (s.Class != "command-less" || c.CommandLess == "judge") && (s.Class != "submit" || c.Submit == "judge") {
				n += int64(c.Votes)
			}
		}
	}
	return n, nil
}

// text returns a metadata value as text: a string as it is, any other value as JSON.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
