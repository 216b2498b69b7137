// Package agent runs a policy on a task in a sandbox and records exactly what the policy saw and what it
// answered.
//
//	counter := func(r *rollout.Rollout) ctxwindow.Counter { return encoder.Counter(r) }
//	a, err := agent.New(agent.Options{Model: model, Window: ctxwindow.Refill{Budget: 12288}, Counter: counter})
//	attempt, err := a.Run(ctx, agent.Task{ID: "i#0", Instance: instance, Sandbox: box})
//	err = attempt.Grade(ctx, fresh, instance, agent.GradeOptions{})  // in a sandbox that no agent has used
//	dir, err := attempt.Save("runs", meta)                           // traj.json, patch.diff, meta.json
//
// # The text loop
//
// A reply contains a thought and one ```bash block, whose command runs in the sandbox. Its output is the next
// message, cut in the middle beyond 10,000 characters, with the number of turns left. A command with
// COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT submits what it prints after that line; if that is not a patch, or the
// turns are used up, git diff supplies the changes. [Config] holds the templates; [ReadConfig] reads them from
// a swebench.yaml.
//
// # The loop with tool calls
//
// [Harnesses] are sets of tools that coding harnesses give their models, with the same names and arguments: a
// policy is trained for a harness with that harness's schemas. Commands, edits and the end of the work are
// three kinds of action, whatever a harness calls them.
//
// # What is recorded
//
// Each turn holds the context that its call was given, so that rows contain what the model saw. Turns have ids
// and log probabilities if the model returns them. A live.Session writes each call to disk before the next
// begins.
//
// An attempt ends in one of four ways: submitted or out of turns, both the policy's doing; out of time, which
// is aborted; or broken by the infrastructure, which has a Failure and no outcome, and never counts against the
// policy.
package agent
