package spool

// Queue keeps rows in their order: as they are up to so many tokens, all of them as a
// Spool does beyond. The zero value with Open set is empty.
type Queue struct {
	Tokens int // held as they are
	Open   func() *Spool

	held   []Row
	tokens int // in held
	stored *Spool
}

// Add keeps a row.
func (q *Queue) Add(row Row) error {
	if q.stored != nil {
		return q.stored.Add(0, row)
	}
	q.held = append(q.held, row)
	if q.tokens += row.Len(); q.tokens <= q.Tokens {
		return nil
	}
	q.stored = q.Open()
	rows := q.held
	q.held = nil
	return q.stored.Add(0, rows...)
}

// Each gives the rows and forgets them.
func (q *Queue) Each(emit func(Row) error) error {
	held, stored := q.held, q.stored
	q.held, q.tokens, q.stored = nil, 0, nil
	if stored != nil {
		defer stored.Close()
		return stored.Each(0, emit)
	}
	for i := range held {
		row := held[i]
		held[i] = Row{}
		if err := emit(row); err != nil {
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
	q.held, q.tokens, q.stored = nil, 0, nil
}
