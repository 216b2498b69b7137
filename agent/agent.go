package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// Model answers requests: an inference engine (Engine), or a script. It is called by many
// goroutines.
type Model interface {
	// Reply returns the reply; Message is needed. An error is of the infrastructure.
	Reply(ctx context.Context, r Request) (live.Reply, error)
}

// Request is one call of a Model. It must not be kept or changed.
type Request struct {
	Session  string // the attempt's id: its calls go to one engine
	Step     int    // 0-based
	Messages []rollout.Message
	Tools    []rollout.Tool
	Record   *live.Session // of the attempt so far, nil = nobody records it
}

// Options of an Agent. Model is needed.
type Options struct {
	Model   Model
	Config  Config // zero fields are those of the package's own templates
	Harness string // of Harnesses, "" = the text loop
	// Window says what the model sees, nil = everything. Counter counts for it, for one
	// attempt at a time, as Encoder.Counter of package tokenize does.
	Window  ctxwindow.Policy
	Counter func(*rollout.Rollout) ctxwindow.Counter
	// Judge, when set, is asked about each step as it happens. Its scores are those that
	// it gives the whole rollout. Judged rollouts record the instance's
	// problem statement (metadata problem_statement), which is the issue that it is shown.
	Judge *prm.Scorer
	// Sampling is recorded with each call, for a Model that samples so.
	Sampling *rollout.Sampling
	Timeout  time.Duration // of an attempt; 0 = 30 min
	// Blocklist answers commands that it names in place of the sandbox. It is advice to
	// the model, not security.
	Blocklist sandbox.Blocklist
	// NoPatch takes no patch, for work that is something else: the caller looks at the
	// sandbox and gives the outcome.
	NoPatch bool
}

// Validate reports all faults at once.
func (o Options) Validate() error {
	var errs []error
	fault := func(field, format string, args ...any) {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options." + field}, format, args...))
	}
	if o.Model == nil {
		fault("Model", "there is none")
	}
	if o.Window != nil {
		errs = append(errs, o.Window.Validate())
		if o.Counter == nil {
			fault("Counter", "a window needs one")
		}
	}
	if _, ok := harnesses[o.Harness]; !ok && o.Harness != "" {
		fault("Harness", "found %q, expected one of %s", o.Harness, strings.Join(Harnesses(), ", "))
	}
	if o.Timeout < 0 || o.Config.StepLimit < 0 || o.Config.Timeout < 0 {
		fault("Timeout", "a bound is negative, expected 0 for the default or more")
	}
	return errors.Join(errs...)
}

// Agent runs attempts. It is safe for concurrent use.
type Agent struct {
	o Options
	t templates
	h harness
}

// New checks the options and compiles the templates.
func New(o Options) (*Agent, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	a := &Agent{o: o, h: blocks{}}
	if o.Harness != "" {
		a.h = harnesses[o.Harness]
	}
	a.o.Config = o.Config.with(defaultConfig())
	a.o.Timeout = cmp.Or(o.Timeout, 30*time.Minute)
	if o.Window == nil {
		a.o.Window, a.o.Counter = ctxwindow.None{}, func(*rollout.Rollout) ctxwindow.Counter {
			return ctxwindow.CounterFunc(func(context.Context, []rollout.Message) (int, error) { return 0, nil })
		}
	}
	var err error
	a.t, err = a.o.Config.compile()
	return a, err
}

// Task is one attempt to make.
type Task struct {
	ID       string // of the rollout
	Group    string
	Index    int // in its group
	Instance swebench.Instance
	Sandbox  sandbox.Sandbox
	Metadata map[string]json.RawMessage // of the rollout
	Session  *live.Session              // records calls as they are made; nil = nobody does
}

// Attempt is what came of a Task.
type Attempt struct {
	Rollout     *rollout.Rollout
	Patch       *string // nil = none was made
	PatchSource string  // submission or git_diff_fallback, "" = there is no patch
	Error       string  // of the infrastructure, "" = none
	Commands    []Command
	Evaluation  *Evaluation      // nil = there was none
	Report      *swebench.Report // of the evaluation, as the harness of SWE-bench has it
}

// Command is what a step ran, as traj.json has it.
type Command struct {
	Step       int     `json:"step_idx"`
	Action     string  `json:"action"`
	ReturnCode int     `json:"returncode"`
	OutputLen  int     `json:"output_len"`
	OutputHead string  `json:"output_head"`
	OutputTail string  `json:"output_tail"`
	Start      float64 `json:"start_ts"`
	End        float64 `json:"end_ts"`
	OK         bool    `json:"ok"`
}

// The ends of an attempt, as swe-rl names them. A failed one has none.
const (
	submitted = "submitted"
	maxSteps  = "max_steps"
	timedOut  = "timeout"
)

// SubmitMark is what a command that hands in the work prints first.
const SubmitMark = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

// run is an attempt under way.
type run struct {
	*Agent
	task   Task
	out    *Attempt
	r      *rollout.Rollout
	window *ctxwindow.Session
	judge  *prm.Live
	ids    rollout.PromptIndex
	tools  []rollout.Tool
}

// Run makes an attempt. What the infrastructure did wrong is in the attempt: an error is
// of the task, or the end of ctx.
func (a *Agent) Run(ctx context.Context, t Task) (*Attempt, error) {
	switch {
	case a.h == nil:
		return nil, zero.Value("agent.Agent", "agent.New")
	case t.Sandbox == nil:
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: t.ID, Field: "Task.Sandbox"}, "there is none")
	}
	x := &run{Agent: a, task: t, tools: a.h.tools(), r: &rollout.Rollout{ID: t.ID, Group: t.Group, Index: t.Index, Instance: t.Instance.InstanceID, Metadata: t.Metadata, Turns: []rollout.Turn{}}}
	x.out, x.r.Tools = &Attempt{Rollout: x.r}, x.tools
	var err error
	if x.window, err = ctxwindow.NewSession(a.o.Window, a.o.Counter(x.r)); err != nil {
		return nil, err
	}
	if a.o.Judge != nil {
		if issue, has := t.Instance.ProblemStatement, x.r.Metadata["problem_statement"]; issue != "" && has == nil {
			text, err := json.Marshal(issue)
			if err != nil {
				return nil, err
			}
			m := maps.Clone(x.r.Metadata)
			if m == nil {
				m = map[string]json.RawMessage{}
			}
			m["problem_statement"], x.r.Metadata = text, m
		}
		x.judge = a.o.Judge.Live(ctx)
		defer x.judge.Close()
	}
	opening, err := a.t.opening(ctx, a.h, t.Instance.ProblemStatement)
	if err != nil {
		return nil, err
	}
	x.say(opening...)

	if e, ok := a.o.Model.(Engine); ok && t.Session != nil {
		defer e.forget(ctx, t.Session)
	}
	limit, cancel := context.WithTimeout(ctx, a.o.Timeout)
	defer cancel()
	err = x.steps(limit)
	if err == nil && x.out.Patch == nil && !a.o.NoPatch {
		err = x.fallback(limit)
	}
	if e := ctx.Err(); e != nil {
		return nil, e
	}
	var infra *broken
	switch {
	case limit.Err() != nil:
		x.r.Status, x.r.ExitStatus = rollout.StatusAborted, timedOut
		x.r.Outcome.Verdict, x.r.Outcome.Reason = rollout.VerdictAgentTimeout, fmt.Sprintf("the attempt took longer than %v", a.o.Timeout)
		x.out.Patch, x.out.PatchSource, x.out.Error = nil, "", "rollout timed out after "+a.o.Timeout.String()
	case errors.As(err, &infra):
		x.out.Fail(infra.reason, infra.Error())
	case err != nil:
		return nil, err
	case x.out.Patch == nil && !a.o.NoPatch:
		none := 0.0
		x.r.Outcome = rollout.Outcome{Verdict: rollout.VerdictNoPatch, Reason: "the run made no patch", Reward: &none}
	}
	if x.judge != nil && x.r.Status != rollout.StatusFailed && len(x.r.Turns) > 0 {
		if x.r.Steps, err = x.judge.Scores(x.r); err != nil {
			return nil, err
		}
	}
	return x.out, x.r.Check()
}

// broken is what the infrastructure did wrong.
type broken struct {
	reason, what string
	err          error
}

func (b *broken) Error() string { return b.what + ": " + b.err.Error() }
func (b *broken) Unwrap() error { return b.err }

// Fail records that the infrastructure failed, in the words that swe-rl stores:
// "SWE allocate failed: …". The attempt has no outcome then.
func (a *Attempt) Fail(reason, detail string) {
	detail = strings.ToValidUTF8(detail, "\uFFFD")
	a.Error = detail
	if a.Rollout == nil {
		a.Rollout = &rollout.Rollout{}
	}
	a.Rollout.Status = rollout.StatusFailed
	a.Rollout.Failure = &rollout.Failure{Reason: reason, Detail: detail}
	a.Rollout.Outcome = rollout.Outcome{Verdict: rollout.VerdictInfraError, Reason: detail, Submission: a.Patch}
}

// say adds messages to the conversation.
func (x *run) say(messages ...rollout.Message) {
	x.r.Messages = append(x.r.Messages, messages...)
	x.window.Append(messages...)
}

// steps asks and acts until the work is handed in or the turns are over.
func (x *run) steps(ctx context.Context) error {
	most := x.o.Config.StepLimit
	for step := range most {
		reply, err := x.ask(ctx, step)
		if err != nil {
			return err
		}
		actions, fault := x.h.read(reply, &x.o.Config)
		if len(actions) == 0 && fault == "" { // a harness whose model ends by saying so
			x.end(submitted)
			return nil
		}
		if fault != "" && len(actions) == 0 {
			text, err := x.t.formatError(ctx, &x.o.Config, fault)
			if err != nil {
				return err
			}
			x.say(rollout.Message{Role: rollout.RoleUser, Content: text})
			continue
		}
		var done bool
		for i, act := range actions {
			out, err := x.act(ctx, step, act)
			if err != nil {
				return err
			}
			if done = act.submits(); done {
				x.submitted(act, out)
				break
			}
			text, err := x.t.observe(ctx, out)
			if err != nil {
				return err
			}
			if i == len(actions)-1 {
				text += reminder(most - step - 1)
			}
			x.say(x.h.observation(act, text))
		}
		if x.judge != nil {
			so := *x.r
			if err := x.judge.Submit(&so); err != nil {
				return err
			}
		}
		if done {
			return nil
		}
	}
	x.end(maxSteps)
	return nil
}

// end is the end without a patch of the policy's own: git tells what was changed.
func (x *run) end(status string) {
	x.r.ExitStatus = status
	if x.r.Status = rollout.StatusTruncated; status == submitted {
		x.r.Status = rollout.StatusCompleted
	}
}

func reminder(left int) string {
	switch {
	case left == 1:
		return "\nREMINDER: You only have 1 turn left. Please provide the final answer"
	case left > 1:
		return fmt.Sprintf("\nREMINDER: You have %d turns left to arrive at the solution.", left)
	}
	return ""
}

// ask makes one call of the model and records it.
func (x *run) ask(ctx context.Context, step int) (*rollout.Message, error) {
	shown, err := x.window.Fit(ctx)
	if err != nil {
		return nil, err
	}
	var call *live.Call
	if x.task.Session != nil {
		call, err = x.task.Session.Begin(ctx, live.Request{Messages: shown.Messages, Tools: x.tools, Sampling: x.o.Sampling, Dialect: "agent"})
		if err != nil {
			return nil, err
		}
	}
	reply, err := x.o.Model.Reply(ctx, Request{Session: x.task.ID, Step: step, Messages: shown.Messages, Tools: x.tools, Record: x.task.Session})
	if err == nil && reply.Message == nil {
		err = errors.New("the model gave a reply without a message")
	}
	if err != nil {
		if call != nil {
			_ = call.Abort(context.WithoutCancel(ctx), "no reply came") // the model's error is the one to tell
		}
		x.r.ExitStatus = maxSteps // as swe-rl stores it
		return nil, &broken{"llm_failed", fmt.Sprintf("LLM call failed at step %d", step), err}
	}
	if call != nil {
		if err := call.End(ctx, reply); err != nil {
			return nil, err
		}
	}
	m := *reply.Message
	m.Role, m.Sampled = rollout.RoleAssistant, rollout.SampledByPolicy
	turn := rollout.Turn{ID: reply.ID, Message: len(x.r.Messages), Step: step, Context: shown.Context, FinishReason: reply.FinishReason,
		StopString: reply.StopString, Version: reply.Version, Sampling: x.o.Sampling, Incomplete: reply.Incomplete}
	for i := range x.r.Turns {
		if x.r.Turns[i].ID == turn.ID {
			turn.ID = "" // a server that gives one id twice gives none
		}
	}
	if len(reply.Output) > 0 {
		turn.Output, turn.Logprobs, turn.Prompt = reply.Output, reply.Logprobs, x.ids.Add(reply.Prompt, reply.Output)
		sampled(&turn, &reply)
	}
	x.r.Turns = append(x.r.Turns, turn)
	x.say(m)
	return &m, nil
}

// sampled checks what the engine told of its tokens: what does not agree is not trained.
func sampled(t *rollout.Turn, r *live.Reply) {
	because := func(why string) { t.Incomplete = cmp.Or(t.Incomplete, why) }
	if len(r.Prompt) == 0 {
		because("the ids of the prompt are not recorded")
	}
	if n := r.Usage.CompletionTokens; n != 0 && n != len(r.Output) {
		because(fmt.Sprintf("usage counts %d completion tokens, %d ids are recorded", n, len(r.Output)))
	}
	if n := r.Usage.PromptTokens; n != 0 && len(r.Prompt) > 0 && n != len(r.Prompt) {
		because(fmt.Sprintf("usage counts %d prompt tokens, %d ids are recorded", n, len(r.Prompt)))
	}
	if t.Logprobs != nil && len(t.Logprobs) != len(t.Output) {
		because(fmt.Sprintf("%d log probabilities for %d ids", len(t.Logprobs), len(t.Output)))
		t.Logprobs = nil
	}
	for i, lp := range t.Logprobs {
		if lp > 0 && lp < 1e-3 { // by rounding
			t.Logprobs[i] = 0
		} else if !(lp <= 0 && lp >= -math.MaxFloat32) {
			because(fmt.Sprintf("log probability %d is %g, no finite number of at most 0", i, lp))
			t.Logprobs = nil
			break
		}
	}
}

// act does what an action says, and records it.
func (x *run) act(ctx context.Context, step int, act action) (done, error) {
	start := time.Now()
	out, err := x.h.do(ctx, x, act)
	if err != nil {
		var e *rollout.Error
		if errors.As(err, &e) && e.Kind == rollout.KindInput { // a command that no shell takes
			out = done{code: -1, output: e.Error()}
		} else {
			return done{}, &broken{"infra_error", "SWE exec failed", err}
		}
	}
	out.output = strings.ToValidUTF8(out.output, "\uFFFD")
	runes := []rune(out.output)
	const most = 2000
	c := Command{Step: step, Action: act.text, ReturnCode: out.code, OutputLen: len(runes), OutputHead: out.output, OutputTail: out.output,
		Start: seconds(start), End: seconds(time.Now()), OK: out.code != -1}
	if len(runes) > most {
		c.OutputHead, c.OutputTail = string(runes[:most]), string(runes[len(runes)-most:])
	}
	x.out.Commands = append(x.out.Commands, c)
	if t := &x.r.Turns[len(x.r.Turns)-1]; t.Extra == nil {
		b, err := json.Marshal(c)
		if err != nil {
			return done{}, err
		}
		t.Extra = map[string]json.RawMessage{"step_debug": b}
	}
	return out, nil
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// command runs a text in the sandbox.
func (x *run) command(ctx context.Context, text string) (done, error) {
	c := &x.o.Config
	if b, ok := x.o.Blocklist.Check(text); !ok {
		return done{code: 1, output: b.Text()}, nil
	}
	r, err := x.task.Sandbox.Exec(ctx, sandbox.Command{Text: text, Dir: c.Dir, Timeout: c.Timeout, Env: c.Env})
	if err != nil {
		return done{}, err
	}
	out := done{code: r.ExitCode, output: r.Output()}
	if r.End != sandbox.EndExited {
		out.output += fmt.Sprintf("\n[the command was ended: %s]", r.End)
	}
	return out, nil
}

// submitted takes the patch that a submission printed.
func (x *run) submitted(act action, out done) {
	x.end(submitted)
	if act.kind != finish && !x.o.NoPatch {
		text := strings.TrimLeft(out.output, "\n")
		text = strings.TrimLeft(strings.TrimPrefix(text, SubmitMark), "\n")
		x.take(text, "submission")
	}
}

// take takes a text that is a patch.
func (x *run) take(text, source string) {
	if !strings.Contains(text, "diff --git ") {
		return
	}
	if p, err := patch.Parse(text); err != nil || p == nil {
		return
	}
	x.out.Patch, x.out.PatchSource, x.r.Outcome.Submission = &text, source, &text
}

// fallback asks git for what was changed.
func (x *run) fallback(ctx context.Context) error {
	text, err := x.task.Sandbox.Diff(ctx, x.o.Config.Dir)
	var e *rollout.Error
	if errors.As(err, &e) && e.Kind == rollout.KindLimit {
		return nil // more than any patch: it is none
	}
	if err != nil {
		x.r.ExitStatus = ""
		return &broken{"diff_failed", "diff failed", err}
	}
	x.take(strings.ToValidUTF8(text, "\uFFFD"), "git_diff_fallback")
	return nil
}
