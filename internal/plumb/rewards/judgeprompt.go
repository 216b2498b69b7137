package rewards

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/rollout"
)

// judgePromptVerb answers with the sections of the judge prompt at one step under the
// swe-rl limits. The prompt around the sections is this module's own, so the complete
// prompt has no digest in the kit to compare with.
func judgePromptVerb() pipe.Verb {
	builder, _ := prm.Prompt{Limits: prm.SWERL().Limits, Raw: true}.Compile() // does not fail
	type promptCase struct {
		Problem string `json:"problem"`
		Steps   []struct {
			Action     string `json:"action"`
			ReturnCode *int   `json:"returncode"`
			Output     string `json:"output"`
		} `json:"steps"`
		StepIndex *int `json:"step_index"`
	}
	return pipe.Case("judge-prompt", "trajectory and step → sections of the judge prompt (swe-rl limits)", func(in *promptCase) (any, error) {
		if in.StepIndex == nil || *in.StepIndex < 0 {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "step_index"}, "expected an index of 0 or more")
		}
		steps := make([]prm.Step, len(in.Steps))
		for i, s := range in.Steps {
			steps[i] = prm.Step{Index: i, Action: s.Action, Result: s.Output, ReturnCode: s.ReturnCode}
		}
		at := *in.StepIndex
		var current *prm.Step
		if at < len(steps) {
			current = &steps[at]
		}
		// The reference counts the history from the index, including steps missing in its
		// log.
		history := steps[min(max(0, at-sweHistorySteps), len(steps)):min(at, len(steps))]
		v := builder.View(in.Problem, "", history, current, at+1)
		messages, err := builder.Messages(v)
		if err != nil {
			return nil, err
		}
		return map[string]any{
			"history": shownLines(v.History), "n_history": len(v.History), "step_number": v.Current.Number,
			"current_output": v.Current.Result, "returncode": statusOf(v.Current.ReturnCode),
			"problem_text": digestLong(v.Issue), "messages": messages,
		}, nil
	})
}

func shownLines(shown []prm.Shown) []map[string]any {
	out := make([]map[string]any, len(shown))
	for i, s := range shown {
		out[i] = map[string]any{"step": s.Number, "action": s.Action, "returncode": statusOf(s.ReturnCode), "output": s.Result}
	}
	return out
}

// statusOf parses the exit status shown; "?" becomes null.
func statusOf(shown string) *int {
	n, err := strconv.Atoi(shown)
	if err != nil {
		return nil
	}
	return &n
}

const (
	longText        = 8000 - 1
	sweHistorySteps = 8
)

// digestLong returns short texts unchanged and long ones as a digest, like the kit.
func digestLong(text string) any {
	n := utf8.RuneCountInString(text)
	if n <= longText {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	runes := []rune(text)
	return map[string]any{"len": n, "sha256": hex.EncodeToString(sum[:]), "tail": string(runes[n-40:])}
}
