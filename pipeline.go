package turnpack

import (
	"context"
	"errors"
	"iter"
	"math"
	"runtime"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/detect"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Source yields rollouts in a stable order. Each call starts from the beginning. A yielded error
// concerns one record, and iteration may go on after it. Several goroutines read a rollout once it
// is yielded, so the source must neither change nor reuse it.
type Source interface {
	Rollouts(ctx context.Context) iter.Seq2[*rollout.Rollout, error]
}

// Slice is a Source over rollouts in memory.
type Slice []*rollout.Rollout

// Rollouts yields the elements in order.
func (s Slice) Rollouts(context.Context) iter.Seq2[*rollout.Rollout, error] {
	return func(yield func(*rollout.Rollout, error) bool) {
		for _, r := range s {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Sink takes the rows: groups contiguous, rollouts contiguous inside a group. Write is called from
// one goroutine. The sink may keep a row but must not change its columns, which rows of one rollout
// may share. *export.Writer is a Sink. If the sink has a method WriteRuns, rows whose columns are
// held as runs, such as very long ones, go there.
type Sink interface {
	Write(rollout.Sample) error
}

// Estimator turns the rewards of a batch into advantages. The result has the shape of groups. A
// rollout with Excluded set has no reward: it takes no part, and its Advantage should have Dropped
// set. Advantages must be finite.
//
// An estimator whose method CountsRows() bool returns true is also given the number of rows and the
// lengths of rollouts. A reward.MessageEstimator decides on the advantage of each sampled message
// in which the Detector found a fault.
type Estimator interface {
	Advantages(groups []reward.GroupRewards) ([][]reward.Advantage, error)
}

// Aborter is a Sink that can discard what it was given. *export.Writer is an Aborter.
type Aborter interface {
	// Abort leaves no output that looks complete. A Close after it publishes nothing.
	Abort() error
}

// Pipeline turns rollouts into rows. The zero value of every field but Model is
// the right default.
type Pipeline struct {
	// Model renders and encodes text. It may be nil if all turns of all rollouts record the
	// engine's token ids; rollouts with other turns are then errors, handled as OnError says.
	Model  *tokenize.Model
	Encode tokenize.Options
	// Window plans what the model saw at each turn, for dumps that do not record it; nil keeps the
	// recorded contexts.
	Window ctxwindow.Policy
	Mask   lossmask.Policy
	Scale  reward.OutcomePolicy
	// Reward scores a rollout in place of reward.Score; nil = reward.Score with Scale. Reward is
	// called once per rollout and run, from one goroutine, in the order of the source, and not
	// again in a run that resumes (Keeper). It sets Excluded if a rollout has no reward. Rollouts
	// that failed or were aborted are excluded without a call, unless Scale.InfraUnresolved is set;
	// Scale has no other effect on such a reward.
	Reward func(*rollout.Rollout) rollout.Reward
	// Estimator turns rewards into advantages: a reward.Estimator that its
	// Statistics takes, or your own; nil = reward.GRPO(). With an estimator that counts rows or tokens the run makes
	// all rows once beforehand, so everything that makes them, including the summaries of a Window,
	// is done twice.
	Estimator Estimator
	// Tokens, when set, gives each trained token its own advantage, in place of Estimator. It
	// depends on all rows of the batch, so the run makes them once beforehand. The advantage of a
	// row is then the mean over its trained tokens.
	Tokens *reward.TokenEstimator
	// Detector finds the messages that the estimator's Override applies to. It is not called if
	// nothing is overridden.
	Detector detect.Detector
	// Shaping changes rewards, masks rows and leaves groups out before advantages are computed; the
	// zero value does nothing. With rules that depend on lengths the run makes the rows once
	// beforehand, as for Estimator.
	Shaping shaping.Rules
	// TrainLogprobs returns the log probability of each token of a row, whose loss weights are set,
	// under the policy being trained; Shaping.OffPolicy compares them with the recorded ones. nil
	// takes what turns record (Turn.TrainLogprobs); rows of turns without it are left for the
	// trainer to compare. Several goroutines call TrainLogprobs.
	TrainLogprobs func(*rollout.Sequence) ([]float32, error)
	// NoAdvantages writes rows without rewards or advantages (supervised use) and keeps rollouts
	// without an outcome.
	NoAdvantages bool
	// GroupBy overrides the group key; nil takes Rollout.Group, else the task instance, else the
	// rollout's own id.
	GroupBy func(*rollout.Rollout) string
	// OnError says whether the first bad record ends the run with its error, or bad records are
	// left out and listed in the report.
	OnError rollout.OnError
	// Workers is the number of goroutines that encode; 0 = one per processor. The rows do not
	// depend on it.
	Workers int
	// UnknownStatus is assumed for rollouts that do not record how they ended: they are
	// scored, masked and written with it. The zero value keeps the status unknown, and the sink
	// decides whether it accepts that. A rollout with a recorded failure counts as failed, one
	// whose last reply was cut by a limit as truncated.
	UnknownStatus rollout.Status
	// Temperature is assumed for turns and rollouts that record none; 0 = 1. A row has
	// one temperature: a sequence with tokens sampled at several becomes a row for each, in which
	// tokens of other temperatures are context.
	Temperature float32
	// PolicyVersion is assumed for turns that record none; with nil, the column versions
	// is left out if a turn records none.
	PolicyVersion *int32
	// Trace adds to the metadata of each row the roles of the messages its tokens come from, for
	// sinks that write them (export.Options.Trace).
	Trace bool
	// TempDir holds rows that cannot be written yet because groups are interleaved, once they
	// exceed 4 MiB; "" = the system's folder.
	TempDir string
	// Progress, when set, is called from one goroutine after each rollout of each pass.
	Progress func(Progress)

	// Limits for tests; 0 = the package's constants.
	heldLimit, againLimit int64
}

// With returns p with the settings of the recipe: everything that rows, rewards and advantages
// depend on comes from r, the rest from p.
func (p Pipeline) With(r recipe.Recipe) (Pipeline, error) {
	if err := r.Validate(); err != nil {
		return p, err
	}
	window, err := ctxwindow.Parse(r.Window)
	if p.Window = window; window == (ctxwindow.None{}) {
		p.Window = nil
	}
	p.Encode.Mode, p.Mask.MaxTokens = r.Mode, r.MaxTokens
	p.Scale, p.Estimator, p.Tokens, p.Detector, p.Shaping = r.Scale, r.Estimator, r.Tokens, r.Detector, r.Shaping
	if r.Tokens != nil {
		p.Estimator = nil
	}
	return p, err
}

// Progress says how far a run is.
type Progress struct {
	// Pass is 1 while rewards are read, 2 while rows are encoded and written. An estimator that
	// counts rows or tokens runs both passes once beforehand, to count.
	Pass int
	Done int // records seen in this pass
	// Total is the number of usable rollouts; 0 in pass 1.
	Total  int
	Rows   int
	Tokens int64
}

// Validate returns all faults of p, joined.
func (p Pipeline) Validate() error {
	var errs []error
	bad := func(when bool, field, format string, args ...any) {
		if when {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Pipeline." + field}, format, args...))
		}
	}
	fix := func(when bool, field, what, fix string) {
		if when {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Pipeline." + field}, "%s", what).WithFix("%s", fix))
		}
	}
	if p.Model == nil {
		what := p.withoutModel()
		fix(what != "", "Model", what+", and no model is given", "use tokenize.Load (convert --model)")
	}
	bad(p.Workers < 0, "Workers", "found %d, expected 0 or more", p.Workers)
	bad(!(p.Temperature >= 0 && p.Temperature <= math.MaxFloat32), "Temperature", "found %g, expected a finite number of 0 or more", p.Temperature)
	if p.PolicyVersion != nil {
		bad(*p.PolicyVersion < 0, "PolicyVersion", "found %d, expected 0 or more", *p.PolicyVersion)
	}
	bad(p.UnknownStatus > rollout.StatusFailed, "UnknownStatus", "found %v, expected a status", p.UnknownStatus)
	errs = append(errs, p.Encode.Validate(), p.Mask.Validate(), p.Scale.Validate(), p.Detector.Validate(), p.Shaping.Validate())
	if p.Tokens != nil {
		fix(p.Estimator != nil, "Tokens", "set beside Pipeline.Estimator, and there is one advantage for a token", "set one of them")
		errs = append(errs, new(reward.TokenTable).Finish(*p.Tokens, nil, nil))
	}
	stepwise, spends := p.stepwise(), p.Shaping.Spending != nil
	fix(p.Shaping.DropZero && (p.Tokens != nil || stepwise), "Shaping.DropZero", "it looks at the advantage of a rollout, and the estimator gives each step or token its own", "leave it out")
	fix(spends && (p.Scale.Outcome == "" || p.Scale.Outcome == "signed") && p.Shaping.Affine == (shaping.Affine{}), "Shaping.Spending",
		"it takes shares of a group's mean reward, and rewards of −1 (scale signed) make that a bonus where it is below 0", "choose the scale binary")
	fix(spends && stepwise, "Shaping.Spending", "it changes the reward of a rollout, and the estimator compares steps", "leave it out")
	if e, ok := p.record(); ok {
		if stepwise {
			errs = append(errs, e.Validate())
			bad(e.Override != (reward.Override{}), "Estimator", "an override is for messages, and the estimator gives each step an advantage of its own")
		} else {
			_, err := e.Statistics(nil)
			errs = append(errs, err)
		}
	}
	if p.Window != nil {
		errs = append(errs, p.Window.Validate())
		fix(p.Encode.Mode == tokenize.Whole, "Window", "whole rows hold the conversation, no context of a turn", "leave it out, or choose tokenize.Merged or PerStep")
	}
	return errors.Join(errs...)
}

// withoutModel returns what p asks for that needs a model because recorded ids do not suffice, ""
// if nothing.
func (p *Pipeline) withoutModel() string {
	switch {
	case p.Window != nil:
		return "a window renders and counts contexts"
	case p.Mask.NoReasoning || p.Mask.NoToolCalls:
		return "the mask leaves out parts of replies, which recorded ids alone do not tell apart"
	case p.Mask.TrainSeparator:
		return "the mask looks for stop tokens, which recorded ids alone do not tell"
	}
	return ""
}

func (p *Pipeline) workers() int {
	if p.Workers > 0 {
		return p.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// record returns the estimator if it is a reward.Estimator, the default included.
func (p *Pipeline) record() (reward.Estimator, bool) {
	switch e := p.Estimator.(type) {
	case nil:
		return reward.GRPO(), true
	case reward.Estimator:
		return e, true
	case *reward.Estimator:
		if e == nil {
			return reward.GRPO(), true
		}
		return *e, true
	}
	return reward.Estimator{}, false
}

// overrides returns the estimator if it changes the advantage of messages at fault, else nil.
func (p *Pipeline) overrides() reward.MessageEstimator {
	if p.NoAdvantages {
		return nil
	}
	if e, ok := p.record(); ok {
		if e.Override == (reward.Override{}) {
			return nil
		}
		return e
	}
	e, _ := p.Estimator.(reward.MessageEstimator)
	return e
}

// countsRows reports whether the estimator uses the number or length of rows.
func (p *Pipeline) countsRows() bool {
	if p.Tokens != nil {
		return true
	}
	if e, ok := p.record(); ok {
		return e.CountsRows()
	}
	e, ok := p.Estimator.(interface{ CountsRows() bool })
	return ok && e.CountsRows()
}

// withStatus returns r with the status that replaces an unknown one: failed if a failure is recorded,
// truncated if a limit cut the last reply, else UnknownStatus.
func (p *Pipeline) withStatus(r *rollout.Rollout) *rollout.Rollout {
	status := p.UnknownStatus
	switch n := len(r.Turns); {
	case r.Failure != nil:
		status = rollout.StatusFailed
	case n > 0 && rollout.LimitReached(r.Turns[n-1].FinishReason):
		status = rollout.StatusTruncated
	}
	if r.Status != rollout.StatusUnknown || status == rollout.StatusUnknown {
		return r
	}
	c := *r
	c.Status = status
	return &c
}

func (p *Pipeline) group(r *rollout.Rollout) string {
	switch {
	case p.GroupBy != nil:
		return p.GroupBy(r)
	case r.Group != "":
		return r.Group
	case r.Instance != "":
		return r.Instance
	}
	return r.ID
}

// Run reads src twice, or once if the rollouts fit in about 64 MiB of memory; an estimator that
// counts rows or tokens adds two readings. It writes the rows to dst, which it does not close. A
// run that writes no row because rollouts cannot be encoded is an error. On an error the report
// holds what was done so far, and a dst that is an Aborter is aborted, so that a deferred Close
// publishes nothing.
func (p Pipeline) Run(ctx context.Context, src Source, dst Sink) (Report, error) {
	report, err := p.run(ctx, src, dst)
	if err == nil {
		return report, nil
	}
	if a, ok := dst.(Aborter); ok {
		if failed := a.Abort(); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return report, err
}

func (p Pipeline) run(ctx context.Context, src Source, dst Sink) (report Report, _ error) {
	if err := p.Validate(); err != nil {
		return report, err
	}
	if src == nil || dst == nil {
		return report, rollout.Errorf(rollout.KindInput, rollout.Where{}, "a run needs a source and a sink")
	}
	enc, err := tokenize.NewEncoder(p.Model, p.Encode)
	if err != nil {
		return report, err
	}
	p = p.masking()
	run := &run{Pipeline: &p, enc: enc, report: &report, shaper: shaper{rules: shaped.Rules(p.Shaping), mask: p.Mask, train: p.TrainLogprobs}}
	defer run.describer.into(&report)
	run.keeper, _ = dst.(Keeper)
	if err := run.score(ctx, src); err != nil {
		return report, err
	}
	return report, run.write(ctx, src, dst)
}
