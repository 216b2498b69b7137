package tokens

import (
	"sort"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Respelled returns the columns of recorded ids of a reply, given the reply as the template
// writes it. Where both spell the same, at the beginning and at the end, an id has the flags
// of the template's text; in between (the white space of a call's arguments, say) it has
// those of the text on either side.
func Respelled(tok engine.Tokenizer, added *AddedTokens, message int32, reply *Columns, ids []rollout.TokenID) Columns {
	partFlags(reply)
	spell := Spelling(tok.Vocab(), added)
	want, have := spelled(reply.IDs, spell), spelled(ids, spell)
	head := render.CommonText(want.text, have.text)
	tail := commonEnd(want.text[head:], have.text[head:])
	moved := len(want.text) - len(have.text)
	between := want.flags(reply, head-1, head) | want.flags(reply, len(want.text)-tail, len(want.text)-tail+1)
	if message >= 0 && between&(rollout.FlagContent|rollout.FlagReasoning|rollout.FlagToolCall) == 0 {
		between = rollout.FlagContent
	}
	var out Columns
	from := 0
	for k, id := range ids {
		to := have.ends[k]
		flags := between
		switch {
		case to <= head:
			flags = want.flags(reply, from, to)
		case from >= len(have.text)-tail:
			flags = want.flags(reply, from+moved, to+moved)
		}
		flags &^= rollout.FlagSpecial
		if _, ok := added.Find(id); ok {
			flags |= rollout.FlagSpecial
		}
		out.Add(id, message, flags)
		from = to
	}
	return out
}

// spelledIDs is the text of ids and where each of them ends in it.
type spelledIDs struct {
	text string
	ends []int
}

func spelled(ids []rollout.TokenID, spell func(rollout.TokenID) string) spelledIDs {
	var text strings.Builder
	ends := make([]int, len(ids))
	for k, id := range ids {
		text.WriteString(spell(id))
		ends[k] = text.Len()
	}
	return spelledIDs{text.String(), ends}
}

// flags returns the flags that c, whose text s is, has in bytes [from, to).
func (s *spelledIDs) flags(c *Columns, from, to int) (flags rollout.Flag) {
	if from < 0 {
		return 0
	}
	for k := sort.SearchInts(s.ends, from+1); k < len(s.ends); k++ {
		if k > 0 && s.ends[k-1] >= to {
			break
		}
		flags |= c.Flags[k]
	}
	return flags
}

// commonEnd returns the length of the common suffix of two texts.
func commonEnd(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
