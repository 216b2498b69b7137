// Package tokens turns renderings into tokens that say where they came from.
//
// An [Encoder] encodes a range of a rendering to [Columns] and honours an added token only
// where the template, or the policy in its own reply, wrote it. A [SegmentEncoder] remembers
// the text between control tokens, which stands again in later contexts; a [PromptEncoder]
// goes on from what a prompt shares with the one before. A [Completion] is what the policy
// sampled in one turn.
package tokens
