// Package completion decides which bytes of a rendered conversation the policy sampled; no other
// package does.
//
// Its input is a rendering with the origin of its bytes and the messages that were sampled. Its
// output is a [Span] for each reply: where the sampled text begins, where its stop token begins,
// and where it ends. It works in three steps:
//
//   - [Find] and [FindLast] locate the reply of a message, from the origin of the bytes and from
//     the template's generation prompt (turns.go, opening.go for its beginning, closing.go for
//     its end).
//   - A [Rule] knows which tokens end a reply, from the model folder. What the folder leaves
//     open is found by rendering probes, when first needed (rule.go).
//   - The rule removes from the located reply what no model can have sampled (reply.go): an
//     empty block of reasoning, a header, an end after a truncated reply. Rule.SampledText does
//     so for a reply right after its prompt, Rule.SpanIn for one within the whole conversation.
//     Doubtful replies are rejected rather than trained (boundary.go).
//
// cases_test.go has a table of the cases, each with the template that needs it. A new rule for the
// end of replies changes rule.go and adds a row there.
package completion
