// Package lineage turns the recorded engine calls of one rollout into training rows: every sampled
// token is trained exactly once, in the context the model saw, with its own log probability, in as
// few rows as that allows.
//
// # Terms
//
// A turn is one engine call: prompt ids P and sampled output ids C. Its full ids are P + C. Turn j
// extends turn i if the full ids of i are a prefix of the prompt of j. A row is a chain of turns,
// each joined to the one before; an exact join is an extension. A row's first turn is its head, its
// last its tail.
//
// # Algorithm
//
// Attach: turns are taken by prompt length, and each continues the longest row whose full ids are a
// prefix of its prompt. That gives the fewest exact rows possible (a minimum chain cover).
// Interleaved agents, retries, branches, removed reasoning and compaction need no special cases. A
// radix tree over the distinct ids finds the rows that are a prefix of a prompt; each id is
// compared once.
//
// Repair, for policies other than "fork": attached rows end where a harness re-tokenized a
// response, cut its tail or rewrote history. A splice continues the row through another spelling of
// the same text and declares the substitution; a realign gives up the end of the response, declares
// the loss and continues with the engine's ids. Each turn then has a few places in the tree from
// which its row can continue, each at a price: its end for nothing, earlier places in its output
// for the tokens dropped, the end of its text in another spelling for the tokens respelled. A
// minimum-cost flow from turns through places to prompts gives the fewest rows possible under the
// limits and, among those, the fewest tokens dropped, then the fewest respelled. Two cases need a
// flow; a greedy choice gives the same in all but one random rollout of a thousand:
//   - An exact join may have to be undone. Turn B sampled x y z; turn A was given x and sampled
//     y. A prompt that continues x y z extends both, and B is the longer. If A takes that
//     prompt, and B gives up y z and continues to A's own prompt, one row is left instead of
//     two.
//   - A row end with a cheap choice may push another to a start that costs more than a third
//     choice would have.
//
// Emit: rows are lists of views of the recorded ids, which are copied only by [Row.AppendIDs].
//
// # Which policy
//
//   - "fork" loses nothing and trains in the engine's own context. It is the default, and the
//     policy for trainers with tree attention ([Result.Tree]).
//   - "splice" makes fewer rows, for trainers that correct off-policy ratios: tokens after a
//     substitution were sampled after another spelling of the same text. Their spans say so
//     ([Span.Subs]).
//   - A template can show another stop token in history than the sampled one: gpt-oss writes
//     <|end|> where a plain reply ended with <|return|>, so every later turn forks. That is the
//     default, and right for a trainer that must see the engine's context, since <|return|> is
//     never part of a prompt. "realign" with a budget of 1 joins such rows and loses every stop
//     token but the last; "splice" with Options.StopRewrites keeps them in the row, trained, and
//     declares them to later spans ([Sub].Stop). Replies with reasoning fork in any case, since
//     the history leaves the reasoning out.
//   - "realign" loses the end of a response, always with its stop token. Keep the budget small
//     and watch [Report.StopsLost]; Options.MaxStopLossShare bounds it.
//   - "auto" splices, else realigns, else forks. "refuse" is for pipelines in which drift is a
//     fault.
//
// # Weights
//
// The number of rows of a rollout depends on drift, so a loss averaged per row would weight
// rollouts by their drift. Package reward/weights makes each rollout count once.
package lineage
