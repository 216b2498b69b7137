// Package certify reports whether a model's chat template is safe to train with.
//
//	model, err := tokenize.Load("Qwen3-8B", tokenize.LoadOptions{})
//	cert, err := certify.Model(ctx, model)
//	for _, p := range cert.Missing(tokenize.Merged) { … } // rows of that mode would be wrong
//
// [Model] renders probe conversations with the template and reports properties: whether contexts
// only grow, whether a stop token ends each reply, where a reply begins, and which parts of the
// history the template leaves out, rewrites or adds. Each [Finding] has the conversation that
// decided it, what was seen there and, if the property fails, what that means for rows and what to
// do.
//
// Only [Needed] properties make rows wrong. The others cost rows (append_only) or show what the
// model did not see; an encoder's report counts the latter for actual rollouts.
package certify
