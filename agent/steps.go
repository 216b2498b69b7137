package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/reward/patch"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/sandbox"
)

// run is an attempt in progress.
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

// broken is an infrastructure failure.
type broken struct {
	reason, what string
	err          error
}

func (b *broken) Error() string { return b.what + ": " + b.err.Error() }

func (b *broken) Unwrap() error { return b.err }

// appendMessages appends messages to the conversation.
func (x *run) appendMessages(messages ...rollout.Message) {
	x.r.Messages = append(x.r.Messages, messages...)
	x.window.Append(messages...)
}

// steps calls the model and performs its actions until the work is submitted or the turns are used up.
func (x *run) steps(ctx context.Context) error {
	most := x.o.Config.StepLimit
	for step := range most {
		reply, err := x.ask(ctx, step)
		if err != nil {
			return err
		}
		actions, fault := x.h.read(reply, &x.o.Config)
		if len(actions) == 0 && fault == "" { // a reply without actions ends the work in this harness
			x.setEnd(submitted)
			return nil
		}
		if fault != "" && len(actions) == 0 {
			text, err := x.t.formatError(ctx, &x.o.Config, fault)
			if err != nil {
				return err
			}
			x.appendMessages(rollout.Message{Role: rollout.RoleUser, Content: text})
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
			x.appendMessages(x.h.observation(act, text))
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
	x.setEnd(maxSteps)
	return nil
}

// setEnd ends the attempt without a patch from the policy: git diff supplies the changes.
func (x *run) setEnd(status string) {
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
	call, err := x.task.Session.Begin(ctx, live.Request{Messages: shown.Messages, Tools: x.tools, Sampling: x.o.Sampling, Dialect: "agent"})
	if err != nil {
		return nil, err
	}
	reply, err := x.o.Model.Reply(ctx, Request{Session: x.task.ID, Step: step, Messages: shown.Messages, Tools: x.tools, Record: x.task.Session, Call: call})
	if err == nil && reply.Message == nil {
		err = errors.New("the model gave a reply without a message")
	}
	if err != nil {
		_, _ = call.Prompt(reply.Prompt), call.Append(reply.Output, reply.Logprobs, reply.Version)
		_ = call.Abort(context.WithoutCancel(ctx), "no reply came") // the model's error is the one to return
		x.r.ExitStatus = maxSteps                                   // as swe-rl stores it
		return nil, &broken{"llm_failed", fmt.Sprintf("LLM call failed at step %d", step), err}
	}
	if err := call.End(ctx, reply); err != nil {
		return nil, err
	}
	m := *reply.Message
	m.Role, m.Sampled = rollout.RoleAssistant, rollout.SampledByPolicy
	turn := rollout.Turn{ID: reply.ID, Message: len(x.r.Messages), Step: step, Context: shown.Context, FinishReason: reply.FinishReason,
		StopString: reply.StopString, Version: reply.Version, Sampling: x.o.Sampling, Incomplete: reply.Incomplete}
	for i := range x.r.Turns {
		if x.r.Turns[i].ID == turn.ID {
			turn.ID = "" // ignore ids that a server repeats
		}
	}
	if err := x.sampled(&turn, call.ID()); err != nil {
		return nil, err
	}
	x.r.Turns = append(x.r.Turns, turn)
	x.appendMessages(m)
	return &m, nil
}

// sampled copies the recorded ids of a call to a turn.
func (x *run) sampled(t *rollout.Turn, call string) error {
	r, err := x.task.Session.Turn(call)
	if err != nil || r == nil || len(r.Output) == 0 {
		return err
	}
	t.Prompt, t.Output, t.Logprobs, t.Version, t.Versions, t.Incomplete = x.ids.Add(r.Prompt.Add, r.Output), r.Output, r.Logprobs, r.Version, r.Versions, r.Incomplete
	return nil
}

// act performs an action and records it.
func (x *run) act(ctx context.Context, step int, act action) (actionResult, error) {
	start := time.Now()
	out, err := x.h.do(ctx, x, act)
	if err != nil {
		var e *rollout.Error
		if errors.As(err, &e) && e.Kind == rollout.KindInput { // a command that no shell accepts
			out = actionResult{code: -1, output: e.Error()}
		} else {
			return actionResult{}, &broken{"infra_error", "SWE exec failed", err}
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
			return actionResult{}, err
		}
		t.Extra = map[string]json.RawMessage{"step_debug": b}
	}
	return out, nil
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// command runs a text in the sandbox.
func (x *run) command(ctx context.Context, text string) (actionResult, error) {
	c := &x.o.Config
	if answer, ok := x.o.Blocklist.Check(text); !ok {
		return actionResult{code: 1, output: answer}, nil
	}
	r, err := x.task.Sandbox.Exec(ctx, sandbox.Command{Text: text, Dir: c.Dir, Timeout: c.Timeout, Env: c.Env})
	if err != nil {
		return actionResult{}, err
	}
	out := actionResult{code: r.ExitCode, output: r.Output()}
	if r.End != sandbox.EndExited {
		out.output += fmt.Sprintf("\n[the command was ended: %s]", r.End)
	}
	return out, nil
}

// submitted takes the patch that a submission printed.
func (x *run) submitted(act action, out actionResult) {
	x.setEnd(submitted)
	// Bytes that are not UTF-8 are lost in what a command prints; those of git diff are not.
	if act.kind != finish && !x.o.NoPatch && !strings.ContainsRune(out.output, utf8.RuneError) {
		text := strings.TrimLeft(out.output, "\n")
		text = strings.TrimLeft(strings.TrimPrefix(text, SubmitMark), "\n")
		x.takePatch(text, "submission")
	}
}

// takePatch keeps a text as the patch if it is one.
func (x *run) takePatch(text, source string) {
	if !strings.Contains(text, "diff --git ") {
		return
	}
	if p, err := patch.Parse(text); err != nil || p == nil {
		return
	}
	x.out.Patch, x.out.PatchSource, x.r.Outcome.Submission = &text, source, &text
}

// fallback takes the changes from git diff.
func (x *run) fallback(ctx context.Context) error {
	text, err := x.task.Sandbox.Diff(ctx, x.o.Config.Dir)
	var e *rollout.Error
	if errors.As(err, &e) && (e.Kind == rollout.KindLimit || e.Kind == rollout.KindInput) {
		return nil // the changes are too large for a patch, or the commands left nothing that git can compare
	}
	if err != nil {
		x.r.ExitStatus = ""
		return &broken{"diff_failed", "diff failed", err}
	}
	x.takePatch(strings.ToValidUTF8(text, "\uFFFD"), "git_diff_fallback")
	return nil
}
