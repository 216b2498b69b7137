// Package chat renders Hugging Face chat templates byte for byte as
// transformers does, and knows for every byte of the result which part of the
// conversation it came from.
package chat
