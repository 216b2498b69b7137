package pivot

import (
	"github.com/turnpack/turnpack/internal/faults"
)

// Values of Score.Failure, in the reference's words. failureUnknown replaces an exception in the
// reference: arguments of a shape that its rules cannot read.
const (
	failureNone            = "none"
	failureExpectedInvalid = "expected_action_invalid"
	failureOutputInvalid   = "model_output_invalid"
	failureToolName        = "tool_name_mismatch"
	failureTarget          = "target_mismatch"
	failureSimilarity      = "similarity_below_threshold"
	failureUnknown         = "unknown_error"
)

// SWE is the layered verifier for steps of coding agents. The zero value is the
// reference's default configuration.
type SWE struct {
	// Mode selects how similarity becomes a reward: "binary" or "", 1 from FullCredit on, else 0;
	// "continuous", 0.5 to 1 between Threshold and FullCredit.
	Mode string
	// Threshold is the similarity that earns half a reward, FullCredit the similarity that earns a
	// full reward, both from 0 to 1; nil means 0.4 and 0.8. Threshold applies in continuous mode only.
	Threshold  *float64
	FullCredit *float64
	// DiffSizeAlpha is the largest penalty, reached by edits of 500 characters;
	// nil means 0.1. It applies in continuous mode only.
	DiffSizeAlpha *float64
	// Levels to skip.
	SkipTarget     bool
	SkipSimilarity bool
	SkipDiffSize   bool
}

// Validate reports every fault of the configuration.
func (v SWE) Validate() error {
	var f faults.List
	for _, p := range []struct {
		name  string
		value *float64
	}{{"similarity_threshold", v.Threshold}, {"similarity_full_credit", v.FullCredit}, {"diff_size_alpha", v.DiffSizeAlpha}} {
		if p.value != nil && !(*p.value >= 0 && *p.value <= 1) {
			f.Add(p.name, "expected a number from 0 to 1, found %v", *p.value)
		}
	}
	faults.Word(&f, "reward_mode", v.Mode, "binary", "continuous")
	return f.Err()
}

// Score is the reward of one step with the result of each level. A nil pointer means that the level
// was not reached or is switched off.
type Score struct {
	Reward        float64  `json:"reward"`
	ToolNameMatch bool     `json:"tool_name_match"`
	TargetMatch   *bool    `json:"target_match"`
	Similarity    *float64 `json:"similarity"`
	DiffPenalty   *float64 `json:"diff_size_penalty"`
	Failure       string   `json:"failure"`
}

// Verify scores the call of an answer against the expected call. A nil expected or actual call is a
// failure with its own reason, not an error.
func (v SWE) Verify(expected, actual *Call) (Score, error) {
	if err := v.Validate(); err != nil {
		return Score{}, err
	}
	if expected == nil {
		return Score{Failure: failureExpectedInvalid}, nil
	}
	if actual == nil {
		return Score{Failure: failureOutputInvalid}, nil
	}
	s := Score{Failure: failureNone}
	want, got := newStep(*expected), newStep(*actual)
	v.levels(want, got, &s)
	if want.raised || got.raised {
		s.Reward, s.Failure = 0, failureUnknown
	}
	return s, nil
}

func orDefault(p *float64, otherwise float64) float64 {
	if p == nil {
		return otherwise
	}
	return *p
}

// levels runs the levels in order of cost and stops at the first failure, or where the reference
// raises an exception.
func (v SWE) levels(want, got *step, s *Score) {
	s.ToolNameMatch = want.name == got.name || want.category == got.category && want.category != ""
	if !s.ToolNameMatch {
		s.Failure = failureToolName
		return
	}
	if !v.SkipTarget {
		same := sameTarget(want, got)
		if want.raised || got.raised {
			return
		}
		if s.TargetMatch = &same; !same {
			s.Failure = failureTarget
			return
		}
	}
	s.Reward = 1
	if !v.SkipSimilarity {
		similarity := stepSimilarity(want, got)
		if want.raised || got.raised {
			return
		}
		s.Similarity = &similarity
		full, threshold := orDefault(v.FullCredit, 0.8), orDefault(v.Threshold, 0.4)
		switch {
		case similarity >= full:
		case v.Mode == "continuous" && similarity >= threshold:
			s.Reward = 0.5 + 0.5*(similarity-threshold)/(full-threshold)
		default:
			s.Reward, s.Failure = 0, failureSimilarity
			return
		}
	}
	if !v.SkipDiffSize && v.Mode == "continuous" {
		if penalty := diffPenalty(got, orDefault(v.DiffSizeAlpha, 0.1)); !got.raised {
			s.DiffPenalty = &penalty
			s.Reward *= 1 - penalty
		}
	}
}
