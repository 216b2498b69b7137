package turnpack

import (
	"sync"

	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
)

// heldTokens is how many tokens of one rollout's rows wait uncoded until the rollout is encoded;
// further rows wait as bytes, heldRowBytes of them in memory and the rest in a temporary file.
const (
	heldTokens   = 1 << 19
	heldRowBytes = 1 << 20
)

// heldLimit is how many bytes of rows of later groups wait in memory; the rest waits in a temporary
// file.
const heldLimit = 4 << 20

// hugeRow is the length from which any row is held as runs: beyond any model's context.
const hugeRow = 1 << 20

// runWriter is a Sink that takes rows as runs, as *export.Writer does. It must not retain ids or
// log probabilities.
type runWriter interface {
	WriteRuns(s rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error
}

// rolloutRows holds the rows of one rollout, in order, until the last is made: encoding may still
// fail, and each row states how many tokens all of them train.
type rolloutRows struct {
	rows    spool.Queue
	n       int
	all     int64 // tokens of all rows
	trained int64
}

// add keeps a row that rollout.FinishRows finished on its own.
func (q *rolloutRows) add(s spool.Row, spools *spools) error {
	q.n++
	q.all += int64(s.Len())
	q.trained += int64(s.Trained())
	q.rows.Tokens, q.rows.Prefixes, q.rows.Open = spools.tokens, spools.prefixes, spools.open
	return q.rows.Add(s)
}

// each calls emit with the rows, finished together as rollout.FinishRows would do, and releases
// them.
func (q *rolloutRows) each(emit func(spool.Row) error) error {
	i := 0
	return q.rows.Each(func(s spool.Row) error {
		s.SampleIndex, s.IsLast = i, i == q.n-1
		s.ID, s.RolloutMaskSum = rollout.SampleID(s.Rollout, i), q.trained
		i++
		return emit(s)
	})
}

// spools opens the temporary stores of single rollouts.
type spools struct {
	dir    string
	tokens int // heldTokens, except in tests
	bytes  int64
	// prefixes says that each row of a rollout begins like the row before it.
	prefixes bool

	mu     sync.Mutex
	opened []*spool.Spool
}

func (s *spools) open() *spool.Spool {
	one := spool.New(s.dir, s.bytes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = append(s.opened, one)
	return one
}

// close removes the stores of rollouts that were never written.
func (s *spools) close() {
	for _, one := range s.opened {
		one.Close()
	}
}
