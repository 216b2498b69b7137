package tokens

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// Window computes the columns of a part [From, To) of a merged row.
type Window struct {
	Row         *lineage.Row
	IDs         []rollout.TokenID       // all ids of the row
	Turns       []rollout.Turn          // recorded log probabilities and versions
	Completions []Completion            // by turn, packed
	Told        func(turn int) []Prompt // the encoded prompts up to that of a turn, nil if unknown
	From, To    int

	// the columns of [From, To)
	source, turn, version []int32
	flags                 []rollout.Flag
}

// Of returns o with the column memory of w, which w gives up.
func (w *Window) Of(o Window) *Window {
	o.source, o.turn, o.version, o.flags = w.source, w.turn, w.version, w.flags
	*w = Window{}
	return &o
}

// Emptied returns an empty Window with the column memory of w, whose columns become invalid.
// It drops memory that is larger than any model's context needs.
func (w *Window) Emptied() Window {
	if cap(w.source) > hugeIDs/4 {
		return Window{}
	}
	return Window{source: w.source, turn: w.turn, version: w.version, flags: w.flags}
}

// part returns [from, to) cut to the window.
func (w *Window) part(from, to int) (int, int) { return max(from, w.From), min(to, w.To) }

// Fill returns the columns of [from, to). They are valid until the next call.
func (w *Window) Fill(from, to int) rollout.Columns {
	w.From, w.To = from, to
	w.source, w.turn, w.flags = slices.Grow(w.source[:0], to-from)[:to-from], slices.Grow(w.turn[:0], to-from)[:to-from], slices.Grow(w.flags[:0], to-from)[:to-from]
	fill(w.source, -1)
	fill(w.turn, -1)
	clear(w.flags)
	for p := range w.Row.Pieces() {
		if p.Turn < 0 {
			continue
		}
		from, to := w.part(p.Start, p.Start+len(p.IDs))
		moved := p.From - p.Start
		w.Completions[p.Turn].Runs.Each(from+moved, to+moved, func(from, to int, source int32, flags rollout.Flag) {
			if p.Kind != "sampled" {
				flags &^= rollout.FlagSampled | rollout.FlagStop
			}
			w.say(from-moved, to-moved, source, flags)
		})
	}
	// A rendered context says what each of its tokens is, those of earlier replies too.
	after := 0
	for _, s := range w.Row.Spans {
		w.context(s.Turn, s.Start, after)
		after = s.Start + s.Len
	}
	for _, s := range w.Row.Spans {
		from, to := w.part(s.Start, s.Start+s.Len)
		if from < to {
			fill(w.turn[from-w.From:to-w.From], int32(s.Turn))
		}
		for _, sub := range s.Subs {
			from, to := w.part(sub.At, sub.At+sub.Len)
			for at := from; at < to; at++ {
				w.flags[at-w.From] |= rollout.FlagRepaired
			}
		}
	}
	return rollout.Columns{IDs: w.IDs[w.From:w.To], Source: w.source, Flags: w.flags, Turn: w.turn, Version: w.versions()}
}

// say sets source and flags of the tokens [from, to).
func (w *Window) say(from, to int, source int32, flags rollout.Flag) {
	fill(w.source[from-w.From:to-w.From], source)
	fill(w.flags[from-w.From:to-w.From], flags)
}

// fill sets all of s to v, by doubling copies: s is mostly long.
func fill[T any](s []T, v T) {
	n := min(len(s), 16)
	for i := range s[:n] {
		s[i] = v
	}
	for ; n < len(s); n *= 2 {
		copy(s[n:], s[:n])
	}
}

// common returns the length of the common prefix of a and b, which have equal length.
func common(a, b []rollout.TokenID) (n int) {
	for n+32 <= len(a) && *(*[32]rollout.TokenID)(a[n:]) == *(*[32]rollout.TokenID)(b[n:]) {
		n += 32
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

// versions returns the policy versions of the window, nil if no turn of the row has one.
func (w *Window) versions() []int32 {
	if !slices.ContainsFunc(w.Row.Spans, func(s lineage.Span) bool { return w.Turns[s.Turn].Version != nil }) {
		return nil
	}
	w.version = slices.Grow(w.version[:0], w.To-w.From)[:w.To-w.From]
	fill(w.version, -1)
	for _, s := range w.Row.Spans {
		if from, to := w.part(s.Start, s.Start+s.Len); from < to {
			w.Turns[s.Turn].AppendVersions(w.version[:from-w.From], s.From+from-s.Start, to-from)
		}
	}
	return w.version
}

// Logprobs returns the log probabilities of the whole row, nil if no turn has any.
func (w *Window) Logprobs() []float32 {
	if !slices.ContainsFunc(w.Row.Spans, func(s lineage.Span) bool { return w.Turns[s.Turn].Logprobs != nil }) {
		return nil
	}
	return w.Row.AppendLogprobs(nil)
}

// context sets source and flags of the row's tokens [from, start), as far as they lie in w:
// the context before a span of turn t. It ends where the prompt of that turn ends.
func (w *Window) context(t, start, from int) {
	from = max(from, w.From)
	stored := w.Told(t)
	if stored == nil {
		return
	}
	end := stored[t].N
	// Walk backwards from the end of the prompt: each prompt holds only what it adds.
	for at := t; at >= 0 && end > 0 && start > from; at-- {
		p := &stored[at]
		if end > p.Keep {
			n := min(end-p.Keep, start-from)
			to, moved := end-p.Keep, start-end+p.Keep
			p.Add.Each(to-n, min(to, w.To-moved), func(from, to int, source int32, flags rollout.Flag) {
				for from < to {
					n := common(w.IDs[from+moved:to+moved], p.Add.IDs[from:to])
					w.say(from+moved, from+moved+n, source, flags)
					from += n + 1
				}
			})
			start, end = start-n, end-n
		}
		if p.Keep == 0 {
			return
		}
	}
}
