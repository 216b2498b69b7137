// Package loop makes attempts at tasks with a policy, for training (Rollout) and for
// evaluation (Eval).
package loop

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnpack/turnpack/agent"
	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
)

// settings are the flags that both commands have, some under different names.
type settings struct {
	data, pool, api, key, kind, config, harness, source, registry, blocklist, model, out string
	concurrent, instances, steps, n, most                                                int
	timeout, command, evaluation                                                         time.Duration
	temperature                                                                          float64
	exitCode                                                                             bool
	names                                                                                flagNames
}

// flagNames are a command's names for shared flags.
type flagNames struct{ out, n, most string }

func (s *settings) flags(fs *flag.FlagSet, w flagNames, n, concurrent int, temperature float64) {
	s.names = w
	fs.StringVar(&s.out, w.out, "", "`folder` for the results; a run continues one that holds attempts")
	fs.IntVar(&s.n, w.n, n, "attempts at a task")
	fs.IntVar(&s.most, w.most, 4096, "tokens of a reply")
	fs.StringVar(&s.blocklist, "blocklist", "", "commands that are answered with advice in place of being run: default, or a JSON `file` of regular expressions by class; no security")
	fs.StringVar(&s.data, "data", "", "JSONL `file` of tasks: {\"text\", \"metadata\": {\"instance\", \"data_source\"}}, or instances")
	fs.StringVar(&s.pool, "pool", "", "base `URL` of the pool (default: SWE_ENV_SERVER_URL, or SWE_ENV_SERVER_HOST and _PORT)")
	fs.StringVar(&s.api, "api-base", os.Getenv("OPENAI_BASE_URL"), "base `URL` of the engine, with or without /v1; several with commas")
	fs.StringVar(&s.key, "api-key", os.Getenv("OPENAI_API_KEY"), "`key` of the engine")
	fs.StringVar(&s.kind, "engine", "vllm", "kind of engine: vllm, sglang; others of OpenAI's shape as vllm")
	fs.StringVar(&s.config, "config", os.Getenv("SWE_CONFIG_PATH"), "`file` of templates and bounds, a swebench.yaml")
	fs.StringVar(&s.harness, "harness", "", "tool calls by the schemas of "+strings.Join(agent.Harnesses(), ", ")+" (default: text with bash blocks)")
	fs.StringVar(&s.source, "data-source", "", "`name` of the data set where a task names none, for image names")
	fs.StringVar(&s.registry, "registry", "", "registry and owner of images in place of the data set's")
	fs.IntVar(&s.concurrent, "max-concurrent", concurrent, "attempts that run at a time")
	fs.IntVar(&s.instances, "max-instances", 0, "most instances; 0 = all")
	fs.IntVar(&s.steps, "step-limit", 20, "replies of an attempt")
	fs.DurationVar(&s.timeout, "timeout", 0, "`time` of an attempt (default: SWE_ROLLOUT_TIMEOUT seconds, or 30m)")
	fs.DurationVar(&s.command, "command-timeout", 0, "`time` of a command (default: the configuration's, or 3m)")
	fs.DurationVar(&s.evaluation, "eval-timeout", time.Hour, "`time` of an evaluation")
	fs.Float64Var(&s.temperature, "temperature", temperature, "sampling temperature")
	fs.BoolVar(&s.exitCode, "exit-code", false, "grade by the exit code of the script alone, also where an instance names its tests")
}

func (s *settings) check(fs *flag.FlagSet) error {
	var errs []error
	need := func(name, value string) {
		if value == "" {
			errs = append(errs, fmt.Errorf("--%s is needed", name))
		}
	}
	need("model", s.model)
	need(s.names.out, s.out)
	need("data", s.data)
	need("api-base", s.api)
	if fs.NArg() > 0 {
		errs = append(errs, fmt.Errorf("%s takes flags only, found %q", fs.Name(), fs.Arg(0)))
	}
	if s.n < 1 || s.most < 1 || s.concurrent < 1 || s.instances < 0 || s.steps < 1 || s.timeout < 0 || s.command < 0 || s.evaluation <= 0 || !(s.temperature >= 0) {
		errs = append(errs, fmt.Errorf("--%s, --%s, --max-concurrent, --step-limit and --eval-timeout must be above 0, other bounds not below", s.names.n, s.names.most))
	}
	if text := os.Getenv("SWE_ROLLOUT_TIMEOUT"); s.timeout == 0 && text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n <= 0 {
			errs = append(errs, fmt.Errorf("SWE_ROLLOUT_TIMEOUT: expected seconds above 0, found %q", text))
		}
		s.timeout = time.Duration(n * float64(time.Second))
	}
	return errors.Join(errs...)
}

// task is a row of the data.
type task struct {
	group    int // index in the data
	prompt   string
	source   string
	metadata json.RawMessage
	instance swebench.Instance
}

// tasks reads the data file.
func (s *settings) tasks() ([]task, error) {
	text, err := os.ReadFile(s.data)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: s.data}, "%w", err)
	}
	var out []task
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 || s.instances > 0 && len(out) == s.instances {
			continue
		}
		t, err := s.task(line)
		if err != nil {
			return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{File: s.data, Line: n}, "%w", err)
		}
		t.group = len(out)
		out = append(out, t)
	}
	if len(out) == 0 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: s.data}, "there is no task")
	}
	return out, nil
}

func (s *settings) task(line []byte) (t task, err error) {
	var row struct {
		Text     string `json:"text"`
		Metadata *struct {
			Instance json.RawMessage `json:"instance"`
			Source   string          `json:"data_source"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return t, err
	}
	instance, source := json.RawMessage(line), s.source
	if m := row.Metadata; m != nil && m.Instance != nil {
		instance, source = m.Instance, cmp.Or(source, m.Source)
	}
	// A row without test lists is graded by its script.
	var all map[string]json.RawMessage
	if err := json.Unmarshal(instance, &all); err != nil {
		return t, err
	}
	for _, list := range []string{"FAIL_TO_PASS", "PASS_TO_PASS"} {
		found := false
		for k, v := range all {
			found = found || strings.EqualFold(k, list) && string(v) != "null"
		}
		if !found {
			all[list] = json.RawMessage("[]")
		}
	}
	b, err := json.Marshal(all)
	if err == nil {
		err = json.Unmarshal(b, &t.instance)
	}
	if t.instance.ProblemStatement == "" {
		t.instance.ProblemStatement = row.Text
	}
	t.prompt, t.source = cmp.Or(row.Text, t.instance.ProblemStatement), cmp.Or(source, "swe-gym")
	t.metadata, _ = json.Marshal(map[string]any{"instance": instance, "data_source": t.source})
	t.instance.Image = t.instance.ImageName(t.source, s.registry)
	return t, err
}

// sandboxes returns the sandbox pool.
func (s *settings) sandboxes() (sandbox.Provider, error) {
	o, err := swerl.Environ(os.Getenv)
	o.URL = cmp.Or(s.pool, o.URL)
	if err != nil {
		return nil, err
	}
	return swerl.NewClient(o)
}

// engines returns the inference engines.
func (s *settings) engines() (engine.Engine, error) {
	var servers []engine.Options
	for url := range strings.SplitSeq(s.api, ",") {
		servers = append(servers, engine.Options{URL: strings.TrimSpace(url), Kind: s.kind, Key: s.key})
	}
	return engine.NewPool(servers...)
}

// options returns the options of the agent.
func (s *settings) options(engines engine.Engine, model string) (agent.Options, error) {
	temperature := float32(s.temperature)
	o := agent.Options{Harness: s.harness, Timeout: s.timeout, Sampling: &rollout.Sampling{Temperature: &temperature}}
	if s.config != "" {
		f, err := os.Open(s.config)
		if err != nil {
			return o, rollout.Errorf(rollout.KindInput, rollout.Where{File: s.config}, "%w", err)
		}
		defer f.Close()
		if o.Config, err = agent.ReadConfig(f); err != nil {
			return o, err
		}
	}
	switch s.blocklist {
	case "":
	case "default":
		o.Blocklist = sandbox.DefaultBlocklist()
	default:
		text, err := os.ReadFile(s.blocklist)
		var classes map[string][]string
		if err == nil {
			err = json.Unmarshal(text, &classes)
		}
		if err == nil {
			o.Blocklist, err = sandbox.ParseBlocklist(classes)
		}
		if err != nil {
			return o, rollout.Errorf(rollout.KindInput, rollout.Where{File: s.blocklist}, "%w", err)
		}
	}
	o.Config.StepLimit, o.Config.Timeout = s.steps, cmp.Or(s.command, o.Config.Timeout)
	fields := map[string]json.RawMessage{}
	for k, v := range map[string]any{"model": model, "temperature": s.temperature, "max_tokens": s.most} {
		b, err := json.Marshal(v)
		if err != nil {
			return o, err
		}
		fields[k] = b
	}
	o.Model = agent.Engine{Engine: engines, Fields: fields}
	return o, nil
}

// attempt makes one attempt in one sandbox and grades it in another.
func (s *settings) attempt(ctx context.Context, a *agent.Agent, boxes sandbox.Provider, t agent.Task) (*agent.Attempt, error) {
	spec := sandbox.Spec{Image: t.Instance.Image, Instance: t.Instance.InstanceID}
	lost := func(out *agent.Attempt, err error) (*agent.Attempt, error) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out.Fail("allocate_failed", "SWE allocate failed: "+err.Error())
		return out, nil
	}
	box, err := boxes.Create(ctx, spec)
	if err != nil {
		return lost(&agent.Attempt{Rollout: &rollout.Rollout{ID: t.ID, Group: t.Group, Index: t.Index, Instance: t.Instance.InstanceID, Metadata: t.Metadata, Turns: []rollout.Turn{}}}, err)
	}
	t.Sandbox = box
	out, err := a.Run(ctx, t)
	closeSandbox(ctx, box)
	if err != nil || out.Patch == nil || out.Rollout.Failure != nil {
		return out, err
	}
	spec.Instance += "__eval"
	fresh, err := boxes.Create(ctx, spec)
	if err != nil {
		return lost(out, err)
	}
	defer closeSandbox(ctx, fresh)
	return out, out.Grade(ctx, fresh, t.Instance, agent.GradeOptions{ExitCode: s.exitCode, Timeout: s.evaluation})
}

// closeSandbox closes a sandbox, even if ctx has ended. If that fails, the sandbox ends with its
// lease.
func closeSandbox(ctx context.Context, box sandbox.Sandbox) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_ = box.Close(closing)
}

// endSession ends the session of an attempt and removes it from the recorder, since files
// hold it.
func endSession(ctx context.Context, to *live.Recorder, s *live.Session, r *rollout.Rollout) error {
	if _, err := s.End(ctx, live.Ending{Outcome: r.Outcome, Status: r.Status, ExitStatus: r.ExitStatus, Failure: r.Failure}); err != nil {
		return err
	}
	return to.Deliver(ctx, live.Batch{Key: s.ID(), Digest: s.ID(), Sessions: []string{s.ID()}})
}

// attempts makes n attempts at each task, each of them once.
type attempts struct {
	*settings
	tasks []task
	out   io.Writer
	mu    sync.Mutex // guards out and the kept results
	// model is the engine's name for the policy; "" = the first model it lists.
	model string
	// have reports whether an attempt exists; prepare completes the options of the agent.
	have    func(t task, k int) bool
	prepare func(*agent.Options) error
	// one makes an attempt with run, saves it, and returns a short description of the
	// result.
	one func(ctx context.Context, t task, k int, run func(agent.Task) (*agent.Attempt, error)) (said string, err error)
}

// make makes the attempts that do not exist yet.
func (a *attempts) make(ctx context.Context) error {
	total := len(a.tasks) * a.n
	var todo []int
	for i := range total {
		if !a.have(a.tasks[i/a.n], i%a.n) {
			todo = append(todo, i)
		}
	}
	fmt.Fprintf(a.out, "%d attempts at %d tasks, %d are there\n", total, len(a.tasks), total-len(todo))
	if len(todo) == 0 {
		return nil
	}
	boxes, err := a.sandboxes()
	if err != nil {
		return err
	}
	engines, err := a.engines()
	if err != nil {
		return err
	}
	defer engines.Close()
	if a.model == "" {
		a.model = servedModel(ctx, engines, a.settings.model)
	}
	o, err := a.options(engines, a.model)
	if err == nil && a.prepare != nil {
		err = a.prepare(&o)
	}
	if err != nil {
		return err
	}
	policy, err := agent.New(o)
	if err != nil {
		return err
	}
	done := 0
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.concurrent)
	for _, i := range todo {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			t, k := a.tasks[i/a.n], i%a.n
			said, err := a.one(ctx, t, k, func(task agent.Task) (*agent.Attempt, error) { return a.attempt(ctx, policy, boxes, task) })
			if err != nil {
				return fmt.Errorf("%s, attempt %d: %w", t.instance.InstanceID, k, err)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			done++
			fmt.Fprintf(a.out, "%d/%d %s\n", done, len(todo), said) // ignored: the reader may be gone
			return nil
		})
	}
	return g.Wait()
}

// servedModel returns the first model that the engines list, or other.
func servedModel(ctx context.Context, engines engine.Engine, other string) string {
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
