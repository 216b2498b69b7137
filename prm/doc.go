// Package prm turns judge answers into process rewards: one score per agent
// step, with the raw votes kept.
//
// A judge is anything that answers a prompt with text ([Judge]); package
// prm/openai is one over HTTP. The way from a rollout to its scores is a row of
// small pure pieces around one loop that talks to the judge:
//
//	StepsOf      which steps a rollout has, command-less and submit ones included
//	Prompt       what the judge reads: budgets per section, fenced and escaped
//	Scorer       m votes per step, seeds from (rollout, step, vote), early stop
//	Rule         how a text becomes a number: boxed, tail, regular expression, JSON
//	Aggregate    how votes become one score: mean, majority, quorum
//	Combination  outcome + coef × mean(step scores), credit per step
//
// [Scorer.Score] and [Scorer.ScoreAll] score rollouts that ended, [Scorer.Live] scores one
// while it runs, with the same result.
//
// Scores are keyed by step and never compacted: a step that was skipped, or
// whose votes all failed, keeps its place with a nil score and a reason. A vote
// that failed is not a vote for 0.
//
// Votes go through a journal (package prm/journal) before they count, so that a
// killed job goes on where it was: no vote is asked twice, none is lost.
package prm
