// Package finetuning reads the JSONL of fine-tuning sets: chats, conversations, prompts with
// completions, and preference pairs.
//
//	{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}    openai-chat
//	{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}        sharegpt
//	{"prompt": "q", "completion": "a", "reward": 1}                                            prompt-completion
//	{"prompt": "q", "chosen": "a", "rejected": "b"}                                            preference: refused
//
// The list of messages may be a JSON string of one; contents are text, parts, or blocks of
// the Messages API. Assistant messages are sampled, unless the set marks them as not to be
// trained (weight, train, loss), which does not say whose they are. System prompts may
// stand beside the messages. Pictures in a column beside them are refused: the text alone
// is not what the model saw. Harbor exports runs as ShareGPT records, one for each model
// call with the conversation so far, whose replies count once.
package finetuning
