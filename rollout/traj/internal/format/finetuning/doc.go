// Package finetuning reads the JSONL of fine-tuning sets: chats, conversations, prompts
// with completions, and preference pairs.
//
//	{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}    openai-chat
//	{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}        sharegpt
//	{"prompt": "q", "completion": "a", "reward": 1}                                            prompt-completion
//	{"prompt": "q", "chosen": "a", "rejected": "b"}                                            preference: refused
//
// The list of messages may be JSON in a string; contents are text, parts, or blocks of the
// Messages API. Assistant messages are sampled, except those that the set marks as not to
// be trained (weight, train, loss): such a mark does not say who wrote them. System prompts
// may be beside the messages. Records with images in a column beside the messages are
// refused: the text alone is not what the model saw. Harbor exports runs as ShareGPT
// records, one per model call with the conversation so far; each reply counts once.
package finetuning
