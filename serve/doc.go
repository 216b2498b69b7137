// Package serve puts the parts of a rollout service together: agents call an engine
// through rollout/proxy, rollout/live records them, package deliver makes a batch of each
// group and a trainer takes it, with rollout/live/gate and control around.
//
//	s, err := serve.Open(serve.Options{Engines: []engine.Options{{URL: url}}, Journal: "journal", Out: "batches", Groups: deliver.Options{Rows: rows}})
//	server := &http.Server{Handler: s.Handler()}
//	…
//	s.Stop()                  // sessions that begin are refused
//	err = server.Shutdown(ctx)
//	err = s.Close(ctx)
//
// Each part works without it; examples/service is a command around it, and its README has
// the requests that it answers.
//
// # Exact prompts
//
// With Options.Exact and a model, prompts are made here with the ids that were sampled
// (tokenize/prompt), the engine is given ids, and reasoning and calls are read from its
// text (tokenize/parse). A rollout that only goes on is one row then, whatever spelling the
// engine samples. The metrics tell the share of turns for which that holds, and why not
// for the others.
package serve
