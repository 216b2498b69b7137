package play

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// Result is the result of a round.
type Result struct {
	// Rollouts holds the rollouts of both roles, injectors first. Each has a group and a reward, or
	// the reason for having no reward.
	Rollouts []*rollout.Rollout
	Bugs     []Bug // accepted bugs, in the order of their numbers
	Metrics  Metrics
	// Sessions lists the ids of the rollouts' sessions in Options.Recorder: deliver them after the
	// rollouts are stored safely.
	Sessions []string
}

// Metrics holds the statistics of a round.
type Metrics struct {
	Proposals  int            `json:"proposals"`
	Accepted   int            `json:"accepted"`
	Duplicates int            `json:"duplicates"` // accepted, but known from this round or the store
	Replayed   int            `json:"replayed"`   // stored bugs that were tried again without a proposal
	Lost       int            `json:"lost"`       // proposals without a verdict, because of the infrastructure
	Malformed  int            `json:"malformed"`
	FailedAt   map[string]int `json:"failed_at"` // proposals by the check that failed
	ByOrder    map[int]int    `json:"bugs_by_order"`
	Attempts   int            `json:"attempts"`
	Solved     int            `json:"solved"`
	AttemptsUp int            `json:"attempts_lost"`
	// Tokens sampled by the policy, and seconds of its rollouts including their checks, by role.
	Tokens  map[string]int     `json:"tokens"`
	Seconds map[string]float64 `json:"seconds"`
	// TokensPerBug and SecondsPerBug are the injectors' cost per accepted bug; 0 without an accepted
	// bug.
	TokensPerBug  float64 `json:"tokens_per_accepted_bug"`
	SecondsPerBug float64 `json:"seconds_per_accepted_bug"`
	// Gibberish is the share of rollouts whose text looks broken: the paper names this as the failure
	// mode of the training.
	Gibberish float64  `json:"gibberish_rate"`
	Flaky     []string `json:"flaky_tests"`
}

// settle sets all rewards, ends the sessions and returns the result of the round.
func (p *round) settle(ctx context.Context, proposals []*proposal, bugs []*roundBug) (*Result, error) {
	out := &Result{}
	var everybody []*finishedRollout
	for _, x := range proposals {
		everybody = append(everybody, p.addCost("inject", x.finishedRollout))
		if !x.withoutReward() && (x.artifact == nil || !x.verdict.Valid()) {
			value := ssr.InvalidReward
			x.r.Outcome.Reward = &value
			x.r.Outcome.Reason = strings.ToValidUTF8(x.verdict.Reason, "\uFFFD") // it may be the name of a file
		}
	}
	for _, b := range bugs {
		if err := p.reward(b); err != nil {
			return nil, err
		}
		for _, x := range b.attempts {
			everybody = append(everybody, p.addCost("solve", x))
		}
		if p.Store != nil {
			p.Store.put(b.Bug)
		}
		out.Bugs = append(out.Bugs, b.Bug)
	}
	broken := 0
	for _, x := range everybody {
		if gibberish(x.r) {
			broken++
		}
	}
	for _, x := range everybody {
		r := x.r
		out.Rollouts = append(out.Rollouts, r)
		if x.session == nil {
			continue
		}
		if _, err := x.session.End(ctx, live.Ending{Outcome: r.Outcome, Status: r.Status, ExitStatus: r.ExitStatus, Failure: r.Failure, Metadata: r.Metadata}); err != nil {
			return nil, err
		}
		out.Sessions = append(out.Sessions, x.session.ID())
	}
	m := &p.metrics
	if m.Accepted > 0 {
		m.TokensPerBug = float64(m.Tokens["inject"]) / float64(m.Accepted)
		m.SecondsPerBug = math.Round(1000*m.Seconds["inject"]/float64(m.Accepted)) / 1000
	}
	m.Gibberish = float64(broken) / float64(max(1, len(everybody)))
	m.Flaky = p.repo.flaky()
	out.Metrics = *m
	return out, nil
}

// reward sets the rewards of the attempts at a bug and of its proposers.
func (p *round) reward(b *roundBug) error {
	var ends []ssr.Attempt
	for _, x := range b.attempts {
		ends = append(ends, x.end)
	}
	result, err := ssr.Resolve(ends, p.MinLive, *p.Alpha)
	if err != nil {
		return err
	}
	b.Solved, b.Live = result.Solved, result.Live
	for i, x := range b.attempts {
		p.metrics.Attempts++
		if x.r.Outcome.Reward = result.Solve[i]; result.Solve[i] == nil {
			p.metrics.AttemptsUp++
			continue
		}
		solved := x.end == ssr.Solved
		if x.r.Outcome.Resolved = &solved; solved {
			p.metrics.Solved++
		}
	}
	for _, x := range b.proposers {
		if result.Inject == nil {
			x.r.Status, x.r.Failure = rollout.StatusFailed, &rollout.Failure{Reason: "infra_error", Detail: fmt.Sprintf("%d of the bug's attempts ended on their own: its difficulty is not known", b.Live)}
			continue
		}
		x.r.Outcome.Reward = new(*result.Inject)
	}
	return nil
}

func (p *round) addCost(role string, x *finishedRollout) *finishedRollout {
	p.metrics.Tokens[role] += x.tokens
	p.metrics.Seconds[role] += x.seconds
	return x
}
