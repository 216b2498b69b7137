package tokenize

import "github.com/turnpack/turnpack/tokenize/engine"

// The contract of engines, documented in [engine].
type (
	// Tokenizer is what every engine offers.
	Tokenizer = engine.Tokenizer
	// Vocab answers questions about a vocabulary.
	Vocab = engine.Vocab
	// AddedToken is an entry that is cut out of the text before the model sees it.
	AddedToken = engine.AddedToken
	// Encoding receives tokens; reuse one to avoid allocation.
	Encoding = engine.Encoding
	// EncodeOptions selects what Encode does.
	EncodeOptions = engine.EncodeOptions
	// After is what stands before a text.
	After = engine.After
	// AddedMatch is one occurrence of an added token in a text.
	AddedMatch = engine.AddedMatch
	// AddedMatcher finds added tokens in a text.
	AddedMatcher = engine.AddedMatcher
	// AddedSpan is an occurrence found by an AddedMatcher.
	AddedSpan = engine.AddedSpan
)

// What may stand before a text.
const (
	AfterNothing = engine.AfterNothing
	AfterToken   = engine.AfterToken
	AfterText    = engine.AfterText
)

// NoAdded refuses every added token: the encoding that untrusted text needs.
func NoAdded(m AddedMatch) bool { return engine.NoAdded(m) }

// NewAddedMatcher is [engine.NewAddedMatcher].
func NewAddedMatcher(tokens []AddedToken, contents []string) *AddedMatcher {
	return engine.NewAddedMatcher(tokens, contents)
}
