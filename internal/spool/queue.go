package spool

import (
	"math"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Queue keeps rows in their order: as they are up to so many tokens, all of them as a
// Spool does beyond. The zero value with Open set is empty.
type Queue struct {
	Tokens int // held as they are
	Open   func() *Spool
	// Prefixes says that rows mostly begin as the one before: what rows held as runs share
	// with it is then kept once.
	Prefixes bool

	held   []Row
	tokens int // in held
	stored *Spool
	shared []shared          // of the rows held as runs, in their order
	last   []rollout.TokenID // of the last of them
}

// shared is what of a row held as runs is not kept with it.
type shared struct {
	ids    int // first ids, which are those of the row before
	silent int // first log probabilities, which are 0
}

// Add keeps a row. Tokens and log probabilities of one that is held as runs are the
// caller's again.
func (q *Queue) Add(row Row) error {
	own := q.share(&row)
	if q.stored != nil {
		return q.stored.Add(0, row)
	}
	if q.tokens += own; q.tokens <= q.Tokens {
		if row.Lens != nil {
			row.Tokens, row.Logprobs = slices.Clone(row.Tokens), slices.Clone(row.Logprobs)
		}
		q.held = append(q.held, row)
		return nil
	}
	q.stored = q.Open()
	rows := append(q.held, row)
	q.held = nil
	return q.stored.Add(0, rows...)
}

// share takes from a row held as runs what need not be kept, and returns what the rest
// counts in tokens held with an entry each.
func (q *Queue) share(row *Row) (own int) {
	if row.Lens == nil {
		return row.Len()
	}
	var s shared
	for s.silent < len(row.Logprobs) && math.Float32bits(row.Logprobs[s.silent]) == 0 {
		s.silent++
	}
	ids := row.Tokens
	if q.Prefixes {
		for s.ids < min(len(q.last), len(ids)) && q.last[s.ids] == ids[s.ids] {
			s.ids++
		}
		if len(ids) > MaxWhole {
			q.last = nil
		} else {
			q.last = append(q.last[:s.ids], ids[s.ids:]...)
		}
	}
	q.shared = append(q.shared, s)
	row.Tokens, row.Logprobs = ids[s.ids:], row.Logprobs[s.silent:]
	return len(row.Tokens) + len(row.Logprobs) + entryTokens*len(row.Lens)
}

// entryTokens is about how many tokens take the memory of an entry that stands for a run.
const entryTokens = 4

// Each gives the rows and forgets them. Tokens and log probabilities of those held as
// runs are the row's until emit returns.
func (q *Queue) Each(emit func(Row) error) error {
	held, stored, all, ids := q.held, q.stored, q.shared, q.last[:0]
	q.held, q.tokens, q.stored, q.shared, q.last = nil, 0, nil, nil, nil
	var logprobs []float32
	give := func(row Row) error {
		if row.Lens == nil {
			return emit(row)
		}
		s := all[0]
		all = all[1:]
		if s.ids == 0 {
			ids = row.Tokens
		} else {
			ids = append(ids[:s.ids], row.Tokens...)
		}
		row.Tokens = ids
		if row.Logprob != nil {
			logprobs = slices.Grow(logprobs[:0], s.silent+len(row.Logprobs))[:s.silent]
			clear(logprobs)
			logprobs = append(logprobs, row.Logprobs...)
			row.Logprobs = logprobs
		}
		return emit(row)
	}
	if stored != nil {
		defer stored.Close()
		return stored.Each(0, give)
	}
	for i := range held {
		row := held[i]
		held[i] = Row{}
		if err := give(row); err != nil {
			return err
		}
	}
	return nil
}

// Close drops the rows that are kept.
func (q *Queue) Close() {
	if q.stored != nil {
		q.stored.Close()
	}
	q.held, q.tokens, q.stored, q.shared, q.last = nil, 0, nil, nil, nil
}
