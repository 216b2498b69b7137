// Package hf is the reference engine: Hugging Face tokenizers through the cgo binding github.com/daulet/tokenizers.
// It loads every tokenizer.json, including the models that tokenize/bpe refuses (WordPiece, Unigram).
//
// It links the static library libtokenizers.a. `make lib` builds it into the user cache directory; link with
//
//	CGO_LDFLAGS="-L$(sh internal/libtokenizers/build.sh --path)" go build …
//
// Without cgo, Load returns a KindTokenizer error that says so.
//
// Unlike tokenize/bpe, it does not bound time and memory: load only files that you trust. Licences returns the
// licence terms of the library's sources.
//
// This package works around gaps of the binding: its C strings end at NUL, it cannot switch off added tokens that are
// not special, and it loses errors. See [Load].
package hf
