// Package lossmask decides which tokens of a sequence train, and with what weight.
//
// A loss mask is derived, not recorded: from a [rollout.Sequence], whose columns say for each token
// whether the policy sampled it, which turn and message it belongs to, and which part of a message
// it is, and from a [Policy], a plain value. The same inputs always give the same weights.
//
// The zero Policy trains exactly the tokens that the policy model sampled, stop tokens included.
// Everything the model did not sample (prompts, tool output, role headers, the separator after a
// stop token) has weight 0, and so does the first token of a row, which nothing predicts.
//
// [Apply] returns the sequence with its Weight column set; [Explain] prints the
// decision token by token.
package lossmask
