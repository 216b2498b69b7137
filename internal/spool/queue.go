package spool

import (
	"math"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Queue keeps rows in order: in memory while they take up to Tokens tokens, beyond that all of
// them in a Spool. The zero value with Open set is an empty queue.
type Queue struct {
	Tokens int // most tokens held in memory
	Open   func() *Spool
	// Prefixes says that most rows begin with the ids of the row before. The ids that a
	// run-length encoded row shares with it are then stored once.
	Prefixes bool

	held   []Row
	tokens int // tokens in held
	stored *Spool
	shared []shared          // one per run-length encoded row, in order
	last   []rollout.TokenID // ids of the last of these rows
}

// shared is what is not stored with a run-length encoded row.
type shared struct {
	ids   int // leading ids, equal to those of the row before
	zeros int // leading log probabilities, which are 0
}

// Add keeps a row. If it is run-length encoded, the caller may reuse its Tokens and Logprobs
// after Add returns.
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

// share removes from a run-length encoded row the ids and log probabilities that need not be
// stored, and returns the size of the rest in tokens of a plain row.
func (q *Queue) share(row *Row) (own int) {
	if row.Lens == nil {
		return row.Len()
	}
	var s shared
	for s.zeros < len(row.Logprobs) && math.Float32bits(row.Logprobs[s.zeros]) == 0 {
		s.zeros++
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
	row.Tokens, row.Logprobs = ids[s.ids:], row.Logprobs[s.zeros:]
	return len(row.Tokens) + len(row.Logprobs) + entryTokens*len(row.Lens)
}

// entryTokens is the size of one run's entry in the columns, in tokens of a plain row, roughly.
const entryTokens = 4

// Each calls emit for the rows in order and removes them. Tokens and Logprobs of a run-length
// encoded row are valid until emit returns.
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
			logprobs = slices.Grow(logprobs[:0], s.zeros+len(row.Logprobs))[:s.zeros]
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

// Close drops the remaining rows.
func (q *Queue) Close() {
	if q.stored != nil {
		q.stored.Close()
	}
	q.held, q.tokens, q.stored, q.shared, q.last = nil, 0, nil, nil, nil
}
