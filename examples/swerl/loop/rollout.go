package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/agent"
	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/tokenize"
)

// training are the flags of Rollout.
type training struct {
	settings
	model, served, out, recipe, window string
	n, context, most                   int

	recorder *live.Recorder
	agent    *agent.Agent
	runs     string // folder of attempts, as swe-rl has them
	native   string // folder of all of them
	mu       sync.Mutex
}

// Rollout makes n attempts at each task, and rows of them.
func Rollout(ctx context.Context, args []string, out io.Writer) (err error) {
	var c training
	concurrent, err := environ("SWE_MAX_CONCURRENT", 128)
	if err != nil {
		return err
	}
	fs := flag.NewFlagSet("swerl rollout", flag.ContinueOnError)
	c.flags(fs, concurrent, 1)
	fs.StringVar(&c.model, "model", "", "Hugging Face model `folder`: it counts what the model is shown, and makes the rows")
	fs.StringVar(&c.served, "served-model", "", "`name` that the engine serves it by (default: the first that it lists)")
	fs.IntVar(&c.n, "n", 8, "attempts at a task: a group")
	fs.IntVar(&c.context, "max-context", 16384, "tokens of prompt and reply together")
	fs.IntVar(&c.most, "max-new-tokens", 4096, "tokens of a reply")
	fs.StringVar(&c.out, "out", "", "`folder` of attempts, journal and rows; one that holds attempts is gone on with")
	fs.StringVar(&c.recipe, "recipe", "swe-rl@0d034dd", "`name` of the recipe of the rows")
	fs.StringVar(&c.window, "window", "", "what the model is shown, as refill:12288 (default: the recipe's, with the budget of --max-context)")
	if err := fs.Parse(args); err != nil {
		return err
	}
	err = c.check(fs)
	if c.model == "" || c.out == "" {
		err = errors.Join(err, errors.New("--model and --out are needed"))
	}
	if c.n < 1 || c.most < 1 || c.context <= c.most {
		err = errors.Join(err, errors.New("--n and --max-new-tokens must be above 0, --max-context above --max-new-tokens"))
	}
	if err != nil {
		return err
	}
	return c.run(ctx, out)
}

func (c *training) run(ctx context.Context, out io.Writer) error {
	model, err := tokenize.Load(c.model, tokenize.LoadOptions{})
	if err != nil {
		return err
	}
	rules, err := recipe.Named(c.recipe)
	if err != nil {
		return err
	}
	pipeline, err := turnpack.Pipeline{Model: model, OnError: rollout.OnErrorSkip, Temperature: float32(c.temperature)}.With(rules)
	if err != nil {
		return err
	}
	if c.window == "" {
		name, _, cut := strings.Cut(rules.Window, ":")
		if c.window = name; cut {
			c.window += ":" + strconv.Itoa(c.context-c.most)
		}
	}
	tasks, err := c.tasks()
	if err != nil {
		return err
	}
	c.runs = cmp.Or(os.Getenv("SWE_SAVE_TRAJ_DIR"), filepath.Join(c.out, "runs"))
	c.native = filepath.Join(c.out, "rollouts")
	if err := errors.Join(os.MkdirAll(c.runs, 0o755), os.MkdirAll(c.native, 0o755)); err != nil {
		return err
	}
	have, err := c.finished()
	if err != nil {
		return err
	}
	if err := c.attempts(ctx, model, tasks, have, out); err != nil {
		return err
	}
	pipeline.Window = nil // what was shown is recorded
	return c.rows(ctx, pipeline, tasks, have, out)
}

// finished reads the attempts that are whole. Those that the infrastructure failed are
// made again.
func (c *training) finished() (map[string]*rollout.Rollout, error) {
	paths, err := filepath.Glob(filepath.Join(c.native, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	have := map[string]*rollout.Rollout{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		r, err := jsonl.Parse(text, jsonl.Options{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if r.Failure == nil {
			have[r.ID] = r
		}
	}
	return have, nil
}

func (c *training) id(t task, k int) string {
	return fmt.Sprintf("%s__g%d__i%d", t.instance.InstanceID, t.group, t.group*c.n+k)
}

// attempts makes those that are not there, and adds them to have.
func (c *training) attempts(ctx context.Context, model *tokenize.Model, tasks []task, have map[string]*rollout.Rollout, out io.Writer) (err error) {
	total := len(tasks) * c.n
	var todo []int
	for i := range total {
		if have[c.id(tasks[i/c.n], i%c.n)] == nil {
			todo = append(todo, i)
		}
	}
	say(out, &c.mu, "%d attempts at %d tasks, %d are there", total, len(tasks), total-len(todo))
	if len(todo) == 0 {
		return nil
	}
	boxes, err := c.sandboxes()
	if err != nil {
		return err
	}
	engines, err := c.engines()
	if err != nil {
		return err
	}
	defer engines.Close()
	if c.served == "" {
		c.served = servedModel(ctx, engines, c.model)
	}
	o, err := c.options(engines, c.served, c.most)
	if err != nil {
		return err
	}
	if o.Window, err = ctxwindow.Parse(c.window); err != nil {
		return err
	}
	encoder, err := tokenize.NewEncoder(model, tokenize.Options{})
	if err != nil {
		return err
	}
	o.Counter = func(r *rollout.Rollout) ctxwindow.Counter { return encoder.Counter(r) }
	if c.agent, err = agent.New(o); err != nil {
		return err
	}
	journal, err := live.OpenJournal(filepath.Join(c.out, "journal"), live.JournalOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	if c.recorder, err = live.New(live.Options{Journal: journal}); err != nil {
		return err
	}
	done := 0
	return each(ctx, len(todo), c.concurrent, func(ctx context.Context, i int) error {
		t, k := tasks[todo[i]/c.n], todo[i]%c.n
		r, err := c.one(ctx, t, k, func(task agent.Task) (*agent.Attempt, error) { return c.attempt(ctx, c.agent, boxes, task) })
		if err != nil {
			return fmt.Errorf("%s: %w", c.id(t, k), err)
		}
		c.mu.Lock()
		done++
		have[r.ID] = r
		n := done
		c.mu.Unlock()
		say(out, &c.mu, "%d/%d %s: %s after %d turns (%s)", n, len(todo), r.ID, r.Outcome.Verdict, len(r.Turns), cmp.Or(r.ExitStatus, "failed"))
		return nil
	})
}

// one makes an attempt, and returns when its files are on disk.
func (c *training) one(ctx context.Context, t task, k int, make func(agent.Task) (*agent.Attempt, error)) (*rollout.Rollout, error) {
	began := time.Now()
	start := live.Start{ID: fmt.Sprintf("%s__%d", c.id(t, k), began.UnixNano()), Group: "group-" + strconv.Itoa(t.group), Index: k, Instance: t.instance.InstanceID}
	session, err := c.recorder.Begin(ctx, start)
	if err != nil {
		return nil, err
	}
	x, err := make(agent.Task{ID: c.id(t, k), Group: start.Group, Index: k, Instance: t.instance, Session: session})
	if err != nil {
		return nil, err
	}
	meta := map[string]any{"instance_id": t.instance.InstanceID, "sampling_params": map[string]any{"temperature": c.temperature, "max_new_tokens": c.most},
		"sample_metadata": t.metadata, "sample_prompt": t.prompt, "group_index": t.group, "index": t.group*c.n + k}
	if _, err := x.Save(c.runs, agent.Artifact{Group: t.group, Index: t.group*c.n + k, Meta: meta, Time: time.Now(), Native: c.native}); err != nil {
		return nil, err
	}
	r := x.Rollout
	if _, err := session.End(ctx, live.Ending{Outcome: r.Outcome, Status: r.Status, ExitStatus: r.ExitStatus, Failure: r.Failure}); err != nil {
		return nil, err
	}
	// The files have it: the journal need not.
	return r, c.recorder.Deliver(ctx, live.Batch{Key: session.ID(), Digest: session.ID(), Sessions: []string{session.ID()}})
}

// servedModel is the first model that an engine lists.
func servedModel(ctx context.Context, engines interface {
	Models(context.Context) (json.RawMessage, error)
}, other string) string {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	text, err := engines.Models(ctx)
	if err != nil || json.Unmarshal(text, &list) != nil || len(list.Data) == 0 {
		return other
	}
	return list.Data[0].ID
}

// rows writes the rows of all groups, and what there is to say of them.
func (c *training) rows(ctx context.Context, p turnpack.Pipeline, tasks []task, have map[string]*rollout.Rollout, out io.Writer) error {
	var all turnpack.Slice
	verdicts := map[string]int{}
	for _, t := range tasks {
		for k := range c.n {
			if r := have[c.id(t, k)]; r != nil {
				all = append(all, r)
				verdicts[r.Outcome.Verdict.String()]++
			}
		}
	}
	path := filepath.Join(c.out, "rows.parquet")
	w, err := export.Create(path, export.Options{Force: true, Metadata: map[string]string{"recipe": c.recipe}})
	if err != nil {
		return err
	}
	report, err := p.Run(ctx, all, w)
	if err != nil {
		return err
	}
	if report.Rows == 0 { // all groups are constant, say
		err = w.Abort()
		path = "no file"
	} else {
		err = w.Close()
	}
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(map[string]any{"attempts": len(all), "verdicts": verdicts, "groups": report.Groups, "rows": report.Rows,
		"tokens": report.Tokens, "trained": report.Trained, "left_out": report.LeftOut, "without_rows": report.WithoutRows, "recipe": c.recipe}, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(c.out, "report.json"), append(b, '\n'), 0o644)
	}
	var counts []string
	for _, v := range slices.Sorted(maps.Keys(verdicts)) {
		counts = append(counts, fmt.Sprintf("%s %d", v, verdicts[v]))
	}
	fmt.Fprintf(out, "%d attempts: %s; %d rows, %d tokens, %d trained: %s\n", len(all), strings.Join(counts, ", "), report.Rows, report.Tokens, report.Trained, path)
	return err
}
