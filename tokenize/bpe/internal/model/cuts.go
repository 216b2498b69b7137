package model

import (
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// cuts finds places where a piece can be cut without changing its tokens. Every merge joins two adjacent characters
// in one token, so nothing merges between characters that are adjacent in no token's spelling. This helps models that
// take whole texts as one piece (SentencePiece style): a text falls into words, which repeat and are cached.
type cuts struct {
	// glue holds the characters after which wordMark does not begin a new part.
	glue map[rune]bool
}

// wordMark is the character that stands for a space in SentencePiece models.
const wordMark = "\u2581"

// newCuts returns nil unless the conditions hold: unknown characters are all spelled as bytes, so that a token's
// width follows from its id, and no merge involves a byte token, whose spelling is not its text.
func newCuts(m *Model) *cuts {
	if m.Prefix != "" || m.Suffix != "" || m.IgnoreMerges || !m.ByteFallback {
		return nil
	}
	bytes := map[int32]bool{}
	for _, id := range m.fallback {
		if id < 0 {
			return nil
		}
		bytes[id] = true
	}
	c := &cuts{glue: map[rune]bool{}}
	usable := true
	m.Pairs.each(func(a, b int32, rank uint32) {
		into := m.Pairs.product(rank)
		if bytes[a] || bytes[b] || bytes[into] {
			usable = false
		}
		text, _ := m.Vocab.Bytes(int(into))
		c.learn(string(text))
	})
	if !usable {
		return nil
	}
	return c
}

// learn adds to glue the characters before a mark inside a token.
func (c *cuts) learn(token string) {
	for at := 1; at < len(token); {
		k := strings.Index(token[at:], wordMark)
		if k < 0 {
			return
		}
		r, _ := utf8.DecodeLastRuneInString(token[:at+k])
		c.glue[r] = true
		at += k + len(wordMark)
	}
}

// next returns the length of the first part of piece, which is not empty.
func (c *cuts) next(piece []byte) int {
	_, p := uni.DecodeRune(piece)
	for {
		k := indexMark(piece[p:])
		if k < 0 {
			return len(piece)
		}
		p += k
		if r, _ := utf8.DecodeLastRune(piece[:p]); !c.glue[r] {
			return p
		}
		p += len(wordMark)
	}
}

func indexMark(b []byte) int {
	for i := 0; i+2 < len(b); i++ {
		if b[i] == wordMark[0] && b[i+1] == wordMark[1] && b[i+2] == wordMark[2] {
			return i
		}
	}
	return -1
}
