package tokens

import (
	"bytes"

	"github.com/turnpack/turnpack/rollout"
)

// parts are the flags that tell which part of its message a token holds.
const parts = rollout.FlagContent | rollout.FlagReasoning | rollout.FlagToolCall

// Offsets gives, for each token of a traced row, the byte of its part of the
// message (content, reasoning, tool call) at which its text begins, −1 for
// tokens that hold none. Bytes are counted over the part as the row writes it:
// from its first text after markers such as <think> and the blanks after them.
// They are those of the recorded field wherever the template writes the field as
// it is, from its first character on.
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
