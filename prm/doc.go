// Package prm turns the answers of judges into process rewards: one score per agent step, with the raw
// votes kept.
//
// A judge is anything that answers a prompt with text ([Judge]); package prm/openai implements one
// over HTTP. Scoring a rollout combines small pure parts with one loop that calls the judge:
//
//	StepsOf      the steps of a rollout, including command-less and submit steps
//	Prompt       the judge's prompt: budgets per section, fenced and escaped
//	Scorer       m votes per step, seeds from (rollout, step, vote), early stop
//	Rule         how a judge's text becomes a number: boxed, tail, regular expression, JSON
//	Aggregate    how votes become one score: mean, majority, quorum
//	Combination  outcome + coef × mean(step scores), credit per step
//
// [Scorer.Score] and [Scorer.ScoreAll] score finished rollouts, [Scorer.Live] scores a rollout while
// it runs, with the same result.
//
// Scores are keyed by step and never compacted: a step that was skipped, or whose votes all failed,
// keeps its place with a nil score and a reason. A failed vote does not count as a vote for 0.
//
// With a journal (package prm/journal), votes are recorded before they count, so that a killed job
// resumes where it stopped: no vote is requested twice and none is lost.
package prm
