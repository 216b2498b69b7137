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

// Source yields rollouts in a stable order. Each call starts from the
// beginning; a yielded error is about one record, and iteration may go on. What
// is yielded is read by several goroutines from then on: it must not be changed
// or used for the next rollout.
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

// Sink takes the rows: groups contiguous, rollouts contiguous inside them. Rows
// come from one goroutine and are the sink's to keep, columns read-only: rows of
// one rollout may share them. *export.Writer is one. Rows whose columns are held as runs,
// which are those of single turns and of millions of tokens, go to its method WriteRuns,
// where a sink has that.
type Sink interface {
	Write(rollout.Sample) error
}

// Estimator turns the rewards of a batch into advantages. The result has the
// shape of groups. A rollout with Excluded set has no reward; it takes no part, and
// its Advantage should be a dropped one. Advantages must be finite.
//
// One whose method CountsRows() bool returns true is given the rows and the lengths
// of rollouts too. One that is a reward.MessageEstimator decides on the advantage of
// each sampled message that the Detector found fault with.
type Estimator interface {
	Advantages(groups []reward.GroupRewards) ([][]reward.Advantage, error)
}

// Aborter is a Sink that can drop what it was given. *export.Writer is one.
type Aborter interface {
	// Abort leaves nothing that looks whole. A Close after it publishes nothing.
	Abort() error
}

// Pipeline turns rollouts into rows. The zero value of every field but Model is
// the right default.
type Pipeline struct {
	// Model renders and encodes text. nil will do for rollouts all of whose turns have
	// the engine's token ids; others are then errors of their own, by OnError.
	Model  *tokenize.Model
	Encode tokenize.Options
	// Window plans what the model saw at each turn, for dumps that do not record
	// it; nil keeps the contexts as recorded.
	Window ctxwindow.Policy
	Mask   lossmask.Policy
	Scale  reward.OutcomePolicy
	// Reward scores a rollout in place of reward.Score; nil = that, by Scale. It is
	// called once for each rollout of a run, from one goroutine, in their order, and not
	// again in a run that goes on (Keeper). It
	// says in Excluded why a rollout has no reward. Rollouts that failed or were
	// aborted are not asked about, unless Scale.InfraUnresolved is set, of which else
	// nothing is used.
	Reward func(*rollout.Rollout) rollout.Reward
	// Estimator turns rewards into advantages: a reward.Estimator that
	// Estimator.Statistics of package reward takes, or one of your own; nil = reward.GRPO(). One that
	// counts rows or tokens has the run make the rows once before, to count them: all
	// that makes them is done twice, the summaries of a Window too.
	Estimator Estimator
	// Tokens, when set, gives each trained token an advantage of its own, in place of
	// Estimator. It looks at all rows of the batch, so the run makes them once before, to
	// count them. An advantage of a row as a whole is then the mean over its trained
	// tokens.
	Tokens *reward.TokenEstimator
	// Detector finds the messages that the estimator's Override is for. It is not
	// asked where nothing is overridden.
	Detector detect.Detector
	// Shaping changes rewards, masks rows and leaves groups out before advantages are
	// made; the zero value does nothing. One that looks at lengths has the run make the
	// rows once before, as an Estimator may.
	Shaping shaping.Rules
	// TrainLogprobs gives the log probability of each token of a row, which has loss
	// weights, under the policy that trains: Shaping.OffPolicy compares them with those
	// recorded. nil takes what turns record (Turn.TrainLogprobs); of others the comparison
	// is left to the trainer. Several goroutines call it.
	TrainLogprobs func(*rollout.Sequence) ([]float32, error)
	// NoAdvantages writes rows without rewards or advantages (supervised use):
	// rollouts without an outcome are kept.
	NoAdvantages bool
	// GroupBy overrides the group key; nil takes Rollout.Group, else the task
	// instance, else the rollout alone.
	GroupBy func(*rollout.Rollout) string
	// OnError says whether the first bad record ends the run, with its error, or bad
	// records are left out and listed in the report.
	OnError rollout.OnError
	// Workers encodes in parallel; 0 = one per processor. The rows do not depend
	// on it.
	Workers int
	// UnknownStatus stands for rollouts that do not record how they ended: they are
	// scored, masked and written as such. The zero value leaves it open, and the
	// sink says whether it takes them. One that records a failure is failed.
	UnknownStatus rollout.Status
	// Temperature stands for turns and rollouts that do not record theirs; 0 = 1. A
	// row holds one: tokens of a sequence that were sampled at several make a row for
	// each, in which the others are context.
	Temperature float32
	// PolicyVersion stands for turns that do not record theirs; nil leaves the
	// column versions out where one does not.
	PolicyVersion *int32
	// Trace adds to the metadata of each row the roles of the messages that its
	// sources name, for sinks that write them (export.Options.Trace).
	Trace bool
	// TempDir is where rows wait when groups come interleaved and more than 4 MiB
	// of them are not yet due; "" = the system's folder.
	TempDir string
	// Progress, when set, is called from one goroutine after each rollout of each
	// pass.
	Progress func(Progress)

	// For tests, 0 = the constants.
	heldLimit, againLimit int64
}

// With is p as a recipe has it: what its rows, rewards and advantages depend on is that
// of the recipe, all else is p's.
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

// Progress tells how far a run is.
type Progress struct {
	// Pass 1 reads rewards, pass 2 encodes and writes; an estimator that counts rows
	// or tokens has both before, to count.
	Pass int
	Done int // records seen in this pass
	// Total is the number of records, known in pass 2, else 0.
	Total  int
	Rows   int
	Tokens int64
}

// Validate reports all faults of p.
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
		fix(e.Center == "baseline", "Estimator", "the centre baseline is a number for each rollout, which no record holds", "use reward.Advantages")
	}
	if p.Window != nil {
		errs = append(errs, p.Window.Validate())
		fix(p.Encode.Mode == tokenize.Whole, "Window", "whole rows hold the conversation, no context of a turn", "leave it out, or choose tokenize.Merged or PerStep")
	}
	return errors.Join(errs...)
}

// withoutModel is what p asks for that recorded ids alone do not tell, "" if nothing.
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

// record is the estimator, if it is one of package reward.
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

// overrides is the estimator, if faults of messages change what it gives.
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

// countsRows says whether the estimator looks at the rows of rollouts.
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

// ended is r with the status that stands for one that is not recorded: a
// recorded failure tells it.
func (p *Pipeline) ended(r *rollout.Rollout) *rollout.Rollout {
	status := p.UnknownStatus
	if r.Failure != nil {
		status = rollout.StatusFailed
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

// Run reads src twice, or once where the rollouts take less than about 64 MiB of
// memory; two times more where the estimator counts rows or tokens. It writes its rows to dst, which it does not close. A run that writes no row
// because rollouts cannot be encoded is an error. On an error the report holds what
// was done so far, and a dst that is an Aborter is aborted, so that a deferred Close
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
