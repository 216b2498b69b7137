// Package thread builds the rollout of a conversation message by message, for importers of
// clients and frameworks with message types of their own.
//
//	t := thread.New(in)
//	t.Text(rollout.RoleUser, "list the files")
//	t.Say(rollout.Message{Role: rollout.RoleAssistant, ToolCalls: []rollout.ToolCall{t.Call("c", "ls", args)}})
//	t.Result("c", output)
//	return t.Emit(false)
//
// An assistant message with Sampled unset counts as sampled. [Thread.Lose] marks the
// contexts of later turns as unknown, [Thread.Words] refuses a part without its text, and
// [Thread.Unknown] refuses a part of unknown kind.
package thread
