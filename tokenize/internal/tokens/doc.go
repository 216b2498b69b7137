// Package tokens turns renderings into tokens that say where they came from.
//
// An [Encoder] encodes a range of a rendering into a [Compact]. It honours an added token only
// where the template, or the policy in its own reply, wrote it. A [SegmentEncoder] encodes a
// series of contexts: it starts where a context first differs from the one before, and it
// caches the segments between control tokens, since later contexts often repeat them. A
// [PromptEncoder] does the same for prompts and keeps the sampled ids of earlier replies. A
// [Completion] is what the policy sampled in one turn.
package tokens
