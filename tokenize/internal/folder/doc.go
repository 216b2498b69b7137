// Package folder reads Hugging Face model folders into data: the tokenizer with the tokens
// that only the configuration names, the named tokens, the ids that end a completion, and
// the chat templates by name. It follows transformers where files disagree.
package folder
