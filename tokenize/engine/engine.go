package engine

import "github.com/turnpack/turnpack/rollout"

// Tokenizer is what every engine offers. Implementations are safe for
// concurrent use and never keep or change their arguments after returning.
type Tokenizer interface {
	// Encode appends the tokens of text to dst. Nothing is put in front or
	// after (no BOS, no EOS). Text that is not valid UTF-8 is encoded as if each
	// maximal invalid subpart were U+FFFD; NUL is an ordinary character. On error
	// dst is left as it was.
	Encode(dst *Encoding, text string, opts EncodeOptions) error
	// Decode returns the text of ids, added tokens included. An id outside the
	// vocabulary is a KindTokenizer error that names its position.
	Decode(ids []rollout.TokenID) (string, error)
	// Vocab returns the facts of the vocabulary, the same value at each call.
	Vocab() Vocab
	// Digest is "sha256:<hex>" of the definition the engine was loaded from.
	Digest() string
}

// Measured is a Tokenizer that knows how many bytes of a text each token stands for.
type Measured interface {
	// Widths holds them by id, the same slice at each call, not to be written to; nil where
	// a token has more than fit.
	Widths() []uint16
}

// Vocab answers questions about a vocabulary.
type Vocab interface {
	// Size is one more than the largest id.
	Size() int
	// ID returns the id whose vocabulary entry is exactly token (for byte-level
	// models the entry's mapped spelling, as in tokenizer.json).
	ID(token string) (rollout.TokenID, bool)
	// Token is the inverse of ID.
	Token(id rollout.TokenID) (string, bool)
	// Added returns the added tokens in ascending id order. The caller must not
	// change the slice.
	Added() []AddedToken
}

// AddedToken is an entry that is cut out of the text before the model sees it,
// with the matching rules of Hugging Face tokenizers.
type AddedToken struct {
	ID         rollout.TokenID
	Content    string
	Special    bool // hidden by skip_special_tokens; false for <think>, <tool_call>, …
	LStrip     bool // takes white space on its left with it
	RStrip     bool // takes white space on its right with it
	SingleWord bool // counts only between non-word characters
	Normalized bool // looked for in the normalised text
}

// Encoding receives tokens; reuse one to avoid allocation.
type Encoding struct {
	IDs []rollout.TokenID
	// Offsets holds the byte range [Offsets[2i], Offsets[2i+1]) of token i in the
	// text, where asked for. A token that holds a part of a character carries the
	// range of the whole character (the Hugging Face rule), except in tiktoken
	// models, whose ranges are exact.
	Offsets []int32
}

// Reset empties e and keeps its memory.
func (e *Encoding) Reset() { e.IDs, e.Offsets = e.IDs[:0], e.Offsets[:0] }

// EncodeOptions selects what Encode does. The zero value honours every added
// token and computes no offsets.
type EncodeOptions struct {
	// Added decides, for each occurrence of an added token, whether it counts.
	// A refused occurrence is plain text, exactly as if that token were not in the
	// table there; the search goes on as if it had not matched. nil accepts all.
	Added func(m AddedMatch) bool
	// Offsets asks for byte ranges.
	Offsets bool
	// Widths lets a [Measured] tokenizer leave Offsets empty, for all tokens that it hands
	// over at once, where they are the text cut into pieces of their widths.
	Widths bool
	// After says what stands before the text where it is a part of a longer one.
	After After
	// Section, where set, may be called with the result while a long text is encoded:
	// it takes the tokens and empties it, so that those of the whole text are never
	// held at once. Offsets count from the start of the text. A tokenizer need not call
	// it, and what is left is taken after Encode. An error ends the call.
	Section func(*Encoding) error
}

// After is what stands before a text. Models that mark the beginning of
// words (SentencePiece style: Metaspace, Prepend, add_prefix_space) put their mark
// before what begins a text or a section between added tokens, and nothing
// before what goes on.
type After uint8

// What may stand in front.
const (
	AfterNothing After = iota // the text begins here
	AfterToken                // an added token: a section begins here
	AfterText                 // other text of the same section
)

// AddedMatch is one occurrence of an added token in the text given to Encode.
// Start and End are byte offsets of the token's own content, without white
// space that LStrip or RStrip would take along.
type AddedMatch struct {
	Token      AddedToken
	Start, End int
}

// NoAdded refuses every added token: the encoding that untrusted text needs.
func NoAdded(AddedMatch) bool { return false }
