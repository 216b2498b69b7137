package play

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnpack/turnpack/agent"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// Options of a round. Agent.Model and Settings are required.
type Options struct {
	// Agent runs both roles: model, harness, window and limits. The round sets the Instance template
	// and the folder in its Config. Ask its model for the ids of Result.Rollouts.
	Agent agent.Options
	// Recorder writes each call to disk while rollouts run; nil = no recording. Sessions end with the
	// rewards of their rollouts.
	Recorder *live.Recorder
	Settings ssr.Settings
	// Tests is the command that runs the repository's tests, stated in the injectors' task; "" =
	// injectors find it themselves.
	Tests      string
	Strategies []Strategy // nil = all three
	Proposals  int        // number of injectors per strategy; 0 = 4
	Attempts   int        // number of solvers per bug; 0 = 8
	MinLive    int        // least number of attempts that must end on their own; 0 = 1
	Alpha      *float64   // nil = ssr.DefaultAlpha
	Number     int        // number of the round, part of ids
	Workers    int        // number of concurrent rollouts; 0 = 8
	Store      *Store     // bugs of earlier rounds, to which this round adds its own; nil = none
	// Replay is the number of stored bugs given to solvers again, in addition to those proposed again:
	// bugs with the fewest attempts first, the hardest first among equals.
	Replay int
	// Count returns the number of tokens in a reply whose ids the engine does not return; nil = 0.
	Count func(text string) int
}

// validate reports every fault.
func (o Options) validate() error {
	var f faults.List
	f.Join(o.Settings.Validate(), o.Agent.Validate())
	for _, s := range o.Strategies {
		if strategyTexts[s] == "" {
			f.Add("Strategies", "expected removal, history or direct, found %q", s)
		}
	}
	f.Count("Proposals", o.Proposals)
	f.Count("Attempts", o.Attempts)
	f.Count("MinLive", o.MinLive)
	f.Count("Workers", o.Workers)
	f.Count("Replay", o.Replay)
	if o.Alpha != nil && !(*o.Alpha >= 0 && *o.Alpha <= 1) {
		f.Add("Alpha", "expected 0 to 1, found %v", *o.Alpha)
	}
	return f.Err()
}

func (o Options) withDefaults() Options {
	o.Proposals = cmp.Or(o.Proposals, 4)
	o.Attempts = cmp.Or(o.Attempts, 8)
	o.Workers = cmp.Or(o.Workers, 8)
	if o.Strategies == nil {
		o.Strategies = []Strategy{removal, history, direct}
	}
	if o.Alpha == nil {
		alpha := ssr.DefaultAlpha
		o.Alpha = &alpha
	}
	return o
}

// proposal is the result of one injector.
type proposal struct {
	*finishedRollout
	strategy Strategy
	artifact *ssr.Artifact
	verdict  ssr.Verdict
}

// finishedRollout is a finished rollout with its cost.
type finishedRollout struct {
	r       *rollout.Rollout
	session *live.Session
	tokens  int
	seconds float64
	end     ssr.Attempt // how a solver's attempt ended
	patch   string
}

// withoutReward reports whether the rollout has no reward, because the infrastructure or a timeout ended it.
func (x *finishedRollout) withoutReward() bool {
	return x.r.Failure != nil || x.r.Status == rollout.StatusAborted
}

// roundBug is a bug of this round.
type roundBug struct {
	Bug
	key       string      // group key of its solvers
	proposers []*proposal // several if they proposed the same bug
	attempts  []*finishedRollout
}

type round struct {
	Options
	repo         *Repository
	agent        *agent.Agent
	metrics      Metrics
	numberedBugs int // number of bugs given to solvers so far
}

// Round plays one round. It fails on an error of the options or of ctx, and if no sandbox of the
// repository can be created. Rollouts ended by the infrastructure are counted in the metrics.
func Round(ctx context.Context, repo *Repository, o Options) (*Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if repo == nil || repo.suites == nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "the repository was not opened").WithFix("make it with Open")
	}
	p := &round{Options: o.withDefaults(), repo: repo, metrics: Metrics{FailedAt: map[string]int{}, ByOrder: map[int]int{}, Tokens: map[string]int{}, Seconds: map[string]float64{}}}
	how := o.Agent
	how.NoPatch, how.Config.Dir, how.Config.Instance = true, repo.Dir, "{{ task }}"
	if how.Config.System == "" {
		how.Config.System = systemPrompt(how.Harness)
	}
	var err error
	if p.agent, err = agent.New(how); err != nil {
		return nil, err
	}
	proposals, err := p.propose(ctx)
	if err != nil {
		return nil, err
	}
	bugs, err := p.replay(p.accept(proposals))
	if err != nil {
		return nil, err
	}
	if err := p.solve(ctx, bugs); err != nil {
		return nil, err
	}
	harder, err := p.harder(ctx, bugs)
	if err != nil {
		return nil, err
	}
	if err := p.solve(ctx, harder); err != nil {
		return nil, err
	}
	return p.settle(ctx, proposals, append(bugs, harder...))
}

// propose runs all injectors and judges their artifacts.
func (p *round) propose(ctx context.Context) ([]*proposal, error) {
	var out []*proposal
	for _, s := range p.Strategies {
		for range p.Proposals {
			out = append(out, &proposal{strategy: s})
		}
	}
	err := p.each(ctx, len(out), func(ctx context.Context, i int) error {
		s := out[i].strategy
		id := fmt.Sprintf("r%d/inject/%s/%d", p.Number, s, i%p.Proposals)
		var err error
		out[i].finishedRollout, err = p.rollout(ctx, id, reward.ProposerKey, i, map[string]any{"role": "inject", "strategy": s}, func(a *player) (err error) {
			if out[i].artifact, err = a.inject(ctx, s, p.Tests); err != nil || out[i].artifact == nil {
				return err
			}
			out[i].verdict, err = ssr.Judge(ctx, p.repo.newEnv(*out[i].artifact), *out[i].artifact, p.repo.Files, p.Settings)
			return err
		})
		return err
	})
	return out, err
}

// rollout runs one player. A rollout ended by the infrastructure is returned as failed, without an
// error.
func (p *round) rollout(ctx context.Context, id, group string, index int, meta map[string]any, work func(*player) error) (*finishedRollout, error) {
	began := time.Now()
	a, err := p.begin(ctx, id, group, index, meta)
	if a.task.Sandbox != nil {
		defer closeSandbox(ctx, a.task.Sandbox)
	}
	if err == nil {
		err = work(a)
	} else if !errors.Is(err, rollout.KindSandbox) {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && !errors.Is(err, errReasonRecorded) {
		a.markLost(err)
	}
	return &finishedRollout{r: a.r, session: a.task.Session, tokens: a.sampledTokens(), seconds: time.Since(began).Seconds()}, nil
}

// each calls work for 0 … n−1, with up to Workers concurrent calls.
func (p *round) each(ctx context.Context, n int, work func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(p.Workers)
	for i := range n {
		g.Go(func() error { return work(ctx, i) })
	}
	return g.Wait()
}

// accept counts the verdicts and returns the valid bugs without duplicates.
func (p *round) accept(proposals []*proposal) []*roundBug {
	var bugs []*roundBug
	seen := map[string]*roundBug{}
	m := &p.metrics
	for _, x := range proposals {
		m.Proposals++
		switch {
		case x.withoutReward():
			m.Lost++
		case x.artifact == nil || x.verdict.Malformed != nil:
			m.Malformed++
		case !x.verdict.Valid():
			failed := x.verdict.Checks[x.verdict.FirstFailing-1]
			m.FailedAt[fmt.Sprintf("%d %s", failed.Number, failed.Name)]++
		default:
			m.Accepted++
			b, _ := p.number(*x.artifact, x.verdict, x.strategy, "") // Judge has parsed the patches
			if first := seen[b.Fingerprint]; first != nil {
				m.Duplicates++
				first.proposers = append(first.proposers, x)
				continue
			}
			b.proposers = append(b.proposers, x)
			seen[b.Fingerprint] = b
			bugs = append(bugs, b)
			if p.Store.has(b.Bug) { // solved again, since its difficulty for the current policy counts
				m.Duplicates++
			}
		}
	}
	return bugs
}

func (p *round) number(a ssr.Artifact, v ssr.Verdict, s Strategy, parent string) (*roundBug, error) {
	b := &roundBug{Bug: Bug{Repository: p.repo.Name, Commit: p.repo.commit, Parent: parent, Order: a.Order(), Strategy: s, Round: p.Number, Broken: v.Broken, Artifact: a}}
	var err error
	b.Fingerprint, _ = a.Fingerprint() // SolveKey returns the same error
	b.key, err = ssr.SolveKey(ssr.InjectKey(p.repo.Name, p.repo.commit, string(s), p.Number), a)
	return b, err
}

// replay appends bugs of the store that were not proposed in this round.
func (p *round) replay(bugs []*roundBug) ([]*roundBug, error) {
	there := map[string]bool{}
	for _, b := range bugs {
		there[b.Fingerprint] = true
	}
	stored := slices.DeleteFunc(p.Store.Bugs(), func(b Bug) bool {
		return b.Repository != p.repo.Name || b.Commit != p.repo.commit || there[b.Fingerprint]
	})
	slices.SortStableFunc(stored, func(a, b Bug) int {
		return cmp.Or(cmp.Compare(a.Live, b.Live), cmp.Compare(b.Difficulty(), a.Difficulty()))
	})
	for _, old := range stored[:min(p.Replay, len(stored))] {
		b, err := p.number(old.Artifact, ssr.Verdict{Broken: old.Broken}, old.Strategy, old.Parent)
		if err != nil {
			return nil, err
		}
		bugs = append(bugs, b)
		p.metrics.Replayed++
	}
	return bugs, nil
}

// solve runs the solvers of all bugs.
func (p *round) solve(ctx context.Context, bugs []*roundBug) error {
	type job struct {
		bug       *roundBug
		number, i int
	}
	var jobs []job
	first := p.numberedBugs + 1
	p.numberedBugs += len(bugs)
	for n, b := range bugs {
		b.attempts = make([]*finishedRollout, p.Attempts)
		p.metrics.ByOrder[b.Order]++
		for i := range p.Attempts {
			jobs = append(jobs, job{b, first + n, i})
		}
	}
	return p.each(ctx, len(jobs), func(ctx context.Context, k int) error {
		b, i := jobs[k].bug, jobs[k].i
		id := fmt.Sprintf("r%d/solve/%d/%d", p.Number, jobs[k].number, i)
		meta := map[string]any{"role": "solve", "bug": b.Fingerprint, "order": b.Order}
		end, fix := ssr.InfraError, ""
		x, err := p.rollout(ctx, id, b.key, i, meta, func(a *player) (err error) {
			if fix, err = a.solve(ctx, b.Artifact); err != nil {
				return err
			}
			if end = ssr.Unsolved; fix == "" {
				return nil
			}
			e := p.repo.newEnv(b.Artifact)
			output, err := e.Run(ctx, ssr.State{Kind: ssr.Original})
			if err != nil {
				return err
			}
			original, _ := ssr.ParseResults(output)
			end, _, err = ssr.Grade(ctx, e, fix, original)
			return err
		})
		if err != nil {
			return err
		}
		if x.withoutReward() {
			end = ssr.InfraError
		}
		x.end, x.patch = end, fix
		b.attempts[i] = x
		return nil
	})
}

// harder returns bugs of order two: for each bug, the first failed repair that makes a valid one.
func (p *round) harder(ctx context.Context, bugs []*roundBug) ([]*roundBug, error) {
	found := make([]*roundBug, len(bugs))
	err := p.each(ctx, len(bugs), func(ctx context.Context, i int) error {
		b := bugs[i]
		for _, x := range b.attempts {
			if x.end != ssr.Unsolved || x.patch == "" {
				continue
			}
			a, err := b.Artifact.Harder(x.patch)
			if err != nil {
				continue // the bug has the highest order, or the patch changes tests only
			}
			v, err := ssr.Judge(ctx, p.repo.newEnv(a), a, p.repo.Files, p.Settings)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil || !v.Valid() {
				continue
			}
			found[i], err = p.number(a, v, b.Strategy, b.Fingerprint)
			return err
		}
		return nil
	})
	seen := map[string]bool{}
	for _, b := range bugs { // may include replayed bugs of order two
		seen[b.Fingerprint] = true
	}
	return slices.DeleteFunc(found, func(b *roundBug) bool {
		again := b == nil || seen[b.Fingerprint]
		if !again {
			seen[b.Fingerprint] = true
		}
		return again
	}), err
}
