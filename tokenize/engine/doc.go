// Package engine is the contract between turnpack and tokenizer engines. It is separate from package tokenize so that
// tokenize can load an engine.
package engine
