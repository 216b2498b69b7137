package main

import (
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/reward"
)

// hints returns advice on flags that would keep rollouts left without rows, or that would
// bring contexts closer to what the model saw.
func (s *summary) hints() []string {
	var scalar, none int
	for why, n := range s.WithoutRows {
		switch {
		case strings.Contains(why, reward.ExcludedOnlyScalar):
			scalar += n
		case strings.Contains(why, reward.ExcludedNoOutcome):
			none += n
		}
	}
	var out []string
	if scalar > 0 {
		out = append(out, fmt.Sprintf("%s rollouts record a number as their reward: --scale auto takes it", cli.Number(scalar)))
	}
	if none > 0 {
		out = append(out, fmt.Sprintf("%s rollouts record no result: join one with --rewards FILE, or write rows without advantages with --estimator none, for targets that read none (none, megatron)", cli.Number(none)))
	}
	if n := s.Notes["context_not_stored"]; n > 0 && !s.windowed {
		out = append(out, fmt.Sprintf("%s rollouts do not store the window that the model saw: --window swe-rl:N runs it again", cli.Number(n)))
	}
	if s.unfilled {
		out = append(out, "slime ends on fewer rollouts than --global-batch-size and drops those beyond a multiple: --rollouts-per-step N fills the file up to it")
	}
	if s.undated && s.Rendered > 0 {
		out = append(out, "the chat template writes the date, and contexts rendered from text say 1 January 1970: give the day of the run with --now")
	}
	return out
}
