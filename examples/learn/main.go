// Command learn runs the training loop on one machine: a tiny causal model with random
// weights (engine.py), agents that call a tool, turnpack's service between them, a
// trainer (train.py or train_trl.py), and the new weights back to the engine. It runs the
// correct loop and the loop with common faults, one at a time, and writes how the rewards
// develop.
//
//	learn --python PYTHON --out DIR
//
// README.md describes the tasks and the faults.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "learn:", err)
		os.Exit(1)
	}
}

// arm is one way to run the loop.
type arm struct {
	Name    string `json:"name"`
	Task    string `json:"task"` // lookup or subagent
	Fault   fault  `json:"fault,omitempty"`
	Trainer string `json:"trainer"` // script of the trainer
	Engine  bool   `json:"engine_prompts,omitempty"`
}

// arms are the arms that make learn compares, in the order of the figure.
var arms = []arm{
	{Name: "lookup", Task: "lookup", Trainer: "train.py"},
	{Name: "subagent", Task: "subagent", Trainer: "train.py"},
	{Name: "lookup-trl", Task: "lookup", Trainer: "train_trl.py"},
	{Name: "lookup-engine-prompts", Task: "lookup", Trainer: "train.py", Engine: true},
	{Name: "lookup-retokenised", Task: "lookup", Trainer: "train.py", Fault: retokenised},
	{Name: "lookup-stop-masked", Task: "lookup", Trainer: "train.py", Fault: stopMasked},
	{Name: "lookup-by-position", Task: "lookup", Trainer: "train.py", Fault: byPosition},
	{Name: "lookup-infra-minus-one", Task: "lookup", Trainer: "train.py", Fault: infraMinusOne},
	{Name: "subagent-per-message", Task: "subagent", Trainer: "train.py", Fault: perMessage},
}

type config struct {
	python, here, out string
	seeds, parallel   int
	steps             int
	groups            int
	lost              float64
	arms              []arm
	named             bool // the user named the arms
	log               io.Writer
}

// model returns the folder with tokenizer, template and configuration.
func (c *config) model() string { return filepath.Join(c.here, "model") }

func parse(args []string, out, help io.Writer) (config, error) {
	c := config{log: out}
	fs := flag.NewFlagSet("learn", flag.ContinueOnError)
	fs.SetOutput(help)
	fs.StringVar(&c.python, "python", "python3", "`interpreter` with the packages of requirements.txt")
	fs.StringVar(&c.here, "here", "examples/learn", "`folder` of this program")
	fs.StringVar(&c.out, "out", "learn", "`folder` for journals, batches, checkpoints and results; it must not hold any")
	fs.IntVar(&c.seeds, "seeds", 3, "runs of each arm; where --arms names none, of the first, and one of each other")
	fs.IntVar(&c.parallel, "parallel", 2, "runs at a time, each with an engine and a trainer")
	fs.IntVar(&c.steps, "steps", 100, "steps of a run")
	fs.IntVar(&c.groups, "groups", 16, "groups of 8 rollouts in a step")
	fs.Float64Var(&c.lost, "lost", 0.1, "`share` of tool calls whose tool is lost, which is no fault of the policy")
	names := fs.String("arms", "", "`names` with commas, \"\" = all: "+strings.Join(armNames(), ", "))
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if fs.NArg() > 0 || c.seeds < 1 || c.parallel < 1 || c.steps < 1 || c.groups < 1 || !(c.lost >= 0 && c.lost < 1) {
		return c, errors.New("numbers are at least 1, --lost is in [0, 1), and there is nothing beside flags")
	}
	c.arms = arms
	if c.named = *names != ""; c.named {
		c.arms = nil
		for _, name := range strings.Split(*names, ",") {
			i := slices.IndexFunc(arms, func(a arm) bool { return a.Name == name })
			if i < 0 {
				return c, fmt.Errorf("no arm is named %q: they are %s", name, strings.Join(armNames(), ", "))
			}
			c.arms = append(c.arms, arms[i])
		}
	}
	return c, nil
}

func armNames() (out []string) {
	for _, a := range arms {
		out = append(out, a.Name)
	}
	return out
}

// run makes all runs and writes results.jsonl, one line per step.
func run(ctx context.Context, args []string, out, help io.Writer) (err error) {
	c, err := parse(args, out, help)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.out, 0o750); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(c.out, "results.jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("%w: name a new folder with --out", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var mu sync.Mutex
	told := func(s step) error {
		mu.Lock()
		defer mu.Unlock()
		return json.NewEncoder(file).Encode(s)
	}
	jobs := c.jobs()
	all, ctx := errgroup.WithContext(ctx)
	for range min(c.parallel, len(jobs)) {
		all.Go(func() error {
			x := &worker{config: c, trainers: map[string]*trainer{}}
			defer x.close()
			for j := range jobs {
				steps, err := x.loop(ctx, j.arm, j.seed, told)
				if err != nil {
					return fmt.Errorf("%s, seed %d: %w", j.arm.Name, j.seed, err)
				}
				mu.Lock()
				printSummary(c.log, steps)
				mu.Unlock()
			}
			return nil
		})
	}
	return all.Wait()
}

// job is one run of an arm.
type job struct {
	arm  arm
	seed int
}

// jobs returns all runs: every seed of named arms, else every seed of the first arm and
// one run of each other.
func (c *config) jobs() <-chan job {
	jobs := make(chan job, len(c.arms)*c.seeds)
	for seed := range c.seeds {
		for i, a := range c.arms {
			if seed == 0 || i == 0 || c.named {
				jobs <- job{a, seed}
			}
		}
	}
	close(jobs)
	return jobs
}

// finalSteps is the number of final steps over which the mean reward is taken.
const finalSteps = 5

// printSummary prints a line that summarizes a run.
func printSummary(w io.Writer, steps []step) {
	first, final := 0.0, 0.0
	k := min(finalSteps, len(steps))
	var agents, batches, training, drift float64
	for i, s := range steps {
		if i < k {
			first += s.Reward / float64(k)
		}
		if i >= len(steps)-k {
			final += s.Reward / float64(k)
		}
		agents, batches, training, drift = agents+s.Agents, batches+s.Batches, training+s.Training, max(drift, s.Drift)
	}
	s := steps[0]
	fmt.Fprintf(w, "%-24s seed %d  %s  reward %.2f to %.2f in %d steps  drift %.0e  seconds: agents and engine %.0f, batches %.0f, training %.0f\n",
		s.Arm, s.Seed, cmp.Or(strings.TrimSuffix(s.Trainer, ".py"), "-"), first, final, len(steps), drift, agents, batches, training)
}
