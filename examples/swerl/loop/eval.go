package loop

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnpack/turnpack/agent"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/exact"
)

// evaluation holds the flags and the state of Eval.
type evaluation struct {
	settings
	args     map[string]any
	log      *os.File // log of finished results
	exact    bool
	folder   string         // model folder, with exact
	recorder *live.Recorder // with exact
	prompts  *exact.Prompts
}

// result is a line of results.jsonl.
type result struct {
	InstanceID  string  `json:"instance_id"`
	Resolved    bool    `json:"resolved"`
	ExitStatus  *string `json:"exit_status"`
	PatchSource *string `json:"patch_source"`
	Steps       int     `json:"n_steps"`
	Error       *string `json:"error"`
	Elapsed     seconds `json:"elapsed"`
	RunDir      string  `json:"run_dir"`
	Attempt     *int    `json:"attempt,omitempty"` // only with several attempts
}

// seconds is written with one decimal place, as Python writes a float.
type seconds float64

// MarshalJSON formats the number.
func (s seconds) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%.1f", float64(s)), nil }

// kept is a line of progress.jsonl: a result and the data for the other files.
type kept struct {
	result
	Model  string           `json:"model"`
	Number int              `json:"number"` // number of the attempt
	Patch  *string          `json:"patch"`
	Report *swebench.Report `json:"report"`
}

// Eval measures a model. It writes results.jsonl, summary.json and the files of
// SWE-bench.
func Eval(ctx context.Context, args []string, out io.Writer) error {
	c := evaluation{args: map[string]any{}}
	fs := flag.NewFlagSet("swerl eval", flag.ContinueOnError)
	c.flags(fs, flagNames{"output-dir", "attempts", "max-tokens"}, 1, 4, 0)
	fs.StringVar(&c.model, "model", "", "`name` of the model; a prefix openai/, as other clients need, is dropped")
	fs.BoolVar(&c.exact, "exact", false, "make prompts here, with the ids that were sampled, as in training with --exact; needs --model-dir and an engine that takes ids (vLLM, SGLang)")
	fs.StringVar(&c.folder, "model-dir", "", "Hugging Face model `folder`, with --exact")
	if err := fs.Parse(args); err != nil {
		return err
	}
	err := c.check(fs)
	if c.exact != (c.folder != "") {
		err = errors.Join(err, errors.New("--exact and --model-dir go together"))
	}
	if err != nil {
		return err
	}
	fs.VisitAll(func(f *flag.Flag) {
		if f.Name != "api-key" {
			c.args[strings.ReplaceAll(f.Name, "-", "_")] = f.Value.(flag.Getter).Get()
		}
	})
	return c.run(ctx, out)
}

func (c *evaluation) run(ctx context.Context, out io.Writer) error {
	tasks, err := c.tasks()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return err
	}
	have, err := c.resume()
	defer c.log.Close()
	if err != nil {
		return err
	}
	a := attempts{settings: &c.settings, tasks: tasks, out: out, model: strings.TrimPrefix(c.model, "openai/")}
	a.have = func(t task, k int) bool { _, ok := have[c.key(t, k)]; return ok }
	if c.exact {
		a.prepare = c.prepare
	}
	a.one = func(ctx context.Context, t task, k int, run func(agent.Task) (*agent.Attempt, error)) (string, error) {
		began := time.Now()
		task := agent.Task{ID: c.key(t, k), Instance: t.instance}
		if c.recorder != nil { // exact prompts continue what a session has recorded
			var err error
			if task.Session, err = c.recorder.Begin(ctx, live.Start{ID: task.ID, Instance: t.instance.InstanceID}); err != nil {
				return "", err
			}
		}
		x, err := run(task)
		if err != nil {
			return "", err
		}
		if task.Session != nil {
			if err := endSession(ctx, c.recorder, task.Session, x.Rollout); err != nil {
				return "", err
			}
		}
		r, err := c.keep(x, k, began)
		if err != nil {
			return "", err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		have[c.key(t, k)] = r
		return fmt.Sprintf("%s: resolved %t after %d steps, %.1f s", r.InstanceID, r.Resolved, r.Steps, r.Elapsed), c.line(r)
	}
	if err := a.make(ctx); err != nil {
		return err
	}
	sayPrompts(out, c.prompts)
	return c.write(tasks, have, out)
}

// prepare sets up exact prompts.
func (c *evaluation) prepare(o *agent.Options) error {
	model, err := tokenize.Load(c.folder, tokenize.LoadOptions{})
	if err != nil {
		return err
	}
	if c.recorder, err = live.New(live.Options{}); err != nil {
		return err
	}
	c.prompts, err = exactPrompts(o, model)
	return err
}

func (c *evaluation) key(t task, n int) string {
	return t.instance.InstanceID + "#" + strconv.Itoa(n)
}

// resume reads the earlier results and opens the file for more. Results with an error are
// repeated; a torn last line is ignored.
func (c *evaluation) resume() (_ map[string]kept, err error) {
	path := filepath.Join(c.out, "progress.jsonl")
	if c.log, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return nil, err
	}
	if !atomic.Hold(c.log) {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "another run writes it").WithFix("wait for that run, or give another --output-dir")
	}
	text, err := io.ReadAll(c.log)
	if err != nil {
		return nil, err
	}
	have := map[string]kept{}
	whole := bytes.LastIndexByte(text, '\n') + 1
	for line := range bytes.Lines(text[:whole]) {
		var k kept
		if err := json.Unmarshal(line, &k); err != nil {
			return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{File: path}, "%w", err)
		}
		if cmp.Or(k.Model, c.model) != c.model {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "it holds attempts of the model %q, not of %q", k.Model, c.model).WithFix("give another --output-dir")
		}
		if k.Error == nil {
			have[k.InstanceID+"#"+strconv.Itoa(k.Number)] = k
		}
	}
	if err = c.log.Truncate(int64(whole)); err == nil {
		_, err = c.log.Seek(int64(whole), io.SeekStart)
	}
	return have, err
}

// keep writes the folder of an attempt and returns its result.
func (c *evaluation) keep(x *agent.Attempt, n int, began time.Time) (kept, error) {
	dir, err := x.Save(c.out, agent.Artifact{Evaluation: true, Time: time.Now(),
		Meta: struct {
			InstanceID string `json:"instance_id"`
			Model      string `json:"model"`
			APIBase    string `json:"api_base"`
			StepLimit  int    `json:"step_limit"`
			MaxTokens  int    `json:"max_tokens"`
		}{x.Rollout.Instance, c.model, c.api, c.steps, c.most}})
	if err != nil {
		return kept{}, err
	}
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	k := kept{Model: c.model, Number: n, Patch: x.Patch, Report: x.Report, result: result{InstanceID: x.Rollout.Instance, Resolved: x.Evaluation != nil && x.Evaluation.Resolved,
		ExitStatus: text(x.Rollout.ExitStatus), PatchSource: text(x.PatchSource), Steps: len(x.Rollout.Turns), Error: text(x.Error),
		Elapsed: seconds(time.Since(began).Seconds()), RunDir: dir}}
	if c.n > 1 {
		k.Attempt = &n
	}
	return k, nil
}

// line appends a result to the log, which makes it durable.
func (c *evaluation) line(k kept) error {
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if _, err := c.log.Write(append(b, '\n')); err != nil {
		return err
	}
	return c.log.Sync()
}

// write writes the files of a complete evaluation.
func (c *evaluation) write(tasks []task, have map[string]kept, out io.Writer) error {
	var all []kept
	counts := map[string][2]int{} // instance → attempts that count, and resolved ones
	var instances []swebench.Instance
	for _, t := range tasks {
		instances = append(instances, t.instance)
		for n := range c.n {
			k := have[c.key(t, n)]
			all = append(all, k)
			if x := counts[k.InstanceID]; k.Error == nil {
				x[0]++
				if k.Resolved {
					x[1]++
				}
				counts[k.InstanceID] = x
			}
		}
	}
	slices.SortStableFunc(all, func(a, b kept) int {
		return cmp.Or(strings.Compare(a.InstanceID, b.InstanceID), a.Number-b.Number)
	})
	var lines, predictions []string
	var first []swebench.Prediction
	reports := map[string]swebench.Report{}
	resolved, faults, none, steps, elapsed := 0, 0, 0, 0.0, 0.0
	for _, k := range all {
		line, err := json.Marshal(k.result)
		if err != nil {
			return err
		}
		lines = append(lines, string(line))
		steps, elapsed = steps+float64(k.Steps), elapsed+float64(k.Elapsed)
		if k.Resolved {
			resolved++
		}
		if k.Error != nil {
			faults++
		}
		if k.PatchSource == nil {
			none++
		}
		if k.Number > 0 { // SWE-bench accepts one prediction per instance
			continue
		}
		p := swebench.Prediction{InstanceID: k.InstanceID, Model: c.model, Patch: k.Patch}
		if line, err = json.Marshal(p); err != nil {
			return err
		}
		predictions, first = append(predictions, string(line)), append(first, p)
		if k.Report != nil {
			reports[k.InstanceID] = *k.Report
		}
	}
	total := float64(len(all))
	summary := map[string]any{
		"model": c.model, "data": c.data, "total": len(all), "resolved": resolved, "resolve_rate": round(float64(resolved)/total, 4), "errors": faults, "no_patch": none,
		"avg_steps": round(steps/total, 1), "avg_elapsed_s": round(elapsed/total, 1), "timestamp": time.Now().Format("2006-01-02T15:04:05.000000"), "args": c.args,
	}
	summary["pass_at_k"], summary["pass_at_k_interval"] = passes(counts, c.n)
	mean, low, high := interval(shares(counts))
	summary["mean"] = map[string]float64{"value": round(mean, 4), "low": round(low, 4), "high": round(high, 4), "instances": float64(len(counts))}
	text, err := json.MarshalIndent(summary, "", "  ")
	if err != nil {
		return err
	}
	var report, official bytes.Buffer
	if err := swebench.WriteReports(&report, reports); err != nil {
		return err
	}
	if err := swebench.Summarize(instances, first, reports, nil).Write(&official); err != nil {
		return err
	}
	for name, b := range map[string][]byte{"results.jsonl": []byte(strings.Join(lines, "\n")), "summary.json": text,
		"predictions.jsonl": []byte(strings.Join(predictions, "\n") + "\n"), "report.json": report.Bytes(), "report_summary.json": official.Bytes()} {
		if err := atomic.WriteFile(filepath.Join(c.out, name), b, true); err != nil {
			return err
		}
	}
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "resolved %d of %d attempts; mean %.4f, 95%% interval [%.4f, %.4f]\n", resolved, len(all), mean, low, high)
	return w.Flush()
}

func round(x float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.RoundToEven(x*p) / p
}

// passes returns pass@k and its interval for k from 1 to n: the mean over instances of
// the probability that at least one of k attempts, drawn from those made, is resolved. An
// instance with fewer than k counted attempts is not in pass@k.
func passes(counts map[string][2]int, n int) (map[string]float64, map[string][2]float64) {
	values, intervals := map[string]float64{}, map[string][2]float64{}
	for k := 1; k <= n; k++ {
		var all []float64
		for _, id := range slices.Sorted(maps.Keys(counts)) {
			made, good := counts[id][0], counts[id][1]
			if made < k {
				continue
			}
			fail := 1.0
			for i := range k {
				fail *= max(0, float64(made-good-i)) / float64(made-i)
			}
			all = append(all, 1-fail)
		}
		if len(all) > 0 {
			mean, low, high := interval(all)
			values[strconv.Itoa(k)], intervals[strconv.Itoa(k)] = round(mean, 4), [2]float64{round(low, 4), round(high, 4)}
		}
	}
	return values, intervals
}

// shares returns the share of resolved attempts of each instance.
func shares(counts map[string][2]int) (all []float64) {
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, float64(counts[id][1])/float64(counts[id][0]))
	}
	return all
}

// interval returns the mean of numbers from 0 to 1, one per instance, and its 95 % Wilson
// interval. Each instance counts once, because its attempts are not independent.
func interval(all []float64) (mean, low, high float64) {
	n := float64(len(all))
	if n == 0 {
		return 0, 0, 1
	}
	for _, x := range all {
		mean += x / n
	}
	const z = 1.959963984540054
	middle := (mean + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(max(0, mean*(1-mean)/n)+z*z/(4*n*n))
	return mean, max(0, middle-half), min(1, middle+half)
}
