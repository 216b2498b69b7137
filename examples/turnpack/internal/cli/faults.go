package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/turnpack/turnpack/rollout"
)

// printErrors prints the errors joined in err, each once. Errors about fields name the flags
// that set them.
func printErrors(stderr io.Writer, err error) {
	told := map[string]bool{}
	for _, e := range flatten(err) {
		if line := e.Error(); !told[line] {
			told[line] = true
			fmt.Fprintf(stderr, "turnpack: %s\n", line)
		}
	}
}

func flatten(err error) []error {
	if exit, ok := err.(*ExitError); ok {
		err = exit.Err
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range many.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	if err == nil {
		return nil
	}
	return []error{Reason(asFlag(err))}
}

// flagOf maps fields of the library's options to the flags that set them.
var flagOf = map[string]string{
	"recipe": "--recipe", "keep": "--keep", "window": "--window", "Shaping.Keep": "--keep", "Shaping.Keep.Best": "--keep",
	"Clip": "--advantage-clip", "Masked": "--masked", "Cache": "--soft-overlong", "Penalty": "--soft-overlong",
	"Override.InvalidToolCall": "--invalid-call-advantage", "Override.MalformedThinking": "--malformed-thinking-advantage",
	"Shaping.TruncatedCoef": "--truncated-coef", "Shaping.Affine": "--reward-affine", "Shaping.Clip": "--reward-clip",
	"Shaping.Spending": "--length-penalty", "Shaping.MaxAge": "--max-age", "Shaping.MinValid": "--min-valid",
	"Shaping.MinSolved": "--min-solved", "Shaping.MinUnsolved": "--min-unsolved", "Shaping.FilterRaw": "--filter-raw",
	"Pipeline.Shaping.DropZero": "--drop-zero", "Pipeline.Shaping.Spending": "--length-penalty",
	"Shaping.OffPolicy.MaxError": "--logprob-error", "Shaping.OffPolicy": "--importance-weights", "Low": "--importance-weights", "High": "--importance-weights",
	"lossmask.Policy.MaxTokens": "--max-tokens", "Scale.StepCoef": "--step-coef", "Pipeline.Temperature": "--temperature", "Pipeline.PolicyVersion": "--policy-version",
	"Pipeline.Estimator": "--estimator", "Estimator": "--estimator", "Pipeline.Tokens": "--estimator", "Pipeline.Window": "--window", "tokenize.Options.Edges": "--edges", "tokenize.Options.Kwargs": "--template-kwargs", "Pipeline.Workers": "--workers", "Options.GroupBy": "--group-by", "Options.Format": "--format",
	"Options.Endpoints": "--judge", "Options.MaxTokens": "--max-tokens", "Options.Temperature": "--temperature", "Options.TopP": "--top-p",
	"Options.Price.Prompt": "--price-prompt", "Options.Price.Completion": "--price-completion", "Options.StopAfter": "--stop-after",
	"Options.Aggregate.Quorum": "--quorum", "Aggregate.Quorum": "--quorum", "Aggregate.Method": "--aggregate",
	"Rule.Kind": "--rule", "Rule.Pattern": "--pattern", "Rule.Field": "--field", "Rule.Scale": "--scale",
}

// Also returns told joined with those errors of more whose field told does not already
// name.
func Also(told, more error) error {
	all, named := flatten(told), map[string]bool{}
	for _, err := range all {
		if e, ok := err.(*rollout.Error); ok {
			named[e.Where.Field] = true
		}
	}
	for _, err := range flatten(more) {
		if e, ok := err.(*rollout.Error); !ok || !named[e.Where.Field] {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// asFlag returns err with its field replaced by the flag that sets it, unless err is
// about a record.
func asFlag(err error) error {
	e, ok := err.(*rollout.Error)
	if !ok || e.Where.String() != e.Where.Field || flagOf[e.Where.Field] == "" {
		return err
	}
	named := *e
	named.Where.Field = flagOf[e.Where.Field]
	return &named
}
