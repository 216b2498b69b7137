// Package swerl encodes rollouts like swe-rl of OpenClaw-RL at commit 0d034dd
// (swe-rl/generate_with_swe_remote.py), so that an old run can be repeated exactly.
// Nothing uses it by default: its results are wrong in known ways, and package tokenize
// differs from it in exactly these:
//
//  1. The prompt ends with the generation prompt and the response begins with it
//     again (mask 0).
//  2. Each reply is rendered alone after a stock conversation. Templates that
//     write an empty reasoning block before a last reply therefore write one here,
//     and it is trained; leading newlines of the reply are dropped and text around
//     </think> is rewritten.
//  3. In the single sample, earlier turns have that block too, though the model
//     did not see it.
//  4. Each step ends with what the template writes after the stop token (mask 0).
//  5. The single sample ignores the context manager.
//  6. Control tokens written in messages become control tokens.
//  7. A sample whose prompt alone fills the budget keeps one token of its
//     response, so it can exceed the budget; a truncated step is still "completed".
//
// Contexts come from the turns of the rollout: apply the swe-rl policy of package
// ctxwindow first. Its contexts can exceed their budget, and its omission note is a
// second user turn after the first. The other policies of ctxwindow do neither.
package swerl
