package rewards

import (
	"cmp"
	"slices"

	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/rollout"
)

// votesVerb answers the three kinds of lines of the prm kit that need no prompt: a judge
// text, the votes of a step, and the step results of a rollout.
func votesVerb() pipe.Verb {
	swe, chat, opd, terminal := mustRule(prm.Rule{}), mustRule(prm.Rule{Kind: "boxed-last", Digit: true, Scale: prm.ScoreRange{Values: []float64{-1, 0, 1}}}), mustRule(prm.Rule{Kind: "boxed-last", Digit: true}), mustRule(prm.Rule{Kind: "tail"})
	type votesCase struct {
		Text   *string      `json:"text"`
		Votes  *[]*string   `json:"votes"`
		Judged *[]int       `json:"judged_steps"`
		Steps  []stepResult `json:"results"`
		Mask   []int        `json:"loss_mask"`
		Out    float64      `json:"outcome"`
		Coef   *float64     `json:"coef"`
	}
	return pipe.Case("votes", "judge text, votes of a step or step results → scores", func(in *votesCase) (any, error) {
		switch {
		case in.Judged != nil:
			return combineLine(*in.Judged, in.Steps, in.Out, in.Coef, in.Mask)
		case in.Votes != nil:
			return voteLine(*in.Votes, swe, chat, opd), nil
		case in.Text != nil:
			t := *in.Text
			return map[string]any{
				"swe_first_boxed": zeroUnless(swe(t)),
				"chat_last_boxed": nullUnless(chat(t)),
				"opd_judge_score": nullUnless(opd(t)),
				"opd_hint":        prm.Hint(t),
				"terminal_last50": zeroUnless(terminal(t)),
			}, nil
		}
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "line has none of the fields text, votes and judged_steps")
	})
}

// mustRule compiles a preset, which does not fail.
func mustRule(r prm.Rule) prm.Parser {
	p, _ := r.Compile()
	return p
}

func zeroUnless(v float64, err error) float64 {
	if err != nil {
		return 0
	}
	return v
}

func nullUnless(v float64, err error) *float64 {
	if err != nil {
		return nil
	}
	return &v
}

func ballots(texts []*string, parse prm.Parser) []rollout.Vote {
	votes := make([]rollout.Vote, len(texts))
	for i, t := range texts {
		if t == nil {
			votes[i].Error = "request failed"
			continue
		}
		v, err := parse(*t)
		if err != nil {
			votes[i].Error = err.Error()
			continue
		}
		votes[i].Score = &v
	}
	return votes
}

func voteLine(texts []*string, swe, chat, opd prm.Parser) any {
	scores := func(votes []rollout.Vote) []*float64 {
		out := make([]*float64, len(votes))
		for i, v := range votes {
			out[i] = v.Score
		}
		return out
	}
	sweVotes, chatVotes := ballots(texts, swe), ballots(texts, chat)
	sweScores, valid := make([]float64, len(texts)), 0
	for i, v := range sweVotes {
		if v.Score != nil {
			sweScores[i] = *v.Score
			valid++
		}
	}
	plain := make([]string, len(texts))
	for i, t := range texts {
		if t != nil {
			plain[i] = *t
		}
	}
	// The kit has 0 where no vote is valid; the library reports such a score as not
	// computed.
	mean, _ := prm.Aggregate{}.Score(sweVotes, len(texts))
	majority, _ := prm.Aggregate{Method: "majority"}.Score(chatVotes, len(texts))
	var hint *int
	if i := prm.BestHint(plain, scores(ballots(texts, opd))); i >= 0 {
		hint = &i
	}
	return map[string]any{
		"swe":                 map[string]any{"scores": sweScores, "valid_count": valid, "mean_valid": orZero(mean)},
		"chat":                map[string]any{"scores": scores(chatVotes), "majority": orZero(majority)},
		"opd_best_hint_index": hint,
	}
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

type stepResult struct {
	Mean      *float64 `json:"mean"`
	Exception bool     `json:"exception"`
}

func combineLine(steps []int, results []stepResult, outcome float64, coef *float64, mask []int) (any, error) {
	if len(results) != len(steps) {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "results"}, "%d results for %d judged steps", len(results), len(steps))
	}
	scores := make([]rollout.StepScore, len(steps))
	for i, r := range results {
		scores[i] = rollout.StepScore{Step: steps[i], Score: r.Mean}
		if r.Exception || r.Mean == nil {
			scores[i].Score, scores[i].Reason = nil, "exception"
		}
	}
	slices.SortStableFunc(scores, func(a, b rollout.StepScore) int { return cmp.Compare(a.Step, b.Step) })
	reward := prm.Combination{Coef: coef, Missing: "zero"}.Combine(outcome, scores)
	values, status := make([]float64, len(scores)), make([]string, len(scores))
	for i, s := range scores {
		values[i], status[i] = orZero(s.Score), "ok"
		if s.Score == nil {
			status[i] = "exception"
		}
	}
	acc := 0.0
	if outcome > 0 {
		acc = 1
	}
	return map[string]any{
		"step_scores": values, "status": status, "step_mean": orZero(reward.Step), "score": reward.Total,
		"acc": acc, "mask_spans": pipe.Spans(mask),
	}, nil
}
