// Package chats writes rollouts as Parquet data sets of chats for fine-tuning: one row per
// rollout, with its messages as a list of structures.
//
//	w, err := chats.NewWriter(file, "openai")
//	for … { notes, err := w.Write(r) }
//	err = w.Close()
//
// The columns are id, instance_id, the messages, tools and chat_template_kwargs (as JSON text,
// since each tool has its own schema), resolved, reward, patch and exit_status. What a rollout
// lacks is null. The messages are, in Arrow's notation,
//
//	openai:   messages: list<struct<role: string, content: string, reasoning_content: string,
//	          name: string, tool_call_id: string, tool_calls: list<struct<id: string, type: string,
//	          function: struct<name: string, arguments: string>>>>>
//	sharegpt: conversations: list<struct<from: string, value: string, reasoning_content: string>>
//
// where arguments are JSON text. In conversations the calls of a reply are a turn of
// function_call, their results are turns of observation, and calls have no ids.
//
// Such a data set holds no token ids, contexts or marks of what was sampled; the notes of Write
// say what else a row lacks. To train on the policy's own tokens, write batches (package
// export).
package chats
