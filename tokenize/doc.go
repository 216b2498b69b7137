// Package tokenize turns rollouts into token sequences that say for each token where it came from
// and whether the policy sampled it.
//
//	model, err := tokenize.Load("Qwen3-8B", tokenize.LoadOptions{}) // a Hugging Face model folder
//	enc, err := tokenize.NewEncoder(model, tokenize.Options{})      // safe for concurrent use
//	seqs, report, err := enc.Encode(ctx, r)                         // []rollout.Sequence
//
// # From messages to tokens
//
// The chat template renders each context that the model saw, from the point where it can differ
// from the previous one, and package chat tells for each byte which message and field it came from.
// Three rules turn that text into tokens:
//
//   - An added token such as <|im_end|> counts only where the template itself, or the policy in
//     its own reply, wrote all of its bytes (Options.Specials). The same characters in a tool
//     result are ordinary text, so nobody can forge a turn. "parity" is the Hugging Face
//     behaviour.
//   - Text between added tokens is encoded as one piece, so benign text has exactly the ids of
//     Hugging Face.
//   - A completion is encoded apart from its prompt (Options.Edges): the model sampled it after
//     the generation prompt, so no token spans both, and models that mark the beginning of a
//     text (SentencePiece style) get no such mark in between.
//
// The sampled text of a turn is the text after the generation prompt, up to and including the stop
// token. The separator after that (a newline in ChatML) belongs to the template.
//
// If a turn carries the engine's token ids, they are used unchanged, with their log probabilities;
// [rollout.Fidelity] says which rows are captured and which rendered.
//
// Rollouts that record prompt ids and output ids for every turn need no model: NewEncoder(nil, …).
//
// # Which rows
//
//   - [Merged], the default, makes the fewest rows in which each sampled token appears once, in
//     the context the model saw (package lineage).
//   - [PerStep] makes one row per turn: the dynamic history.
//   - [Whole] makes one row of the conversation as the template renders it at the end, for
//     supervised training.
//
// # Is this template safe?
//
// Package certify probes a model's template and reports, each with an example conversation, whether
// contexts only grow, whether the stop token is written, and which parts of the history disappear.
//
// # Engines
//
// [Load] uses package bpe, which is pure Go. If bpe rejects a tokenizer.json, its error says why;
// package hf binds Hugging Face tokenizers itself. [LoadOptions] chooses the engine.
package tokenize
