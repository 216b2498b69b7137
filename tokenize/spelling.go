package tokenize

import "github.com/turnpack/turnpack/rollout"

// spelling is the text of a token by which drift repairs tell whether two runs of
// ids are the same text: its vocabulary entry, since the entries of a byte-level
// model stand for bytes, of which decoding shows all that are no whole character
// alike. An added token is after a NUL, which no entry holds, so that its content
// spelled out is not taken for it.
func spelling(v Vocab, added *addedTokens) func(rollout.TokenID) string {
	return func(id rollout.TokenID) string {
		if a, ok := added.find(id); ok {
			return "\x00" + a.Content
		}
		entry, _ := v.Token(id)
		return entry
	}
}
