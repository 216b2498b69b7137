// Package bpe is a pure Go byte pair encoding engine whose ids, offsets and
// decoded text are those of Hugging Face tokenizers and, for rank files, of
// tiktoken.
package bpe
