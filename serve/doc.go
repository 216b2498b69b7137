// Package serve is a rollout service: agents call an engine through rollout/proxy, rollout/live records the
// calls, and a trainer receives one batch for each group, exactly once, however often the service or the
// trainer is killed.
//
//	s, err := serve.Open(serve.Options{Engines: []engine.Options{{URL: url}}, Journal: "journal", Out: "batches", Groups: serve.Groups{Rows: rows}})
//	server := &http.Server{Handler: s.Handler()}
//	…
//	s.Stop()                  // new sessions are refused
//	err = server.Shutdown(ctx)
//	err = s.Close(ctx)
//
// # Groups
//
// A group is complete when Groups.Size of its rollouts have ended, or at its deadline with those that have;
// rollouts of the group that end later are left out, with the reason. Rollouts that failed, that have tokens of
// a policy that is too old, or that a hook could not score belong to the group and give no rows. A group of
// which no batch can be made is refused alone. After a kill, whatever the record or the batches lack is
// recreated from the other, with the same bytes: a trainer that saves the number of its last batch with its
// checkpoint, and requests the batches after it, trains on each batch once.
//
// The program examples/service is a command for it, and its README lists the requests that it answers.
//
// # Exact prompts
//
// With Options.Exact and a model, the service makes the prompts with the ids that were sampled
// (tokenize/prompt), the engine receives ids, and reasoning and calls are parsed from its text
// (tokenize/parse). A rollout that only appends to its prompt is then one row, however the engine spells its
// samples. The metrics report the share of turns for which that holds, and the reasons for the others.
package serve
