// Package embedded provides a small model folder as part of the module: a byte-level BPE tokenizer of 4,096 entries,
// trained on this repository's own text, with ChatML markers, and a chat template with tools. Demos, examples and
// tests use it without a download. Its vocabulary is no substitute for a real model's.
package embedded
