// Package chats writes rollouts as Parquet data sets of chats, as fine-tuning reads them:
// one row a rollout, its messages a list of structures.
//
//	w, err := chats.NewWriter(file, "openai")
//	for … { notes, err := w.Write(r) }
//	err = w.Close()
//
// The columns are id, instance_id, the messages, tools and chat_template_kwargs (JSON
// text, since each tool has a schema of its own), resolved, reward, patch and exit_status.
// What a rollout lacks is null. The messages are, in the terms of Arrow,
//
//	openai:   messages: list<struct<role: string, content: string, reasoning_content: string,
//	          name: string, tool_call_id: string, tool_calls: list<struct<id: string, type: string,
//	          function: struct<name: string, arguments: string>>>>>
//	sharegpt: conversations: list<struct<from: string, value: string, reasoning_content: string>>
//
// where arguments are JSON text. In conversations the calls of a reply are a turn of
// function_call, their results turns of observation, and calls have no ids.
//
// Such a set holds no token ids, no contexts and no marks of what was sampled: Write says
// what each row is without. For training on the policy's own tokens write batches
// (package export).
package chats
