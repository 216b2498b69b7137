// Package ssr implements the rules of self-play SWE-RL (arXiv 2512.18552v3), in which one policy
// injects bugs into a repository and repairs them.
//
// An injector's answer is an [Artifact]: a test script, the test files it covers, a parser of its
// output, a patch with the bug, and a patch that weakens the tests so that they no longer detect the
// bug. [Check] runs the seven consistency checks on it, in order, through a small [Env] that can put
// the repository into a state and run the tests there. A valid artifact becomes a task: the solver
// gets the repository with bug and weakened tests, and as specification the reversed weakening patch
// ([Artifact.Spec]).
//
// Rewards: [InjectReward] from the share of solver attempts that succeeded, [SolveReward] from the
// tests of one attempt, [Resolve] both at once for a group of attempts, some of which may have been
// lost to the infrastructure. [Expectation] computes the injector's expected reward for a given
// difficulty.
//
// Related functions: [Artifact.Harder] turns a failed repair into a bug of order two,
// [Artifact.Fingerprint] identifies bugs that make the same change, and [InjectKey] and [SolveKey]
// name the groups of both roles.
package ssr
