package engine

import "github.com/turnpack/turnpack/rollout"

// Tokenizer is implemented by every engine. Implementations are safe for concurrent use. They do not change their
// arguments, and do not keep them after returning.
type Tokenizer interface {
	// Encode appends the tokens of text to dst, and nothing before or after them (no BOS, no EOS). Text that is not
	// valid UTF-8 is encoded as if each maximal invalid subpart were U+FFFD; NUL is an ordinary character. On error
	// dst is unchanged.
	Encode(dst *Encoding, text string, opts EncodeOptions) error
	// Decode returns the text of ids, including added tokens. An id outside the vocabulary is a KindTokenizer error
	// that names its position.
	Decode(ids []rollout.TokenID) (string, error)
	// Vocab returns the vocabulary, the same value at each call.
	Vocab() Vocab
	// Digest returns "sha256:<hex>" of the definition that the engine was loaded from.
	Digest() string
}

// Measured is a Tokenizer that knows the number of bytes of text of each token.
type Measured interface {
	// Widths returns these numbers by id, the same slice at each call, which must not be modified. It returns nil if
	// one of them does not fit into a uint16.
	Widths() []uint16
}

// Vocab describes a vocabulary.
type Vocab interface {
	// Size returns one more than the largest id.
	Size() int
	// ID returns the id whose vocabulary entry is exactly token (for byte-level models the entry's mapped spelling,
	// as in tokenizer.json).
	ID(token string) (rollout.TokenID, bool)
	// Token returns the vocabulary entry of an id, the inverse of ID.
	Token(id rollout.TokenID) (string, bool)
	// Added returns the added tokens in ascending id order. The caller must not modify the slice.
	Added() []AddedToken
}

// AddedToken is an entry that is cut out of the text before the model encodes it, with the matching rules of Hugging
// Face tokenizers.
type AddedToken struct {
	ID         rollout.TokenID
	Content    string
	Special    bool // hidden by skip_special_tokens; false for <think>, <tool_call>, …
	LStrip     bool // includes white space on its left
	RStrip     bool // includes white space on its right
	SingleWord bool // matches only between non-word characters
	Normalized bool // matched in the normalised text
}

// Encoding receives tokens. Reuse it to avoid allocation.
type Encoding struct {
	IDs []rollout.TokenID
	// Offsets holds the byte range [Offsets[2i], Offsets[2i+1]) of token i in the text, if requested. A token that
	// holds part of a character has the range of the whole character (the Hugging Face rule), except in tiktoken
	// models, whose ranges are exact.
	Offsets []int32
}

// Reset empties e and keeps its memory.
func (e *Encoding) Reset() { e.IDs, e.Offsets = e.IDs[:0], e.Offsets[:0] }

// EncodeOptions configures Encode. The zero value accepts every added token and computes no offsets.
type EncodeOptions struct {
	// Added decides for each occurrence of an added token whether it counts. A refused occurrence is plain text,
	// exactly as if the token were not in the vocabulary there; the search continues as if it had not matched. nil
	// accepts all.
	Added func(m AddedMatch) bool
	// Offsets requests byte ranges.
	Offsets bool
	// Widths allows a [Measured] tokenizer to leave Offsets empty for all tokens that it passes on at once, if they
	// are the text cut into pieces of their widths.
	Widths bool
	// After is what comes before the text if it is part of a longer one.
	After After
	// Section, if set, may be called with the result so far while a long text is encoded. It takes the tokens and
	// empties the Encoding, so that the tokens of the whole text are never held at once. Offsets count from the start
	// of the text. A tokenizer need not call it; the caller takes the remaining tokens after Encode. An error ends
	// the call.
	Section func(*Encoding) error
}

// After is what comes before a text. Models that mark the beginning of words (SentencePiece style: Metaspace,
// Prepend, add_prefix_space) put their mark at the beginning of a text or of a section between added tokens, and not
// before text that continues other text.
type After uint8

// The values of After.
const (
	AfterNothing After = iota // the text begins here
	AfterToken                // an added token: a section begins here
	AfterText                 // other text of the same section
)

// AddedMatch is one occurrence of an added token in the text given to Encode. Start and End are the byte offsets of
// the token's content, without the white space that LStrip or RStrip includes.
type AddedMatch struct {
	Token      AddedToken
	Start, End int
}

// NoAdded refuses every added token, which is how to encode untrusted text.
func NoAdded(AddedMatch) bool { return false }
