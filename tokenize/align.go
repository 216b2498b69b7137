package tokenize

import (
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// alignment says what the ids of recorded prompts hold, by rendered prompts of the
// same text in other ids: an engine that reads the history again spells replies by its
// own rule, or takes a control token that a user spelled out for one. It goes on from
// what a prompt shares with the one before.
type alignment struct {
	*job
	cols  columns // of the recorded ids
	met   []place // where ids of both end at the same byte
	ends  []int   // of rendered ids between two of them
	texts map[rollout.TokenID]string
}

// place is a number of recorded ids and one of rendered ids that spell the same.
type place struct{ recorded, rendered int }

// forget keeps what holds for these first ids of either kind.
func (a *alignment) forget(recorded, rendered int) {
	n := len(a.met)
	for n > 0 && (a.met[n-1].recorded > recorded || a.met[n-1].rendered > rendered) {
		n--
	}
	a.met = a.met[:n]
	a.cols.truncate(a.at().recorded)
}

// at is the last place that is known.
func (a *alignment) at() place {
	if len(a.met) == 0 {
		return place{}
	}
	return a.met[len(a.met)-1]
}

// reach goes on to the end of both prompts, and reports whether they are one text.
func (a *alignment) reach(ids []rollout.TokenID, rendered columns) bool {
	for at := a.at(); at.recorded < len(ids) || at.rendered < rendered.len(); at = a.at() {
		to, ok := a.next(ids, rendered.ids, at)
		if !ok {
			return false
		}
		a.take(ids[at.recorded:to.recorded], rendered.slice(at.rendered, to.rendered))
		a.met = append(a.met, to)
	}
	return true
}

// next is the first place after at.
func (a *alignment) next(ids, rendered []rollout.TokenID, at place) (to place, ok bool) {
	to = at
	for x, y := "", ""; ; { // of the ids up to here, what the others have not spelled yet
		switch {
		case x == "" && to.recorded < len(ids):
			x = a.text(ids[to.recorded])
			to.recorded++
		case y == "" && to.rendered < len(rendered):
			y = a.text(rendered[to.rendered])
			to.rendered++
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

// take adds recorded ids that spell what the rendered ones do: each is from where the
// first recorded text in its bytes is.
func (a *alignment) take(ids []rollout.TokenID, rendered columns) {
	a.ends = a.ends[:0]
	end := 0
	for _, id := range rendered.ids {
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
			source, flags = rendered.source[i], rendered.flags[i]
		}
		flags &^= rollout.FlagSpecial
		if _, added := a.added.find(id); added {
			flags |= rollout.FlagSpecial
		}
		a.cols.add(id, source, flags)
		from = to
	}
}

// text is what an id spells: entries of the vocabulary, of an added token those of its
// content.
func (a *alignment) text(id rollout.TokenID) string {
	token, added := a.added.find(id)
	if !added {
		entry, _ := a.model.Tokenizer.Vocab().Token(id)
		return entry
	}
	text, ok := a.texts[id]
	if ok {
		return text
	}
	var plain Encoding
	// What cannot be encoded by itself is in no text either.
	if err := a.model.Tokenizer.Encode(&plain, token.Content, EncodeOptions{Added: NoAdded, After: AfterText}); err == nil {
		var b strings.Builder
		for _, id := range plain.IDs {
			entry, _ := a.model.Tokenizer.Vocab().Token(id)
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
