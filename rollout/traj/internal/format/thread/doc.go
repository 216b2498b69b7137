// Package thread builds the rollout of a conversation message by message, for importers of
// clients and frameworks whose messages have types of their own.
//
//	t := thread.New(in)
//	t.Text(rollout.RoleUser, "list the files")
//	t.Say(rollout.Message{Role: rollout.RoleAssistant, ToolCalls: []rollout.ToolCall{t.Call("c", "ls", args)}})
//	t.Result("c", output)
//	return t.Emit(false)
//
// An assistant message without a reason is taken as sampled. [Thread.Lose] says that what
// later turns saw is not known, [Thread.Words] refuses a part without its text, and
// [Thread.Unknown] one of a kind that no rule is for.
package thread
