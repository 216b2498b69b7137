// Package tokens turns renderings into tokens that say where they came from.
//
// An [Encoder] encodes a range of a rendering to a [Sink] and honours an added token only
// where the template, or the policy in its own reply, wrote it. A [SegmentEncoder] goes on
// from what a context shares with the one before, and remembers the text between control
// tokens that it left out, which may stand again in later ones; a [PromptEncoder] keeps the
// ids that replies were sampled as. A [Completion] is what the policy sampled in one turn.
package tokens
