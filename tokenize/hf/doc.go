// Package hf is the reference engine: Hugging Face tokenizers through the cgo
// binding github.com/daulet/tokenizers. It loads every tokenizer.json, the
// models that tokenize/bpe refuses (WordPiece, Unigram) included.
//
// It links the static library libtokenizers.a. `make lib` builds it into the
// user cache directory; link with
//
//	CGO_LDFLAGS="-L$(sh internal/libtokenizers/build.sh --path)" go build …
//
// Without cgo, Load returns a KindTokenizer error that says so.
//
// It has no bounds on time and memory of its own, as tokenize/bpe has: load only files
// that you trust. Licences are the terms of what the library is built from.
//
// The binding has gaps that this package closes: its C strings end at NUL, it
// cannot switch off added tokens that are not special, and it loses errors. See
// [Load].
package hf
