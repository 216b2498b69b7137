package tokens

import (
	"index/suffixarray"

	"github.com/turnpack/turnpack/tokenize/engine"
)

// standAlone reports for each added token whether it matches wherever its text occurs, so
// that the text after it encodes independently: no other token contains it, and no token,
// itself included, ends with a prefix of it.
func standAlone(added []engine.AddedToken) []bool {
	const end = 0xFF // in no text
	var all []byte
	var ends [256]bool // the last bytes of tokens
	for _, a := range added {
		all = append(append(all, a.Content...), end)
		if n := len(a.Content); n > 0 {
			ends[a.Content[n-1]] = true
		}
	}
	index := suffixarray.New(all)
	alone := make([]bool, len(added))
	for i, a := range added {
		prefix := append([]byte(a.Content), end)
		alone[i] = a.Content != "" && len(index.Lookup(prefix[:len(a.Content)], 2)) == 1
		for k := 1; alone[i] && k < len(a.Content); k++ {
			if ends[a.Content[k-1]] {
				prefix[k] = end
				alone[i] = index.Lookup(prefix[:k+1], 1) == nil
				prefix[k] = a.Content[k]
			}
		}
	}
	return alone
}
