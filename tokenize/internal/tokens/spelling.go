package tokens

import (
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Spelling is the text of a token by which drift repairs tell whether two runs of
// ids are the same text: its vocabulary entry, since the entries of a byte-level
// model stand for bytes, of which decoding shows all that are no whole character
// alike. An added token is after a NUL, which no entry holds, so that its content
// spelled out is not taken for it.
func Spelling(v engine.Vocab, added *AddedTokens) func(rollout.TokenID) string {
	return func(id rollout.TokenID) string {
		if a, ok := added.Find(id); ok {
			return "\x00" + a.Content
		}
		entry, _ := v.Token(id)
		return entry
	}
}
