package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/prm"
	prmjournal "github.com/turnpack/turnpack/prm/journal"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/exact"
)

// training holds the flags and the state of Rollout.
type training struct {
	settings
	served, recipe, window, judge, judgeModel string
	context, votes                            int
	exact                                     bool

	attempts attempts
	pipeline turnpack.Pipeline
	have     map[string]*rollout.Rollout // complete attempts by id
	recorder *live.Recorder
	prompts  *exact.Prompts // nil = the engine makes them
	batches  *stream.Stream
	batch    sync.Mutex // serializes the making of batches
	runs     string     // folder of attempts in the format of swe-rl
	native   string     // folder of attempts in the native format
}

// Rollout makes n attempts at each task and writes their rows.
func Rollout(ctx context.Context, args []string, out io.Writer) (err error) {
	var c training
	concurrent, err := strconv.Atoi(cmp.Or(os.Getenv("SWE_MAX_CONCURRENT"), "128"))
	if err != nil {
		return fmt.Errorf("SWE_MAX_CONCURRENT: %w", err)
	}
	fs := flag.NewFlagSet("swerl rollout", flag.ContinueOnError)
	c.flags(fs, flagNames{"out", "n", "max-new-tokens"}, 8, concurrent, 1)
	fs.StringVar(&c.model, "model", "", "Hugging Face model `folder`: it counts what the model is shown, and makes the rows")
	fs.StringVar(&c.served, "served-model", "", "`name` that the engine serves it by (default: the first that it lists)")
	fs.IntVar(&c.context, "max-context", 16384, "tokens of prompt and reply together")
	fs.StringVar(&c.recipe, "recipe", "swe-rl@0d034dd", "`name` of the recipe of the rows")
	fs.StringVar(&c.window, "window", "", "what the model is shown, as refill:12288 (default: the recipe's, with the budget of --max-context)")
	fs.BoolVar(&c.exact, "exact", false, "make prompts here, with the ids that were sampled; the engine must take ids (vLLM, SGLang)")
	fs.StringVar(&c.judge, "judge", "", "base `URL` of a judge of steps, with /v1, asked while attempts run; several with commas (key: TURNPACK_JUDGE_KEY)")
	fs.StringVar(&c.judgeModel, "judge-model", "", "`name` of the judge")
	fs.IntVar(&c.votes, "judge-votes", 3, "votes of a step")
	if err := fs.Parse(args); err != nil {
		return err
	}
	err = c.check(fs)
	if c.context <= c.most {
		err = errors.Join(err, errors.New("--max-context must be above --max-new-tokens"))
	}
	if (c.judge == "") != (c.judgeModel == "") || c.votes < 1 {
		err = errors.Join(err, errors.New("--judge and --judge-model go together, and --judge-votes must be above 0"))
	}
	if err != nil {
		return err
	}
	return c.run(ctx, out)
}

func (c *training) run(ctx context.Context, out io.Writer) (err error) {
	model, err := tokenize.Load(c.model, tokenize.LoadOptions{})
	if err != nil {
		return err
	}
	rules, err := recipe.Named(c.recipe)
	if err != nil {
		return err
	}
	c.pipeline, err = turnpack.Pipeline{Model: model, OnError: rollout.OnErrorSkip, Temperature: float32(c.temperature)}.With(rules)
	if err != nil {
		return err
	}
	c.pipeline.Window = nil // the shown context is recorded
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
	if c.have, err = c.finished(); err != nil {
		return err
	}
	if c.batches, err = stream.Open(filepath.Join(c.out, "batches"), c.export()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.batches.Close()) }()
	journal, err := live.OpenJournal(filepath.Join(c.out, "journal"), live.JournalOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	if c.recorder, err = live.New(live.Options{Journal: journal}); err != nil {
		return err
	}
	if cut := c.recorder.Stats().Open; cut > 0 {
		fmt.Fprintf(out, "%d attempts were cut by the end of another run: their sandboxes keep places of the pool until their leases end (--lease-ttl of serve-pool, 10m by default)\n", cut)
	}
	if err := agent.Abandon(ctx, c.recorder); err != nil {
		return err
	}
	var votes *prmjournal.Journal
	if c.judge != "" {
		if votes, err = prmjournal.Open(filepath.Join(c.out, "votes.journal")); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, votes.Close()) }()
	}
	c.attempts = attempts{settings: &c.settings, tasks: tasks, out: out, model: c.served, one: c.one}
	c.attempts.have = func(t task, k int) bool { return c.have[c.id(t, k)] != nil }
	c.attempts.prepare = func(o *agent.Options) error { return c.prepare(o, model, votes) }
	for _, t := range tasks { // write batches that a killed process did not
		if err := c.group(ctx, t); err != nil {
			return err
		}
	}
	if err := c.attempts.make(ctx); err != nil {
		return err
	}
	sayPrompts(out, c.prompts)
	return c.rows(ctx, out)
}

// prepare adds window, judge and exact prompts to the options of the agent.
func (c *training) prepare(o *agent.Options, model *tokenize.Model, votes *prmjournal.Journal) (err error) {
	if o.Window, err = ctxwindow.Parse(c.window); err != nil {
		return err
	}
	encoder, err := tokenize.NewEncoder(model, tokenize.Options{})
	if err != nil {
		return err
	}
	o.Counter = func(r *rollout.Rollout) ctxwindow.Counter { return encoder.Counter(r) }
	if c.exact {
		if c.prompts, err = exactPrompts(o, model); err != nil {
			return err
		}
	}
	if c.judge == "" {
		return nil
	}
	warm := 1.0 // the temperature that swe-rl uses for its judge
	judge, err := openai.New(openai.Options{Endpoints: strings.Split(c.judge, ","), Model: c.judgeModel, Temperature: &warm, MaxTokens: 4096})
	if err != nil {
		return err
	}
	// swe-rl judges neither the submission nor replies without a command.
	judged := prm.StepOptions{CommandLess: "skip", Submit: "skip"}
	o.Judge, err = prm.NewScorer(judge, prm.Options{Prompt: prm.SWERL(), Steps: judged, Votes: c.votes, Journal: votes})
	return err
}

// exactPrompts makes the agent's engine complete prompts that are tokenized here.
func exactPrompts(o *agent.Options, model *tokenize.Model) (*exact.Prompts, error) {
	prompts, err := exact.New(model, exact.Options{})
	if err != nil {
		return nil, err
	}
	policy, _ := o.Model.(agent.Engine)
	policy.Exact = prompts
	o.Model = policy
	return prompts, nil
}

func sayPrompts(out io.Writer, prompts *exact.Prompts) {
	if prompts != nil {
		p := prompts.Report()
		fmt.Fprintf(out, "%d prompts: %.1f%% go on from the ids that were sampled; others: %v\n", p.Turns, 100*p.Share(), p.Forked)
	}
}

// finished reads the complete attempts. Those with an infrastructure failure are
// repeated.
func (c *training) finished() (map[string]*rollout.Rollout, error) {
	names, err := fs.Glob(os.DirFS(c.native), "*.jsonl")
	if err != nil {
		return nil, err
	}
	have := map[string]*rollout.Rollout{}
	for _, name := range names {
		path := filepath.Join(c.native, name)
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

// one makes an attempt and returns when its files are on disk. The last attempt of a
// group also writes its batch.
func (c *training) one(ctx context.Context, t task, k int, run func(agent.Task) (*agent.Attempt, error)) (string, error) {
	start := live.Start{ID: fmt.Sprintf("%s__%d", c.id(t, k), time.Now().UnixNano()), Group: "group-" + strconv.Itoa(t.group), Index: k, Instance: t.instance.InstanceID}
	session, err := c.recorder.Begin(ctx, start)
	if err != nil {
		return "", err
	}
	x, err := run(agent.Task{ID: c.id(t, k), Group: start.Group, Index: k, Instance: t.instance, Session: session})
	if err != nil {
		return "", err
	}
	meta := map[string]any{"instance_id": t.instance.InstanceID, "sampling_params": map[string]any{"temperature": c.temperature, "max_new_tokens": c.most},
		"sample_metadata": t.metadata, "sample_prompt": t.prompt, "group_index": t.group, "index": t.group*c.n + k}
	if _, err := x.Save(c.runs, agent.Artifact{Group: t.group, Index: t.group*c.n + k, Meta: meta, Time: time.Now(), Native: c.native}); err != nil {
		return "", err
	}
	r := x.Rollout
	if err := endSession(ctx, c.recorder, session, r); err != nil {
		return "", err
	}
	c.attempts.mu.Lock()
	c.have[r.ID] = r
	c.attempts.mu.Unlock()
	said := fmt.Sprintf("%s: %s after %d turns (%s)", r.ID, r.Outcome.Verdict, len(r.Turns), cmp.Or(r.ExitStatus, "failed"))
	return said, c.group(ctx, t)
}

// group writes the batch of a group if all its attempts are complete. A group with
// infrastructure failures waits for the run that repeats them.
func (c *training) group(ctx context.Context, t task) error {
	var group turnpack.Slice
	c.attempts.mu.Lock()
	for k := range c.n {
		if r := c.have[c.id(t, k)]; r != nil && r.Failure == nil {
			group = append(group, r)
		}
	}
	c.attempts.mu.Unlock()
	if len(group) < c.n {
		return nil
	}
	c.batch.Lock()
	defer c.batch.Unlock()
	b, err := c.batches.Add(stream.Key{Group: group[0].Group}, nil, func(w *export.Writer) error {
		_, err := c.pipeline.Run(ctx, group, w)
		return err
	})
	if err == nil && b.Seq > 0 {
		c.attempts.mu.Lock()
		defer c.attempts.mu.Unlock()
		fmt.Fprintf(c.attempts.out, "batch %d: group %s, %d rows, %d tokens, %d trained\n", b.Seq, b.Group, b.Rows, b.Tokens, b.Trained)
	}
	return err
}

func (c *training) export() export.Options {
	return export.Options{Metadata: map[string]string{"recipe": c.recipe}}
}

// rows writes the rows of all groups into one file, for trainers and estimators that need
// all of them, and prints a summary.
func (c *training) rows(ctx context.Context, out io.Writer) error {
	var all turnpack.Slice
	verdicts := map[string]int{}
	for _, t := range c.attempts.tasks {
		for k := range c.n {
			if r := c.have[c.id(t, k)]; r != nil {
				all = append(all, r)
				verdicts[r.Outcome.Verdict.String()]++
			}
		}
	}
	path := filepath.Join(c.out, "rows.parquet")
	o := c.export()
	o.Force = true
	w, err := export.Create(path, o)
	if err != nil {
		return err
	}
	report, err := c.pipeline.Run(ctx, all, w)
	if err != nil || report.Rows == 0 { // for example, all groups are constant
		err = errors.Join(err, w.Abort())
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
