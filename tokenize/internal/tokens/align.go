package tokens

import (
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// Alignment finds the origin of recorded prompt ids by comparing them with the rendered
// prompt, which has the same text in other ids: an engine that tokenizes the history anew
// may split replies differently, or read a control token where a user spelled one out.
// Each prompt is aligned from where it first differs from the one before.
type Alignment struct {
	added  *AddedTokens
	tok    engine.Tokenizer
	Cols   Columns // the recorded ids and their origin so far
	agreed []place // positions where ids of both end at the same byte
	ends   []int   // scratch of take
	texts  map[rollout.TokenID]string
}

// NewAlignment returns an Alignment for ids of tok.
func NewAlignment(tok engine.Tokenizer, added *AddedTokens) *Alignment {
	return &Alignment{tok: tok, added: added}
}

// place says that the first Recorded recorded ids and the first Rendered rendered ids spell
// the same text.
type place struct{ Recorded, Rendered int }

// Forget keeps only the places within the first ids of either kind.
func (a *Alignment) Forget(recorded, rendered int) {
	n := len(a.agreed)
	for n > 0 && (a.agreed[n-1].Recorded > recorded || a.agreed[n-1].Rendered > rendered) {
		n--
	}
	a.agreed = a.agreed[:n]
	a.Cols.Truncate(a.At().Recorded)
}

// At returns the last place.
func (a *Alignment) At() place {
	if len(a.agreed) == 0 {
		return place{}
	}
	return a.agreed[len(a.agreed)-1]
}

// Reach aligns up to the end of both prompts and reports whether they have the same text.
func (a *Alignment) Reach(ids []rollout.TokenID, rendered *Compact) bool {
	shown := rendered.IDs
	for at := a.At(); at.Recorded < len(ids) || at.Rendered < len(shown); at = a.At() {
		to, ok := a.next(ids, shown, at)
		if !ok {
			return false
		}
		a.take(ids[at.Recorded:to.Recorded], rendered.Slice(at.Rendered, to.Rendered))
		a.agreed = append(a.agreed, to)
	}
	return true
}

// next returns the first place after at.
func (a *Alignment) next(ids, rendered []rollout.TokenID, at place) (to place, ok bool) {
	to = at
	for x, y := "", ""; ; { // text of one side that the other has not reached yet
		switch {
		case x == "" && to.Recorded < len(ids):
			x = a.text(ids[to.Recorded])
			to.Recorded++
		case y == "" && to.Rendered < len(rendered):
			y = a.text(rendered[to.Rendered])
			to.Rendered++
		default:
			return at, false
		}
		n := min(len(x), len(y))
		if x[:n] != y[:n] {
			return at, false
		}
		if x, y = x[n:], y[n:]; x == "" && y == "" {
			return to, true
		}
	}
}

// take appends recorded ids that spell the same as the rendered ones. Each id gets the
// origin of the first recorded text among its bytes.
func (a *Alignment) take(ids []rollout.TokenID, rendered Columns) {
	a.ends = a.ends[:0]
	end := 0
	for _, id := range rendered.IDs {
		end += len(a.text(id))
		a.ends = append(a.ends, end)
	}
	from, k := 0, 0
	for _, id := range ids {
		to := from + len(a.text(id))
		for k < len(a.ends) && a.ends[k] <= from {
			k++
		}
		source, flags := int32(-1), rollout.Flag(0)
		for i := k; i < len(a.ends) && source < 0 && (i == k || a.ends[i-1] < to); i++ {
			source, flags = rendered.Source[i], rendered.Flags[i]
		}
		flags &^= rollout.FlagSpecial
		if _, added := a.added.Find(id); added {
			flags |= rollout.FlagSpecial
		}
		a.Cols.Add(id, source, flags)
		from = to
	}
}

// text returns what an id spells, as vocabulary entries; an added token spells the entries
// of its content.
func (a *Alignment) text(id rollout.TokenID) string {
	token, added := a.added.Find(id)
	if !added {
		entry, _ := a.tok.Vocab().Token(id)
		return entry
	}
	text, ok := a.texts[id]
	if ok {
		return text
	}
	var plain engine.Encoding
	// Content that cannot be encoded alone occurs in no text either.
	if err := a.tok.Encode(&plain, token.Content, engine.EncodeOptions{Added: engine.NoAdded, After: engine.AfterText}); err == nil {
		var b strings.Builder
		for _, id := range plain.IDs {
			entry, _ := a.tok.Vocab().Token(id)
			b.WriteString(entry)
		}
		text = b.String()
	}
	if a.texts == nil {
		a.texts = map[rollout.TokenID]string{}
	}
	a.texts[id] = text
	return text
}
