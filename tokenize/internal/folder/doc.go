// Package folder reads Hugging Face model folders: the tokenizer with the tokens that only the
// configuration names, the named tokens, the ids that end a completion, and the chat templates by
// name. If files disagree, it follows transformers.
package folder
