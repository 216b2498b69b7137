// Package completion is the one place that decides which bytes of a rendered conversation
// the policy sampled.
//
// Its input is a rendering with the origin of its bytes and the messages that were
// sampled; its output is a [Span] for each reply: where the sampled text begins, where its
// stop token begins, and where it ends. It works in three steps:
//
//   - [Find] and [FindLast] tell from the origin of the bytes, and from what the template
//     writes when it is asked for a generation prompt, where the reply of a message stands
//     (turns.go, opening.go for its beginning, closing.go for its end).
//   - A [Rule] knows what the model folder says: which tokens end a reply. What the folder
//     leaves open it asks the template, when that is first needed (rule.go).
//   - The rule takes out of that place what no model can have sampled (reply.go): an empty
//     block of reasoning, a header, an end after a reply that was cut. Rule.SampledText
//     does so for a reply that stands alone after its prompt, Rule.SpanIn for one within
//     the whole conversation. What stays doubtful is refused rather than trained
//     (boundary.go).
//
// The cases are a table in cases_test.go, each with the template that needs it. A new rule
// for where replies end takes rule.go and a row there.
package completion
