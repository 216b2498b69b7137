package play

import (
	"context"
	"fmt"
	"math"

	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// Result of a round.
type Result struct {
	// Rollouts are those of both roles, injectors first. Each has a group and a reward, or
	// the reason why it has none.
	Rollouts []*rollout.Rollout
	Bugs     []Bug // that were accepted, in order of their numbers
	Metrics  Metrics
	// Sessions are those of the rollouts in Options.Recorder: deliver them when the
	// rollouts are in safety.
	Sessions []string
}

// Metrics describe a round.
type Metrics struct {
	Proposals  int            `json:"proposals"`
	Accepted   int            `json:"accepted"`
	Duplicates int            `json:"duplicates"` // of those accepted, known from this round or the store
	Replayed   int            `json:"replayed"`   // bugs of the store that were tried again unasked
	Lost       int            `json:"lost"`       // proposals without a verdict, by infrastructure
	Malformed  int            `json:"malformed"`
	FailedAt   map[string]int `json:"failed_at"` // proposals by the check that failed
	ByOrder    map[int]int    `json:"bugs_by_order"`
	Attempts   int            `json:"attempts"`
	Solved     int            `json:"solved"`
	AttemptsUp int            `json:"attempts_lost"`
	// Tokens that the policy wrote, and seconds of its rollouts and their checks, by role.
	Tokens  map[string]int     `json:"tokens"`
	Seconds map[string]float64 `json:"seconds"`
	// TokensPerBug and SecondsPerBug are of injectors, for each accepted bug; 0 without one.
	TokensPerBug  float64 `json:"tokens_per_accepted_bug"`
	SecondsPerBug float64 `json:"seconds_per_accepted_bug"`
	// Gibberish is the share of rollouts whose text looks broken: the paper names it as
	// the way this training fails.
	Gibberish float64  `json:"gibberish_rate"`
	Flaky     []string `json:"flaky_tests"`
}

// settle rewards everybody and sums up.
func (p *round) settle(ctx context.Context, proposals []*proposal, bugs []*numbered) (*Result, error) {
	out := &Result{}
	var everybody []*attempted
	for _, x := range proposals {
		everybody = append(everybody, p.counted("inject", x.attempted))
		if !x.ended() && (x.artifact == nil || !x.verdict.Valid()) {
			value := ssr.InvalidReward
			x.r.Outcome.Reward = &value
			x.r.Outcome.Reason = x.verdict.Reason
		}
	}
	for _, b := range bugs {
		if err := p.reward(b); err != nil {
			return nil, err
		}
		for _, x := range b.attempts {
			everybody = append(everybody, p.counted("solve", x))
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

// reward rewards the attempts at a bug, and those who proposed it.
func (p *round) reward(b *numbered) error {
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

func (p *round) counted(role string, x *attempted) *attempted {
	p.metrics.Tokens[role] += x.tokens
	p.metrics.Seconds[role] += x.seconds
	return x
}
