// Package swerl encodes rollouts as OpenClaw-RL's swe-rl did at commit 0d034dd
// (swe-rl/generate_with_swe_remote.py), so that an old run can be repeated as it
// was. Nothing uses it by default: what it makes is wrong in known ways, and
// package tokenize differs from it in exactly these.
//
//  1. The prompt ends with the generation prompt and the response begins with it
//     again (mask 0).
//  2. Each reply is rendered alone after a stock conversation, so templates that
//     write an empty reasoning block before a last reply put one there, and it is
//     trained; leading newlines of the reply are dropped and text around </think>
//     is rewritten.
//  3. In the single sample the earlier turns carry that block as well, though the
//     model did not see it.
//  4. What the template writes after the stop token ends each step (mask 0).
//  5. The single sample ignores the context manager.
//  6. Control tokens typed into messages become control tokens.
//  7. A sample whose prompt alone fills the budget keeps one token of its
//     response, so it can exceed the budget; a step that was cut is still
//     "completed".
//
// Contexts come from the turns of the rollout: apply the swe-rl policy of package
// ctxwindow first. Its contexts can exceed their budget, and their omission note is
// a second user turn after the first; ctxwindow's other policies do neither.
package swerl
