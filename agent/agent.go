package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// Model answers requests: an inference engine (Engine), or a script. It must be safe for concurrent use.
type Model interface {
	// Reply returns the reply; Message is required. An error counts as an infrastructure failure.
	Reply(ctx context.Context, r Request) (live.Reply, error)
}

// Request is one call of a Model, which must not keep or change it.
type Request struct {
	Session  string // the attempt's id: its calls go to one engine
	Step     int    // 0-based
	Messages []rollout.Message
	Tools    []rollout.Tool
	Record   *live.Session // of the attempt so far
	Call     *live.Call    // of this request; ids reported to it are not repeated in the reply
}

// Options configures an Agent. Model is required.
type Options struct {
	Model   Model
	Config  Config // zero fields take the package's own templates
	Harness string // one of Harnesses, "" = the text loop
	// Window decides what the model sees, nil = everything. Counter makes its token counter for one attempt at
	// a time, as Encoder.Counter of package tokenize does.
	Window  ctxwindow.Policy
	Counter func(*rollout.Rollout) ctxwindow.Counter
	// Judge, if set, scores each step as it happens, with the same scores as for the whole rollout. Judged
	// rollouts record the instance's problem statement (metadata problem_statement), the issue that the judge
	// sees.
	Judge *prm.Scorer
	// Sampling is recorded with each call, for a Model that samples with it.
	Sampling *rollout.Sampling
	Timeout  time.Duration // of an attempt; 0 = 30 min
	// Blocklist answers the commands that it names in place of the sandbox. It is advice to the model, not
	// security.
	Blocklist sandbox.Blocklist
	// NoPatch takes no patch, for other kinds of work: the caller inspects the sandbox and sets the outcome.
	NoPatch bool
}

// Validate reports all invalid fields at once.
func (o Options) Validate() error {
	l := faults.List{Of: "Options."}
	if o.Model == nil {
		l.Add("Model", "there is none")
	}
	if o.Window != nil {
		l.Join(o.Window.Validate())
		if o.Counter == nil {
			l.Add("Counter", "a window needs one")
		}
	}
	faults.Word(&l, "Harness", o.Harness, Harnesses()...)
	l.Count("Timeout", int(o.Timeout))
	l.Count("Config.StepLimit", o.Config.StepLimit)
	l.Count("Config.Timeout", int(o.Config.Timeout))
	return l.Err()
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
	a := &Agent{o: o, h: textHarness{}}
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

// Task describes one attempt.
type Task struct {
	ID       string // of the rollout
	Group    string
	Index    int // in the group
	Instance swebench.Instance
	Sandbox  sandbox.Sandbox
	Metadata map[string]json.RawMessage // of the rollout
	Session  *live.Session              // records calls as they are made; nil = a session in memory
}

// Attempt is the result of a Task.
type Attempt struct {
	Rollout     *rollout.Rollout
	Patch       *string // nil = no patch
	PatchSource string  // submission or git_diff_fallback, "" = no patch
	Error       string  // of the infrastructure, "" = none
	Commands    []Command
	Evaluation  *Evaluation      // nil = not evaluated
	Report      *swebench.Report // of the evaluation, in the format of SWE-bench's harness
}

// Command is a command that a step ran, in the format of traj.json.
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

// Exit statuses of an attempt, named as in swe-rl. A failed attempt has none.
const (
	submitted = "submitted"
	maxSteps  = "max_steps"
	timedOut  = "timeout"
)

// SubmitMark is the first line printed by a command that submits the work.
const SubmitMark = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

// Run makes an attempt. Infrastructure failures are recorded in the attempt: an error is a fault of the task,
// or means that ctx ended.
func (a *Agent) Run(ctx context.Context, t Task) (*Attempt, error) {
	switch {
	case a.h == nil:
		return nil, zero.Value("agent.Agent", "agent.New")
	case t.Sandbox == nil:
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: t.ID, Field: "Task.Sandbox"}, "there is none")
	}
	if t.Session == nil {
		recorder, err := live.New(live.Options{})
		if err != nil {
			return nil, err
		}
		if t.Session, err = recorder.Begin(ctx, live.Start{}); err != nil {
			return nil, err
		}
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
			m := map[string]json.RawMessage{}
			maps.Copy(m, x.r.Metadata)
			m["problem_statement"], x.r.Metadata = text, m
		}
		x.judge = a.o.Judge.Live(ctx)
		defer x.judge.Close()
	}
	opening, err := a.t.opening(ctx, a.h, t.Instance.ProblemStatement)
	if err != nil {
		return nil, err
	}
	x.appendMessages(opening...)

	if e, ok := a.o.Model.(Engine); ok {
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
	return x.out, x.r.Validate()
}

// Fail records an infrastructure failure in the wording of swe-rl: "SWE allocate failed: …". The attempt then
// has no outcome.
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
