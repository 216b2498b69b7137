// Package rewards implements the commands of plumb for rewards, judges and verifiers.
package rewards

import "github.com/turnpack/turnpack/internal/plumb/pipe"

// Verbs returns the commands.
func Verbs() []pipe.Verb {
	return []pipe.Verb{
		votesVerb(),
		judgePromptVerb(),
		pipe.Case("advantage", "group advantages of rewards under a named estimator", advantageLine),
		pipe.Case("weights", "weight of every token under a loss aggregation", weightsLine),
		pipe.Case("shape", "length and truncation shaping, overrides, off-policy weights", shapeLine),
		pipe.Case("filter", "which groups each system's filter keeps", filterLine),
		pipe.Case("grade", "grade a test log against an instance's test lists", gradeLine),
		pipe.Plain("pivot", "score one step against the reference trajectory's step", pivotLine),
		pipe.Plain("ssr", "self-play SWE-RL: rewards, their expectation, artifact checks", ssrLine),
	}
}
