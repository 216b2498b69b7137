// Package play runs self-play SWE-RL on a real repository: one policy injects bugs into it
// and repairs them, in sandboxes.
//
//	repo, err := play.Open(ctx, play.Repository{Provider: sandbox.On(driver), Image: "repo", Files: files})
//	result, err := play.Round(ctx, repo, play.Options{Agent: agent.Options{Model: model}, Settings: thresholds, Store: store})
//	result.Rollouts   // rollouts of both roles, with groups and rewards, for the recipe ssr
//
// In a round, injectors propose bugs by three strategies (removal, history, direct), each bug goes
// through the seven checks of package ssr, solvers try the valid bugs, failed repairs become bugs of
// order two, and both roles get rewards. The rules are those of the paper (arXiv 2512.18552v3), which
// takes precedence over articles about it. This package decides what the paper leaves open: an attempt
// ended by the infrastructure has no reward, a duplicate bug earns the same as the first one, and a
// test with varying results on the original repository is ignored everywhere.
//
// Package agent runs the policy: turns hold the ids that the engine sampled, and with Options.Recorder
// each call is on disk before the next begins.
//
// Git makes the states of the repository in its own copy, so modes, links and ignored files are
// preserved. A solver's repository has a single fresh commit with the bug and the weakened tests,
// without the history.
package play
