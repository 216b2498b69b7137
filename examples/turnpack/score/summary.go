package score

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// summary describes a run. Its JSON is the --summary file.
type summary struct {
	Model            string        `json:"model"`
	Rollouts         int           `json:"rollouts"`
	SkippedInput     int           `json:"skipped_input"`
	Steps            int           `json:"steps"`
	SkippedSteps     int           `json:"skipped_steps"`
	VotesAsked       int64         `json:"votes_asked"`
	VotesResumed     int64         `json:"votes_resumed"`
	VotesSpared      int64         `json:"votes_spared"`
	MeanStepScore    *float64      `json:"mean_step_score"`
	MeanReward       *float64      `json:"mean_reward"`
	Agreement        prm.Agreement `json:"agreement"`
	Requests         int64         `json:"requests"`
	Retries          int64         `json:"retries"`
	RateLimited      int64         `json:"rate_limited"`
	FailedRequests   int64         `json:"failed_requests"`
	PromptTokens     int64         `json:"prompt_tokens"`
	CompletionTokens int64         `json:"completion_tokens"`
	Cost             float64       `json:"cost"`
	Seconds          float64       `json:"seconds"`

	scale     reward.OutcomePolicy
	tally     prm.Tally
	scored    int
	scoreSum  float64
	rewarded  int
	rewardSum float64
}

// scale returns how the summary combines outcomes and step scores.
func (c *Cmd) scale() reward.OutcomePolicy {
	return reward.OutcomePolicy{StepCoef: c.Coef, StepsOptional: true}
}

// add counts one scored rollout. The reward mean includes rollouts whose dump records an
// outcome: the recorded number or, for a bare verdict, ±1.
func (s *summary) add(r *rollout.Rollout) {
	s.Rollouts++
	s.tally.Add(r.Steps)
	for _, step := range r.Steps {
		s.Steps++
		if prm.Skipped(step) {
			s.SkippedSteps++
		}
		if step.Score != nil {
			s.scored++
			s.scoreSum += *step.Score
		}
	}
	scale := s.scale
	if r.Outcome.Reward != nil {
		scale.Outcome = "recorded"
	}
	if got := reward.Score(r, scale); got.Excluded == "" {
		s.rewarded++
		s.rewardSum += got.Total
	}
}

func (s *summary) finish(st openai.Stats, p *progress, took time.Duration) {
	s.Agreement = s.tally.Agreement()
	s.VotesAsked, s.VotesResumed, s.VotesSpared = p.asked.Load(), p.resumed.Load(), p.spared.Load()
	s.Requests, s.Retries, s.RateLimited, s.FailedRequests = st.Requests, st.Retries, st.RateLimited, st.Failures
	s.PromptTokens, s.CompletionTokens, s.Cost = st.PromptTokens, st.CompletionTokens, st.Cost
	s.Seconds = took.Seconds()
	if s.scored > 0 {
		s.MeanStepScore = new(s.scoreSum / float64(s.scored))
	}
	if s.rewarded > 0 {
		s.MeanReward = new(s.rewardSum / float64(s.rewarded))
	}
}

// print writes the summary as text.
func (s *summary) print(w io.Writer) {
	fmt.Fprintf(w, "%d rollouts, %d steps: %d scored", s.Rollouts, s.Steps, s.scored)
	if s.SkippedSteps > 0 {
		fmt.Fprintf(w, ", %d skipped", s.SkippedSteps)
	}
	if s.Agreement.NotComputed > 0 {
		fmt.Fprintf(w, ", %d without a score", s.Agreement.NotComputed)
	}
	fmt.Fprintf(w, "\nvotes: %d asked, %d from the journal, %d spared; %d failed, %d without a verdict\n",
		s.VotesAsked, s.VotesResumed, s.VotesSpared, s.Agreement.Failed, s.Agreement.Unparsed)
	if s.MeanStepScore != nil {
		fmt.Fprintf(w, "mean step score %.4g", *s.MeanStepScore)
		if s.MeanReward != nil {
			fmt.Fprintf(w, ", mean reward %.4g over %d rollouts with an outcome", *s.MeanReward, s.rewarded)
		}
		fmt.Fprintln(w)
	}
	if a := s.Agreement; a.Steps > 0 {
		kappa := "not defined"
		if a.Kappa != nil {
			kappa = fmt.Sprintf("%.3f", *a.Kappa)
		}
		fmt.Fprintf(w, "agreement: Fleiss' kappa %s, %d of %d steps unanimous, spread %.3g on average, %.3g at most\n", kappa, a.Unanimous, a.Steps, a.MeanSpread, a.MaxSpread)
	}
	fmt.Fprintf(w, "requests: %d, %d retries, %d rate limited, %d failed; tokens %d in, %d out; cost %.4g; %.1f s, %.1f votes/s\n",
		s.Requests, s.Retries, s.RateLimited, s.FailedRequests, s.PromptTokens, s.CompletionTokens, s.Cost, s.Seconds, float64(s.VotesAsked)/max(s.Seconds, 1e-3))
}

func (s *summary) write(path string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return rollout.Errorf(rollout.KindInternal, rollout.Where{File: path}, "%w", err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "write the summary: %w", err)
	}
	return nil
}

// voteSchema returns the JSON schema for --structured: an object with a reason and a
// number at path.
func voteSchema(path []string) map[string]any {
	inner := map[string]any{"type": "number"}
	if len(path) > 1 {
		inner = voteSchema(path[1:])
	}
	return map[string]any{
		"type":                 "object",
		"properties":           map[string]any{"reason": map[string]any{"type": "string"}, path[0]: inner},
		"required":             []string{"reason", path[0]},
		"additionalProperties": false,
	}
}
