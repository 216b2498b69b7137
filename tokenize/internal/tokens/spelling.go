package tokens

import (
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Spelling returns the text by which drift repairs tell whether two runs of ids spell the
// same: the vocabulary entry of a token. Decoded text would not do, since decoding shows all
// incomplete characters alike. An added token is marked with a NUL, which no entry holds, so
// that its content spelled out is not taken for it.
func Spelling(v engine.Vocab, added *AddedTokens) func(rollout.TokenID) string {
	return func(id rollout.TokenID) string {
		if a, ok := added.Find(id); ok {
			return "\x00" + a.Content
		}
		entry, _ := v.Token(id)
		return entry
	}
}
