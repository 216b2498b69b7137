package tokens

import (
	"bytes"

	"github.com/turnpack/turnpack/rollout"
)

// parts are the flags for the part of a message that a token belongs to.
const parts = rollout.FlagContent | rollout.FlagReasoning | rollout.FlagToolCall

// Offsets returns, for each token of a traced row, the byte offset of its text within its
// part of the message (content, reasoning, tool call), or −1 for tokens outside any part.
// Bytes are counted over the text in the row, starting after markers such as <think> and
// the blanks after them. They equal offsets in the recorded field if the template writes
// the field unchanged from its first character.
func Offsets(s *rollout.Sample, spell *Speller) []int32 {
	out := make([]int32, s.Len())
	var message int32
	var part rollout.Flag
	at := int32(0)
	for t, f := range s.Flags {
		out[t] = -1
		if s.Source[t] < 0 || f&parts == 0 {
			part = 0
			continue
		}
		if s.Source[t] != message || f&parts != part {
			message, part, at = s.Source[t], f&parts, 0
		}
		text, _ := spell.Bytes(s.IDs[t])
		marker := f&rollout.FlagSpecial != 0
		if at == 0 && (marker || part != rollout.FlagContent && len(bytes.TrimSpace(text)) == 0) {
			continue
		}
		out[t] = at
		at += int32(len(text))
	}
	return out
}
